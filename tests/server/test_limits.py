"""Bodies that are too large, too many, too slow or hostile get an answer; the server lives on."""

import json
import math
import random
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from hostile import images as hostile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from processes.live_server import LiveServer, live_server

SAMPLE = 24
STATUSES = (200, 400, 413, 415, 422)


@pytest.fixture(scope="module")
def small(people: list[Path]) -> Iterator[tuple[LiveServer, httpx.Client]]:
    """A server of one worker that takes photos of one MB."""
    with (
        live_server("--rate", 0, "--workers", 1, "--max-mb", 1) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        yield server, client


def kind_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["kind"]


def test_photos_and_bodies_have_limits(small, people):
    _, client = small
    good = people[0].read_bytes()
    fits = good + bytes((1 << 20) - len(good))
    answer = client.post("/v1/verify", files={"left": fits, "right": good})
    assert answer.status_code == 200, answer.text
    for sides in ({"left": fits + b"0"}, {"right": bytes(5 << 20)}, {"left": bytes(20 << 20)}):
        answer = client.post("/v1/verify", files={"left": good, "right": good, **sides})
        assert kind_of(answer) == (413, "too_large")
    unmeasured = (bytes(1 << 16) for _ in range(100))  # sent in chunks, without a length
    answer = client.post(
        "/v1/verify", content=unmeasured, headers={"content-type": "application/json"}
    )
    assert kind_of(answer) == (413, "too_large")


def test_forms_have_limits(small, people):
    _, client = small
    photo = people[0].read_bytes()[:1000]
    for files, data in (
        ([("left", photo)] * 33, {}),
        ([("left", photo)], {f"field{number}": "1" for number in range(40)}),
        ([("left", photo)], {"name": "x" * 5000}),
    ):
        assert kind_of(client.post("/v1/verify", files=files, data=data)) == (400, "multipart")
    answer = client.post("/v1/embed", files=[("image", photo)] * 17)
    assert kind_of(answer) == (422, "value")


def test_who_sends_too_slowly_keeps_nobody_waiting(small):
    server, client = small
    slow = []
    for _ in range(30):  # more than the queue holds
        connection = socket.create_connection(("127.0.0.1", server.port))
        connection.sendall(b"POST /v1/verify HTTP/1.1\r\nhost: localhost\r\ncontent-type: "
                           b"application/json\r\ncontent-length: 1000\r\n\r\n{")  # fmt: skip
        slow.append(connection)
    assert client.get("/v1/model").status_code == 200
    for connection in slow:
        connection.close()
    assert client.get("/readyz").status_code == 200


def test_too_many_at_once_are_sent_away_and_then_served_again(small, people):
    _, client = small
    photos = {side: people[0].read_bytes() for side in ("left", "right")}

    def ask(_: int) -> httpx.Response:
        return client.post("/v1/verify", files=photos, timeout=250)

    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(ask, range(48)))
    statuses = [answer.status_code for answer in answers]
    assert set(statuses) == {200, 503}
    busy = next(answer for answer in answers if answer.status_code == 503)
    assert kind_of(busy) == (503, "overloaded")
    assert busy.headers["retry-after"] == "1"
    assert ask(0).status_code == 200
    assert re.search("^facepairs_queue 0.0$", client.get("/metrics").text, re.MULTILINE)


def check_hostile(client: httpx.Client, files: list[hostile.Hostile], good: bytes) -> list[int]:
    """Send files as photos; every answer is JSON of a foreseen status."""
    statuses = []
    for file in files:
        answer = client.post("/v1/verify", files={"left": good, "right": file.data})
        assert answer.status_code in STATUSES, (file.kind, file.name, answer.text)
        value = answer.json()
        if answer.status_code != 200:
            assert value["error"]["message"].isprintable(), file.name
        statuses.append(answer.status_code)
    return statuses


def test_a_sample_of_hostile_files_ends_in_answers(client, people):
    files = list(hostile.hostile_files(0, mutants=7, bombs=False, size=(90, 70)))
    statuses = check_hostile(client, random.Random(3).sample(files, SAMPLE), people[0].read_bytes())
    assert statuses.count(200) > 2
    assert len(set(statuses)) > 2
    assert client.get("/readyz").status_code == 200


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.filterwarnings("ignore:Tag data")  # Pillow, where it makes the files
def test_all_hostile_files_end_in_answers_and_leave_memory_bounded(people):
    good = people[0].read_bytes()
    files = list(hostile.hostile_files(0, mutants=70))
    assert len(files) > 2000
    with live_server("--rate", 0, "--max-mb", 100) as server:
        with httpx.Client(base_url=server.url, timeout=120) as client:
            statuses = check_hostile(client, files, good)
            assert set(statuses) == set(STATUSES) - {400}
            assert client.post("/v1/verify", files={"left": good, "right": good}).is_success
        status = Path(f"/proc/{server.process.pid}/status").read_text()
    peak_mb = int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1024
    assert peak_mb < 1500, peak_mb


FIELDS = st.sampled_from(["left", "right", "left_face", "threshold", "prior", "describe", "odd"])
VALUES = st.one_of(
    st.text(max_size=20), st.binary(max_size=40), st.integers(), st.floats(), st.booleans()
)
BODY = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def check_answer(answer: httpx.Response) -> None:
    assert answer.status_code in STATUSES, answer.text
    if answer.status_code != 200:
        assert set(answer.json()["error"]) == {"kind", "message"}


@BODY
@given(
    body=st.binary(max_size=300),
    boundary=st.sampled_from(["b", "", '"b"', "b; charset=x", "ü", "b" * 300]),
    path=st.sampled_from(["/v1/verify", "/v1/embed", "/v1/people"]),
    broken=st.booleans(),
)
def test_any_form_has_an_answer(client, body, boundary, path, broken):
    part = b'--b\r\nContent-Disposition: form-data; name="left"; filename="x"\r\n\r\n'
    content = body if broken else part + body + b"\r\n--b--\r\n"
    kind = f"multipart/form-data; boundary={boundary}".encode()
    check_answer(client.post(path, content=content, headers={"content-type": kind}))


@BODY
@given(fields=st.lists(st.tuples(FIELDS, VALUES), max_size=6))
def test_any_fields_have_an_answer(client, fields):
    sent = [
        (name, ("f", value) if isinstance(value, bytes) else (None, str(value)))
        for name, value in fields
    ]
    check_answer(client.post("/v1/verify", files=sent or [("odd", (None, ""))]))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=12,
)


@BODY
@given(value=JSON | st.binary(max_size=60), path=st.sampled_from(["verify", "detect"]))
def test_any_json_has_an_answer(client, value, path):
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    kind = {"content-type": "application/json"}
    check_answer(client.post(f"/v1/{path}", content=content, headers=kind))


def test_deep_and_endless_json_has_an_answer(client):
    kind = {"content-type": "application/json"}
    for content in (b"[" * 100_000, b'{"left":' * 50_000, b"1" * 100_000, b'"' + b"\\u0000" * 1000):
        check_answer(client.post("/v1/verify", content=content, headers=kind))
    huge = {"left": "", "right": "", "threshold": math.inf, "max_fmr": 1e308}
    check_answer(client.post("/v1/verify", content=json.dumps(huge), headers=kind))
