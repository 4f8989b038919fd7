"""Who may use the server, what it refuses, and what it never writes down."""

import asyncio
import json
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from processes.command_line import command, in_process
from processes.live_server import live_server

from facepairs import Verifier
from facepairs.photos.face_sample import FaceSample
from facepairs.server import guard
from facepairs.server.app import build_app
from facepairs.server.guard import Access
from facepairs.server.service import Service

TOKEN = "a token of enough letters"


@pytest.fixture(scope="module")
def guarded() -> Iterator[httpx.Client]:
    options = ("--token", TOKEN, "--allow-host", "Faces.example", "--allow-origin",
               "https://app.example", "--rate", 0)  # fmt: skip
    with live_server(*options) as server, httpx.Client(base_url=server.url) as client:
        yield client


def bearer(token: str = TOKEN) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.mark.parametrize("headers", [{}, bearer("wrong"), bearer("ä" * 30),
                                     {"authorization": f"Basic {TOKEN}"}])  # fmt: skip
@pytest.mark.parametrize("path", ["/v1/model", "/metrics", "/v1/people", "//v1/model"])
def test_a_token_is_asked_for(guarded, path, headers):
    raw = {name: value.encode() for name, value in headers.items()}
    answer = guarded.get(path, headers=raw)
    assert answer.status_code == 401
    assert answer.json()["error"]["kind"] == "token"
    assert answer.headers["www-authenticate"] == "Bearer"


def test_the_token_opens_and_pages_need_none(guarded):
    assert guarded.get("/v1/model", headers=bearer()).status_code == 200
    for path in ("/", "/openapi.json", "/healthz", "/readyz", "/static/style.css"):
        assert guarded.get(path).status_code == 200, path


@pytest.mark.parametrize(
    ("host", "known"),
    [("127.0.0.1", True), ("localhost:8756", True), ("[::1]:1", True), ("faces.example", True),
     ("evil.example", False), ("127.0.0.1.evil.example", False), ("", False), ("[", False),
     ("localhost.evil.example:80", False), ("FACES.example:80", True)],
)  # fmt: skip
def test_only_known_names_are_answered(guarded, host, known):
    answer = guarded.get("/healthz", headers={"host": host})
    assert answer.status_code == (200 if known else 400)


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),
        ({"origin": "https://app.example", "sec-fetch-site": "cross-site"}, True),
        ({"origin": "http://{host}", "sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "none"}, True),
        ({"origin": "https://evil.example"}, False),
        ({"origin": "null"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "same-site"}, False),
        ({"origin": "http://{host}", "sec-fetch-site": "cross-site"}, False),
        ({"origin": "http://["}, False),
    ],
)
def test_pages_of_other_sites_may_not_write(guarded, headers, allowed):
    sent = {name: value.replace("{host}", guarded.base_url.netloc.decode())
            for name, value in headers.items()}  # fmt: skip
    answer = guarded.post("/v1/verify", headers=bearer() | sent)
    assert answer.json()["error"]["kind"] == ("type" if allowed else "origin")


def test_cors_is_for_the_allowed_site_alone(guarded):
    asked = {"access-control-request-method": "POST",
             "access-control-request-headers": "authorization"}  # fmt: skip
    for site, allowed in (("https://app.example", True), ("https://evil.example", False)):
        answer = guarded.options("/v1/verify", headers={"origin": site, **asked})
        assert (answer.headers.get("access-control-allow-origin") == site) == allowed
        answer = guarded.get("/v1/model", headers=bearer() | {"origin": site})
        assert ("access-control-allow-origin" in answer.headers) == allowed


