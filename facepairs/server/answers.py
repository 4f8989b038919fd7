"""Answers of the server: results and errors as JSON."""

import msgspec
from starlette.responses import Response

from facepairs.errors import FacepairsError
from facepairs.images.problem import ImageProblem
from facepairs.server.problem import RequestProblem
from facepairs.server.schema import ErrorDetail, ErrorResult

RETRY_AFTER_S = 1
STATUS = {"too_large": 413, "not_image": 415, "unsupported": 415}  # of photos; others have 422
BUG = "this is a bug in facepairs; please report it with the server's log"


def answer(value: msgspec.Struct, status: int = 200) -> Response:
    """Return a result as JSON."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def error_answer(error: Exception) -> Response:
    """Return the answer to a request that failed; what is no error of ours is a bug."""
    status, kind, message = 500, "bug", BUG
    if isinstance(error, RequestProblem):
        status, kind, message = error.status, error.kind, str(error)
    elif isinstance(error, FacepairsError):
        problem = error.problem if isinstance(error, ImageProblem) else ""
        status, kind, message = STATUS.get(problem, 422), error.kind, str(error)
    response = answer(ErrorResult(ErrorDetail(kind, message)), status)
    if status in (429, 503):
        response.headers["retry-after"] = str(RETRY_AFTER_S)
    if status == 401:
        response.headers["www-authenticate"] = "Bearer"
    return response
