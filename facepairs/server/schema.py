"""The types of requests, and of answers that no command prints.

Requests are checked against them, and `/openapi.json` is built from them. All other answers are the
results of Python and the commands themselves.
"""

from typing import Annotated

from msgspec import Meta, Struct

from facepairs.bundles.error_profile import EQUAL_PRIORS
from facepairs.bundles.rates import ErrorTable, OperatingPoint
from facepairs.gallery.stores.base import Person
from facepairs.photos.face_sample import FaceResult
from facepairs.support.results import Result

MOST_PHOTOS = 16  # of a field that takes several: those of one call of the network

Photo = Annotated[bytes, Meta(description="An image file; in JSON, base64 of it.")]
Photos = Annotated[list[Photo], Meta(min_length=1, max_length=MOST_PHOTOS)]
FaceNumber = Annotated[
    int,
    Meta(ge=1, description="The number of a face, from 1 for the most prominent, as /v1/detect and "
    "the commands have it."),
]  # fmt: skip
Score = Annotated[float, Meta(description="Accept from this score on.")]
Describe = Annotated[bool, Meta(description="Add `description`: the answer in rows of text.")]


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields of a request."""


class VerifyRequest(Request, frozen=True, kw_only=True):
    """Two photos, and how to decide; at most one of `threshold` and `max_fmr`."""

    left: Photo
    right: Photo
    left_face: FaceNumber | None = None
    right_face: FaceNumber | None = None
    threshold: Score | None = None
    max_fmr: Annotated[
        float | None, Meta(description="Use the model's threshold for this false match rate.")
    ] = None
    prior: Annotated[
        float, Meta(description="Share of genuine pairs among yours, for the probability.")
    ] = EQUAL_PRIORS
    describe: Describe = False


class DetectRequest(Request, frozen=True, kw_only=True):
    """A photo."""

    image: Photo
    crops: Annotated[bool, Meta(description="Add each face as the network sees it, PNG.")] = False


class EmbedRequest(Request, frozen=True, kw_only=True):
    """Photos; the most prominent face of each is embedded."""

    image: Photos


class EnrolRequest(Request, frozen=True, kw_only=True):
    """Photos of one person, who may be new."""

    name: str
    photo: Photos
    face: FaceNumber = 1
    forget_after: Annotated[float | None, Meta(description="Days until these expire.")] = None
    any_quality: Annotated[bool, Meta(description="Also take photos that are hard to judge.")] = (
        False
    )


class ForgetRequest(Request, frozen=True, kw_only=True):
    """A person of the gallery."""

    name: str


class IdentifyRequest(Request, frozen=True, kw_only=True):
    """A photo; at most one of `max_fpir` and `threshold`."""

    image: Photo
    face: FaceNumber = 1
    max_fpir: Annotated[
        float | None, Meta(description="Share of strangers who may be mistaken for known people.")
    ] = None
    threshold: Score | None = None
    top: Annotated[int, Meta(ge=1, le=1000, description="Candidates to return.")] = 5
    describe: Describe = False


class ErrorDetail(Struct, frozen=True):
    """An error, for programs and for people."""

    kind: str
    message: str


class ErrorResult(Struct, frozen=True):
    """The answer to a failed request."""

    error: ErrorDetail


class DetectResult(Result, frozen=True, kw_only=True):
    """The faces of a photo that are large enough for a verdict, the most prominent first."""

    width: int
    height: int
    faces: list[FaceResult]
    model: str


class EmbedResult(Result, frozen=True, kw_only=True):
    """An embedding and the face of each photo, in their order."""

    embeddings: list[list[float]]
    faces: list[FaceResult]
    model: str


class ModelResult(Result, frozen=True, kw_only=True):
    """The model, its default threshold, and its errors at every threshold (`curve`)."""

    model: str
    kind: str
    aligned: bool
    gallery: Annotated[str | None, Meta(description="null, `read` or `write`.")]
    max_bytes: Annotated[int, Meta(description="Of a photo.")]
    operating_point: OperatingPoint
    label: Annotated[str, Meta(description="The operating point in words.")]
    description: Annotated[str, Meta(description="Its errors in words.")]
    curve: ErrorTable | None


class PeopleResult(Result, frozen=True, kw_only=True):
    """All enrolled people."""

    people: list[Person]


class ForgetResult(Result, frozen=True, kw_only=True):
    """The number of removed photos."""

    name: str
    photos: int


class StatusResult(Struct, frozen=True):
    """The server works."""

    status: str
