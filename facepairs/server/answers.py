"""The server's answers: results and errors as JSON."""

import logging

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from facepairs.errors import BadGallery, FacepairsError, ImageProblem
from facepairs.server.schema import ErrorDetail, ErrorResult

GONE = 499  # as nginx calls it when the client does not wait for the answer
PHOTO_STATUS = {"too_large": 413, "not_image": 415, "unsupported": 415}  # others have 422
LATER = {"retry-after": "1"}
HEADERS = {401: {"www-authenticate": "Bearer"}, 429: LATER, 503: LATER}
NO_GALLERY = "the gallery cannot be used now; the server's log says why"
BUG = "this is a bug in facepairs; please report it with the server's log"


class RequestProblem(HTTPException):
    """A request that the server refuses.

    Attributes:
        status_code: HTTP's status.
        kind: The kind of problem, for programs.
    """

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(status, message)
        self.kind = kind


def answer(value: msgspec.Struct, status: int = 200) -> Response:
    """Return a result as JSON."""
    body = msgspec.json.encode(value)
    return Response(body, status, HEADERS.get(status), media_type="application/json")


def error_answer(error: Exception) -> Response:
    """Return the answer to a failed request; an unexpected exception is reported as a bug."""
    if isinstance(error, ClientDisconnect):
        return Response(status_code=GONE)
    status, kind, message = 500, "bug", BUG
    if isinstance(error, HTTPException):  # ours, or for an unknown route or method
        others = {404: "not_found", 405: "method"}.get(error.status_code, "http")
        status, kind, message = error.status_code, getattr(error, "kind", others), error.detail
    elif isinstance(error, BadGallery):  # whose message has the gallery's place
        logging.getLogger("facepairs.server").error("gallery: %s", error)
        status, kind, message = 503, error.kind, NO_GALLERY
    elif isinstance(error, FacepairsError):
        problem = error.problem if isinstance(error, ImageProblem) else ""
        status, kind, message = PHOTO_STATUS.get(problem, 422), error.kind, str(error)
    return answer(ErrorResult(ErrorDetail(kind, message)), status)
