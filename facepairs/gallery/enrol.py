"""Photos to enrol: hash, find the face, judge its quality, embed; and what became of them."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import numpy as np

from facepairs.errors import BadImage
from facepairs.faces.align import AlignedFace
from facepairs.images.photo import content_of, read_checked
from facepairs.verification.scorer import ScoreArray
from facepairs.verification.verifier import Verifier

DEFAULT_FPIR = 0.01  # also the share of new people for whom the warning is false
POOR = ("small", "blurred", "dark", "bright", "profile", "covered")
"""Hints for which a photo is not enrolled: every later comparison would suffer from it."""


class Refused(msgspec.Struct, frozen=True):
    """A photo that was not enrolled, and why."""

    person: str
    photo: str
    error: str


class Resemblance(msgspec.Struct, frozen=True):
    """A photo that was enrolled, although somebody else in the gallery matches it."""

    person: str
    photo: str
    other: str
    score: float

    def describe(self) -> str:
        """Return a warning in words."""
        return (
            f"{self.photo}: already enrolled as {self.other}? score {self.score:.4f} (enrolled as "
            f"{self.person})"
        )


@dataclass
class Enrolment:
    """What became of some photos.

    Attributes:
        enrolled: Number of photos that were added.
        known: Number of photos that were enrolled for the same person before.
        several_faces: Number of added photos with several faces; the most prominent was taken.
        refused: Photos that cannot be used, or are enrolled for somebody else.
        resemblances: Added photos that match somebody else.
    """

    enrolled: int = 0
    known: int = 0
    several_faces: int = 0
    refused: list[Refused] = field(default_factory=list)
    resemblances: list[Resemblance] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return a plain dict."""
        return dict(msgspec.to_builtins(self))


class Photo(NamedTuple):
    """A photo to enrol: whose it is, what messages call it, and its file or content.

    `position` is that of a face, see `Verifier.align_face`.
    """

    person: str
    name: str
    source: Path | bytes | IO[bytes]
    position: int | None = None


class ReadPhoto(NamedTuple):
    """A photo after it was read: with a problem, or with its embedding (or known before)."""

    person: str
    photo: str
    digest: bytes = b""
    vector: ScoreArray | None = None
    faces: int = 1
    problem: str = ""


@dataclass(frozen=True)
class PhotoReader:
    """Reads and embeds some photos in one call of the network; threads share it.

    Attributes:
        verifier: Its network embeds.
        is_known: Tells whether the photo of a SHA-256 is enrolled, so that it need not be read.
        any_quality: Take photos that are hard to judge, too.
    """

    verifier: Verifier
    is_known: Callable[[bytes], object]
    any_quality: bool = False

    def __call__(self, photos: Sequence[Photo]) -> list[ReadPhoto]:
        """Return what was read of each photo."""
        read, faces = [], []
        for photo in photos:
            result, face = self._read(photo)
            read.append(result)
            faces.append(face)
        crops = [face.crop for face in faces if face]
        rows = iter(self.verifier.scorer.embed(np.stack(crops)) if crops else ())
        return [
            result._replace(vector=next(rows), faces=face.faces or 1) if face else result
            for result, face in zip(read, faces, strict=True)
        ]

    def _read(self, photo: Photo) -> tuple[ReadPhoto, AlignedFace | None]:
        """Return the photo, and its face if it is to be embedded."""
        person, name, source, position = photo
        result = ReadPhoto(person, name)
        try:
            data = read_checked(source, content_of, name)
            result = result._replace(digest=hashlib.sha256(data).digest())
            if self.is_known(result.digest):
                return result, None
            # Not the cache of faces, which would remember a person after their removal.
            face = self.verifier.align_face(data, name, position)
        except BadImage as error:
            return result._replace(problem=str(error)), None
        poor = [hint.text for hint in face.hints if hint.kind in POOR]
        if poor and not self.any_quality:
            return result._replace(problem=f"{name}: {'; '.join(poor)}; use a better photo"), None
        return result, face


def note_known(enrolment: Enrolment, photo: ReadPhoto, owner: str | None) -> None:
    """Note a photo that is enrolled already; `owner` is who is enrolled with it."""
    if owner == photo.person:
        enrolment.known += 1
        return
    error = (
        f"{photo.photo}: this very photo is enrolled as {owner}; if it does not show them, "
        f"remove {owner} and enrol their other photos again"
    )
    if owner is None:
        error = f"{photo.photo}: its time was over at this moment; enrol it again"
    enrolment.refused.append(Refused(photo.person, photo.photo, error))
