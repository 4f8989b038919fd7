"""Every route answers what the command line prints for the same photos, in form data and JSON."""

import base64
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import jsonschema
import numpy as np
import pytest
from PIL import Image
from processes.command_line import in_process

from facepairs import Verifier
from facepairs.bundles.rates import ErrorTable
from facepairs.server.routes import ROUTES, openapi

DESCRIPTION = json.loads(json.dumps(openapi()))


@pytest.fixture
def ask(client: httpx.Client) -> Any:
    """Send a request, and return the answer; it has the schema that /openapi.json promises."""

    def send(method: str, path: str, status: int = 200, route: str = "", **options: Any) -> Any:
        answer = client.request(method, path, **options)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/json"
        responses = DESCRIPTION["paths"][route or path][method.lower()]["responses"]
        schema = responses[str(status)]["content"]["application/json"]["schema"]
        promised = {**schema, "components": DESCRIPTION["components"]}
        jsonschema.Draft202012Validator(promised).validate(answer.json())
        return answer.json()

    return send


def files(**paths: Path) -> dict[str, bytes]:
    return {name: path.read_bytes() for name, path in paths.items()}


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("options", [{}, {"max_fmr": 0.01}, {"threshold": 0.3, "prior": 0.01}])
def test_verify_answers_as_the_command_does(ask, people, as_json, options):
    left, right = people[0], people[1]
    if as_json:
        sides = files(left=left, right=right)
        photos = {name: base64.b64encode(data).decode() for name, data in sides.items()}
        answer = ask("POST", "/v1/verify", json={**photos, **options})
    else:
        answer = ask("POST", "/v1/verify", files=files(left=left, right=right), data=options)
    words = [word for name, value in options.items()
             for word in (f"--{name.replace('_', '-')}", value)]  # fmt: skip
    printed = json.loads(in_process("verify", left, right, "--json", *words).stdout)
    assert answer.pop("score") == pytest.approx(printed.pop("score"), abs=1e-4)
    probability = printed.pop("probability")
    assert answer.pop("probability") == pytest.approx(probability, abs=1e-3)
    for side, path in (("left", left), ("right", right)):
        assert (answer[side].pop("photo"), printed[side].pop("photo")) == (side, str(path))
    assert answer == printed


def test_metrics_count_scores_faces_and_hints_of_comparisons(ask, client, people, group):
    def counts() -> dict[str, float]:
        lines = client.get("/metrics").text.splitlines()
        begin = ("facepairs_score", "facepairs_face_px", "facepairs_hints_total")
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)
                if name.startswith(begin)}  # fmt: skip

    before = counts()
    answer = ask("POST", "/v1/verify", files=files(left=people[0], right=group))
    detected = ask("POST", "/v1/detect", files=files(image=people[0]))  # no comparison
    assert "crop" not in detected["faces"][0]  # nobody asked for it
    change = {name: value - before.get(name, 0) for name, value in counts().items()}
    assert change["facepairs_score_count"] == 1
    assert change["facepairs_score_sum"] == pytest.approx(answer["score"])
    assert change["facepairs_face_px_count"] == 2
    kinds = Counter(hint["kind"] for side in ("left", "right") for hint in answer[side]["hints"])
    assert kinds["several-faces"] == 1
    for kind, number in kinds.items():
        assert change[f'facepairs_hints_total{{kind="{kind}"}}'] == number
    limit = answer["operating_point"]["threshold"]
    assert change[f'facepairs_score_bucket{{le="{limit}"}}'] == (answer["score"] <= limit)
    table = Verifier.load().model.profile.errors
    for share in (0.9, 0.5, 0.1, 0.01, 0.001, 0.0001):
        assert f'facepairs_score_bucket{{le="{table.threshold_for(share)}"}}' in change


def test_a_face_can_be_chosen(ask, people, group):
    found = ask("POST", "/v1/detect", files=files(image=group), data={"crops": "true"})
    assert (found["width"], found["height"]) == (640, 400)
    assert len(found["faces"]) == 2
    for number, face in enumerate(found["faces"], 1):
        assert face["number"] == number
        _, _, data = face["crop"].partition("base64,")
        crop = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
        assert crop.shape == (150, 150, 3)
        photos = files(left=people[number * 2 - 1], right=group)
        choice = {"right_face": number, "describe": True}
        verdict = ask("POST", "/v1/verify", files=photos, data=choice)
        assert verdict["right"]["box"] == face["box"]
        assert ["verdict", verdict["verdict"]] in verdict["description"]
        assert ["B", face["description"]] in verdict["description"]
        kinds = [hint["kind"] for hint in verdict["right"]["hints"]]
        assert "several-faces" not in kinds
    verdict = ask("POST", "/v1/verify", files=photos)
    assert "several-faces" in [hint["kind"] for hint in verdict["right"]["hints"]]
    error = ask("POST", "/v1/verify", 422, files=files(left=group, right=group),
                data={"left_face": 3})  # fmt: skip
    assert error["error"]["kind"] == "config"
    assert error["error"]["message"].startswith("left: no face 3")