def test_without_allowed_sites_there_is_no_cors_and_no_cookie(client):
    answer = client.get("/", headers={"origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert "set-cookie" not in answer.headers
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "server" not in answer.headers


def test_a_refused_request_is_counted_by_its_route(guarded):
    guarded.get("/v1/model")
    guarded.post("/v1/verify", headers=bearer() | {"origin": "https://evil.example"})
    guarded.delete("/v1/people/Ann%2FEve")
    guarded.get("/v1/nothing/Ann", headers=bearer())
    guarded.post("/v1/detect", headers=bearer(), files={"image": b"no photo"})
    counted = guarded.get("/metrics", headers=bearer()).text
    for route, method, status in (
        ("/v1/model", "GET", 401),
        ("/v1/verify", "POST", 403),
        ("/v1/people/{name}", "DELETE", 401),
        ("other", "GET", 404),
    ):
        labels = f'method="{method}",route="{route}",status="{status}"'
        assert f"facepairs_requests_total{{{labels}}}" in counted
        assert re.search(
            f'facepairs_request_seconds_count{{route="{re.escape(route)}"}} [1-9]', counted
        )
    assert 'facepairs_photos_refused_total{kind="not_image"} 1' in counted
    assert "Ann" not in counted


def test_an_id_is_kept_if_it_is_one(client):
    def id_of(sent: str) -> str:
        return str(client.get("/healthz", headers={"x-request-id": sent}).headers["x-request-id"])

    assert id_of("abc-1.2") == "abc-1.2"
    for odd in ("", "a b", "x" * 65, "a\tb"):
        assert re.fullmatch("[0-9a-f]{16}", id_of(odd))


def test_a_bug_is_answered_and_logged_without_its_message(caplog):
    class Broken(Verifier):
        def detect(self, *_: object, **__: object) -> list[FaceSample]:
            raise RuntimeError("a secret")

    service = Service(Broken.load(), None, False, 1 << 20)
    transport = httpx.ASGITransport(build_app(service, Access(), 1))

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.post("/v1/verify", files={"left": b"x", "right": b"x"})

    answer = asyncio.run(ask())
    assert (answer.status_code, answer.json()["error"]["kind"]) == (500, "bug")
    assert "secret" not in answer.text
    assert answer.headers["x-request-id"] in caplog.text


def test_a_client_has_the_requests_of_a_second_and_then_one_by_one(monkeypatch):
    now = 0.0
    monkeypatch.setattr(guard.time, "monotonic", lambda: now)
    limit = guard.RateLimit(4)
    assert [limit.allows("a") for _ in range(6)] == [True] * 4 + [False] * 2
    assert limit.allows("b")  # has its own
    now = 0.125
    assert not limit.allows("a")  # half a request
    now = 0.25
    assert [limit.allows("a") for _ in range(2)] == [True, False]
    now = 99.0  # what is not used does not add up
    assert [limit.allows("a") for _ in range(5)] == [True] * 4 + [False]
    rare = guard.RateLimit(0.5)
    assert [rare.allows("a") for _ in range(2)] == [True, False]
    now += 1.875
    assert not rare.allows("a")
    now += 0.125
    assert [rare.allows("a") for _ in range(2)] == [True, False]
    assert all(guard.RateLimit(0).allows("a") for _ in range(1000))


def test_the_client_that_asked_least_recently_is_forgotten_first(monkeypatch):
    monkeypatch.setattr(guard.time, "monotonic", lambda: 0.0)
    monkeypatch.setattr(guard, "MOST_CLIENTS", 2)
    limit = guard.RateLimit(1)
    assert limit.allows("a")
    assert limit.allows("b")
    assert not limit.allows("a")
    assert limit.allows("c")  # b is forgotten
    assert [limit.allows(client) for client in ("a", "c", "b")] == [False, False, True]


@pytest.mark.parametrize("more", [(), ("--verbose",)])
def test_the_log_has_no_names_and_no_addresses(people, tmp_path, more):
    words = command("serve", "--port", 0, "--json", "--gallery", tmp_path / "g", *more)
    pipe = subprocess.PIPE
    process = subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True)
    assert process.stdout
    told = json.loads(process.stdout.readline())
    assert told["pid"] == process.pid
    with httpx.Client(base_url=told["url"]) as client:
        photo = {"photo": ("Ann_at_home.jpg", people[0].read_bytes())}
        client.post("/v1/people", data={"name": "Ann", "any_quality": 1}, files=photo)
        client.delete("/v1/people/Ann", headers={"x-request-id": "the-last-one"})
    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=60)
    assert process.returncode == 0
    lines = [line for line in log.splitlines() if not more or " id=" in line]
    assert [line.split()[2:5] for line in lines] == [
        ["POST", "/v1/people", "200"],
        ["DELETE", "/v1/people/{name}", "200"],
    ]
    assert lines[1].endswith("ms id=the-last-one")
    assert "Ann" not in log
    assert "127.0.0.1" not in "".join(lines)
    assert not list(tmp_path.glob("*.jpg"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_after_what_is_in_work(people, number):
    with live_server() as server:
        photos = [("image", path.read_bytes()) for path in people[:4] * 2]
        answers: list[httpx.Response] = []

        def ask() -> None:
            answers.append(httpx.post(f"{server.url}/v1/embed", files=photos, timeout=60))

        thread = threading.Thread(target=ask)
        thread.start()
        queued = re.compile("^facepairs_queue 1.0$", re.MULTILINE)
        with httpx.Client(base_url=server.url) as client:
            while not answers and not queued.search(client.get("/metrics").text):
                time.sleep(0.01)
        server.process.send_signal(number)
        thread.join()
        assert answers[0].status_code == 200
        assert server.process.wait(timeout=60) == 0
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.url}/healthz")


def test_addresses_that_cannot_be_used_are_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = in_process("serve", "--port", port, check=2)
    assert f"127.0.0.1:{port}" in done.stderr
    assert "(--port)" in done.stderr
    for options, named in (
        (("--host", "0.0.0.0"), "(--token)"),
        (("--host", "0.0.0.0", "--token", 15 * "x"), "(--token)"),
        (("--allow-host", "faces.example"), "(--token)"),
        (("--host", "no.such.host.invalid"), "(--host)"),
        (("--host", "203.0.113.7", "--token", 16 * "x"), "(--host, --port)"),
        (("--bundle", "missing"), "missing"),
        (("--gallery", "missing", "--read-only"), "missing"),
        (("--gallery", "missing/x.gallery"), "missing/x.gallery"),
        (("--allow-host", "https://faces.example/"), "https://faces.example/"),
        (("--allow-origin", "https://app.example/"), "https://app.example/"),
        (("--allow-origin", "https://*.example"), "https://*.example"),
        (("--rate", "nan"), "nan"),
    ):
        done = in_process("serve", "--port", 0, *options, check=2)
        assert named in done.stderr
        assert done.stderr.count("\n") == 1
        assert "[Errno" not in done.stderr
    assert not Path("missing").exists()


def test_a_gallery_can_be_read_alone_and_a_token_comes_from_the_environment(
    people, tmp_path, monkeypatch
):
    place = tmp_path / "g"
    in_process("gallery", "add", place, "--name", "Ann", people[0], "--any-quality", check=0)
    monkeypatch.setenv("FACEPAIRS_TOKEN", TOKEN)
    with (
        live_server("--gallery", place, "--read-only") as server,
        httpx.Client(base_url=server.url) as client,
    ):
        assert client.get("/v1/model").status_code == 401
        client.headers.update(bearer())
        photo = {"photo": people[1].read_bytes()}
        answer = client.post("/v1/people", data={"name": "Ben"}, files=photo)
        assert (answer.status_code, answer.json()["error"]["kind"]) == (403, "read_only")
        assert client.delete("/v1/people/Ann").status_code == 403
        assert client.get("/v1/model").json()["gallery"] == "read"
        assert [one["name"] for one in client.get("/v1/people").json()["people"]] == ["Ann"]
        in_process("gallery", "add", place, "--name", "Ben", people[2], "--any-quality", check=0)
        names = [one["name"] for one in client.get("/v1/people").json()["people"]]
        assert names == ["Ann", "Ben"]
