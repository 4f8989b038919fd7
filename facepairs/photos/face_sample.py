"""One face of a photo as a network takes it, and the reference to a face."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy.typing as npt

from facepairs.errors import BadConfig, BadImage, ImageProblem
from facepairs.photos.crop import Crop
from facepairs.photos.frame import Face
from facepairs.photos.hints import Hint
from facepairs.photos.photo_record import PhotoRecord
from facepairs.support.words import counted

LEVEL_DEG = 5.0  # a smaller roll is not worth a word


@dataclass(frozen=True)
class FaceRef(os.PathLike[str]):
    """A reference to one face of a photo.

    Attributes:
        path: The photo.
        number: The number of the face, from 1 for the most prominent.
    """

    path: Path
    number: int = 1

    def __fspath__(self) -> str:
        return str(self.path)


class FaceResult(msgspec.Struct, frozen=True, kw_only=True):
    """A face of a photo, as results have it.

    Attributes:
        photo: The name of the photo: a path, or what messages call it.
        number: The number of the face, from 1 for the most prominent.
        box: The square around it, [left, top, side] in pixels of the upright photo; None of a whole
            image.
        landmarks: Five points [x, y] in pixels: eyes, nose and corners of the mouth, the left ones
            of the image first; None of a whole image.
        score: The certainty that this is a face, 0 to 1; None of a whole image.
        roll_deg: The rotation in degrees; None of a whole image.
        faces: Number of faces found in the photo; None if they were not looked for.
        hints: What makes the face hard to judge.
        description: The face in words.
        crop: What the network sees, a data URL; only if it was asked for.
    """

    photo: str
    number: int
    box: list[int] | None
    landmarks: list[list[float]] | None
    score: float | None
    roll_deg: float | None
    faces: int | None
    hints: tuple[Hint, ...]
    description: str
    crop: str | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True, eq=False)
class FaceSample:
    """One face of a photo, or the reason why the photo has none.

    Attributes:
        name: The name of the photo in messages.
        error: Why it cannot be used, else None.
        digest: The SHA-256 of the photo's file; b"" of an image in memory, or of an unread file.
        record: What the photo shows; None if that is not known.
        number: The number of the face, from 1 for the most prominent.
        face: The face in pixels of the upright photo; None for a whole image.
        hints: What makes the face hard to judge. Of faces behind the first, only `detect` and
            enrolment look for hints.
        crop: What the network sees: uint8[crop_px, crop_px, 3]; None where it is not needed.
        embedding: What the network compares: float32[D], or the crop itself if it scores pairs.
            None where it is not needed.
        is_new: The cache may keep what is found in the photo, and does not have all of it yet.
    """

    name: str = ""
    error: BadImage | None = None
    digest: bytes = b""
    record: PhotoRecord | None = None
    number: int = 1
    face: Face | None = None
    hints: tuple[Hint, ...] = ()
    crop: Crop | None = field(default=None, repr=False)  # an image of a person belongs in no log
    embedding: npt.NDArray[Any] | None = field(default=None, repr=False)
    is_new: bool = False

    @property
    def faces(self) -> int | None:
        """Number of faces found in the photo; None if they were not looked for."""
        return None if self.record is None else self.record.face_count

    @property
    def box(self) -> list[int] | None:
        """The square around the face, see `Face.box`; None without a face."""
        return None if self.face is None else self.face.box

    def to_record(self) -> PhotoRecord:
        """Return the record; that of an unreadable photo says what the problem is."""
        if self.record is None and isinstance(self.error, ImageProblem):
            return PhotoRecord(self.error.problem, self.error.reason, digest=self.digest)
        return self.record or PhotoRecord()

    def describe(self) -> str:
        """Return in words what the network sees."""
        if self.face is None:
            return "the whole image"
        side, roll_deg = round(self.face.side_px), self.face.roll_deg
        turned = f", turned by {abs(roll_deg):.0f} degrees" if abs(roll_deg) >= LEVEL_DEG else ""
        chosen = f"number {self.number}" if self.number > 1 else "the most prominent"
        others = f", {chosen} of {self.faces}" if (self.faces or 0) > 1 else ""
        return f"face of {side} x {side} pixels{turned}{others}"

    def to_result(self) -> FaceResult:
        """Return the face without its pixels and embedding, rounded."""
        face = self.face
        return FaceResult(
            photo=self.name,
            number=self.number,
            box=self.box,
            landmarks=None if face is None else face.landmarks.round(1).tolist(),
            score=None if face is None else round(face.score, 3),
            roll_deg=None if face is None else round(face.roll_deg, 1),
            faces=self.faces,
            hints=self.hints,
            description=self.describe(),
        )


def choose_face(faces: list[FaceSample], number: int) -> FaceSample:
    """Return one of all faces of a photo.

    Args:
        faces: All of them, in order.
        number: From 1.

    Raises:
        BadConfig: No face has this number.
    """
    if not 1 <= number <= len(faces):
        raise BadConfig(f"{faces[0].name}: {no_such_face(number, len(faces))}")
    return faces[number - 1]


def no_such_face(number: int, faces: int) -> str:
    """Return in words that a photo with so many faces has none of that number."""
    return f"no face {number}; it shows {counted(faces, 'face')}, numbered from 1"