def test_embeddings_are_those_of_the_library(ask, people):
    images = [("image", path.read_bytes()) for path in people[:3]]
    answer = ask("POST", "/v1/embed", files=images)
    expected = Verifier.load().embed(people[:3])
    np.testing.assert_allclose(answer["embeddings"], expected, atol=1e-3)
    images[1] = ("image", b"no photo")
    error = ask("POST", "/v1/embed", 415, files=images)["error"]
    assert error["message"].startswith("image 2: ")


def test_the_model_tells_its_errors(ask):
    model = ask("GET", "/v1/model")
    errors = Verifier.load().model.profile.errors
    assert isinstance(errors, ErrorTable)
    assert model["curve"]["thresholds"] == list(errors.thresholds)
    assert (model["gallery"], model["max_bytes"]) == ("write", 10 << 20)
    assert model["description"]


def test_people_are_enrolled_identified_and_forgotten(ask, people, group):
    photo = [("photo", people[0].read_bytes()), ("photo", people[1].read_bytes())]
    options = {"name": "Ann O'Neil/Müller", "any_quality": "true"}
    done = ask("POST", "/v1/people", data=options, files=photo)
    assert (done["enrolled"], done["people"], done["photos"]) == (2, 1, 2)
    done = ask("POST", "/v1/people", data=options, files=photo[:1])
    assert (done["enrolled"], done["known"]) == (0, 1)
    done = ask("POST", "/v1/people", data={"name": "Ben", "face": 2, "any_quality": "1",
               "forget_after": 2}, files={"photo": group.read_bytes()})  # fmt: skip
    assert (done["enrolled"], done["refused"]) == (1, [])
    everybody = {one["name"]: one for one in ask("GET", "/v1/people")["people"]}
    assert list(everybody) == ["Ann O'Neil/Müller", "Ben"]
    assert everybody["Ben"]["expires"] > everybody["Ben"]["added"]
    for number, name in enumerate(everybody, 1):
        choice = {"threshold": 0.99, "face": number, "describe": True}
        answer = ask("POST", "/v1/identify", files=files(image=group), data=choice)
        assert answer["candidates"][0]["name"] == name
    assert answer["description"][0] == ["person", "Ben"]
    error = ask("POST", "/v1/people", 422, data={"name": " "}, files=photo[:1])
    assert error["error"]["kind"] == "config"
    path = "/v1/people/{name}"
    for name in everybody:
        gone = ask("DELETE", f"/v1/people/{quote(name, safe='')}", route=path)
        assert gone["name"] == name
    assert ask("GET", "/v1/people")["people"] == []
    error = ask("DELETE", "/v1/people/Nobody", 404, route=path)
    assert error["error"]["kind"] == "not_enrolled"
    error = ask("POST", "/v1/identify", 404, files=files(image=group))
    assert error["error"]["kind"] == "not_enrolled"


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({"json": {"left": "aGk=", "right": "aGk=", "maxfmr": 1}}, 422, "value"),
        ({"json": {"left": "aGk=", "right": "aGk=", "prior": 2}}, 422, "config"),
        ({"json": {"left": "aGk=", "right": "aGk="}}, 415, "image"),
        ({"files": {"left": b"x", "right": b"x"}, "data": {"max_fmr": "1e-9"}}, 422, "config"),
        ({"files": {"left": b"", "right": b"x"}}, 422, "image"),
        ({"files": {"left": b"x"}}, 422, "value"),
        ({"json": {"left": "aGk=", "right": "aGk="}, "params": {"threshold": 1}}, 422, "value"),
        ({"files": {"left": (None, "a.jpg"), "right": (None, "b.jpg")}}, 422, "value"),
        ({"files": {"left": b"x", "right": b"x"}, "data": {"max_fmr": "abc"}}, 422, "value"),
        ({"content": b"{", "headers": {"content-type": "application/json"}}, 400, "json"),
        ({"content": b"left=1", "headers": {"content-type": "text/plain"}}, 415, "type"),
        ({"content": b"", "headers": {"content-type": "multipart/form-data"}}, 400, "multipart"),
        ({}, 415, "type"),
    ],
)
def test_what_cannot_be_read_is_named(ask, body, status, kind):
    error = ask("POST", "/v1/verify", status, **body)["error"]
    assert error["kind"] == kind
    assert "Traceback" not in error["message"]


def test_other_addresses_and_methods_are_refused_as_json(client):
    for method, path, status in (("GET", "/v1/nothing", 404), ("GET", "/v1/verify", 405),
                                 ("POST", "/v1/model", 405), ("GET", "/static/nothing", 404),
                                 ("GET", "/static/../app.py", 404)):  # fmt: skip
        answer = client.request(method, path)
        assert (answer.status_code, [*answer.json()]) == (status, ["error"]), path
        assert answer.json()["error"]["kind"] == {404: "not_found", 405: "method"}[status]


def test_the_description_names_every_route(client, ask):
    description = client.get("/openapi.json").json()
    assert description == DESCRIPTION
    named = {(method.upper(), path) for path, operations in description["paths"].items()
             for method in operations}  # fmt: skip
    assert named == {(route.method, route.path) for route in ROUTES}
    jsonschema.Draft202012Validator.check_schema({"components": description["components"]})
    assert ask("GET", "/readyz") == {"status": "ready"}
    assert client.get("/healthz").json() == {"status": "ok"}
