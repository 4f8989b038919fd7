"""Errors as answers: status, kind and headers; what is not for clients goes to the log."""

import logging

import msgspec
import pytest
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from facepairs.errors import BadConfig, BadGallery, ImageProblem, NoFace
from facepairs.server.answers import RequestProblem, error_answer


@pytest.mark.parametrize(
    ("error", "status", "kind", "header"),
    [
        (HTTPException(404), 404, "not_found", None),
        (HTTPException(405), 405, "method", None),
        (HTTPException(418), 418, "http", None),
        (RequestProblem(401, "token", "x"), 401, "token", ("www-authenticate", "Bearer")),
        (RequestProblem(429, "rate", "x"), 429, "rate", ("retry-after", "1")),
        (RequestProblem(503, "overloaded", "x"), 503, "overloaded", ("retry-after", "1")),
        (BadGallery("secret.gallery: x"), 503, BadGallery.kind, ("retry-after", "1")),
        (ImageProblem("x", "too_large"), 413, "image", None),
        (ImageProblem("x", "not_image"), 415, "image", None),
        (ImageProblem("x", "unsupported"), 415, "image", None),
        (ImageProblem("x", "unreadable"), 422, "image", None),
        (NoFace("x"), 422, NoFace.kind, None),
        (BadConfig("x"), 422, "config", None),
        (RuntimeError("secret"), 500, "bug", None),
    ],
)
def test_an_error_has_a_status_and_a_kind(error, status, kind, header, caplog):
    with caplog.at_level(logging.ERROR, "facepairs.server"):
        answer = error_answer(error)
    told = msgspec.json.decode(answer.body)["error"]
    assert (answer.status_code, told["kind"]) == (status, kind)
    assert "secret" not in told["message"]
    assert ("secret.gallery" in caplog.text) == isinstance(error, BadGallery)
    assert header is None or answer.headers[header[0]] == header[1]
    assert header or not {"retry-after", "www-authenticate"} & {*answer.headers}


def test_who_does_not_wait_gets_nothing():
    answer = error_answer(ClientDisconnect())
    assert (answer.status_code, answer.body) == (499, b"")
