"""What is known of a photo and of the faces in it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy.typing as npt
from msgspec import Meta

from facepairs.errors import BadConfig, BadImage, ImageProblem, NoFace, TooSmallFace
from facepairs.photos.crop import Crop
from facepairs.photos.detector import DETECTOR, MIN_FACE_PX
from facepairs.photos.frame import Face
from facepairs.photos.hints import Hint
from facepairs.photos.photo import MAX_PIXELS
from facepairs.photos.yunet import MAX_FACES
from facepairs.support.words import counted

# Of records and embeddings on disk: change it with their fields, with the numbers of faces, with
# the hints and their limits, and with the meaning of `tf_decodable`.
FORMAT = 6
MAX_HINTS = 9

Side = Annotated[int, Meta(ge=0, le=MAX_PIXELS)]
LEVEL_DEG = 5.0  # a smaller roll is not worth a word


class PhotoRecord(msgspec.Struct, frozen=True, array_like=True):
    """The result of inspecting one photo.

    Attributes:
        problem: "" for a photo that can be decoded, else "zero_byte", "not_image", "unsupported",
            "unreadable", "no_permission" or "too_large".
        reason: The problem in words.
        width_px: Width of the upright photo.
        height_px: Height of the upright photo.
        tf_decodable: TensorFlow decodes the file exactly as Pillow does.
        orientation: How the photo is stored, by EXIF: 1 to 8.
        faces: The faces, the most prominent first, in pixels of the upright photo; None if they
            were not looked for.
        hints: What makes the photo hard to judge: its most prominent face that is large enough, or
            the whole image if faces were not looked for.
        digest: SHA-256 of the file, b"" if it could not be read.
    """

    problem: str = ""
    reason: str = ""
    width_px: Side = 0
    height_px: Side = 0
    tf_decodable: bool = False
    orientation: Annotated[int, Meta(ge=1, le=8)] = 1
    faces: Annotated[tuple[Face, ...], Meta(max_length=MAX_FACES)] | None = None
    hints: Annotated[tuple[Hint, ...], Meta(max_length=MAX_HINTS)] = ()
    digest: Annotated[bytes, Meta(max_length=32)] = b""

    @property
    def content(self) -> int:
        """The first 64 bits of the digest, by which a photo is recognised; 0 without one."""
        return int.from_bytes(self.digest[:8], signed=True)

    @property
    def face_count(self) -> int | None:
        """Number of faces, those that are too small included; None if they were not looked for."""
        return None if self.faces is None else len(self.faces)

    @property
    def usable(self) -> list[Face]:
        """The faces that are large enough; their numbers count from 1 in this order."""
        return large_enough(self.faces or ())

    def numbered_faces(self, name: str) -> list[Face] | list[None]:
        """Return the faces in the order of their numbers; [None] for a whole image.

        Args:
            name: The name of the photo in messages.

        Raises:
            NoFace: There is none.
            TooSmallFace: All are smaller than MIN_FACE_PX.
        """
        if self.faces is None:
            return [None]
        if usable := self.usable:
            return usable
        kind, reason = self.why_unusable(aligned=True) or ("", "")
        raise (NoFace if kind == "no_face" else TooSmallFace)(f"{name}: {reason}")

    def why_unusable(self, aligned: bool) -> tuple[str, str] | None:
        """Return the kind of problem of a photo that cannot be used, and the problem in words.

        Args:
            aligned: A face is needed: "no_face" and "small_face" are problems, too.
        """
        if self.problem:
            return self.problem, self.reason
        if not aligned or self.usable:
            return None
        if not self.faces:
            return "no_face", "no face found; use a photo that shows the face clearly"
        side_px = self.faces[0].side_px
        return (
            "small_face",
            f"its face is {side_px:.0f} pixels from the brows to the chin, a verdict needs "
            f"{MIN_FACE_PX}; use a larger photo",
        )


def record_kind(aligned: bool) -> str:
    """Return the key of a kind of records: versions, and whether faces were looked for."""
    return f"{DETECTOR}-{FORMAT}" if aligned else f"{DETECTOR}-{FORMAT}-whole"


def large_enough(faces: Sequence[Face]) -> list[Face]:
    """Return the faces of MIN_FACE_PX or more, in their order."""
    return [face for face in faces if face.side_px >= MIN_FACE_PX]


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
