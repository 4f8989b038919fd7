"""`PhotoRecord`: what is known of a photo once it was inspected."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from facepairs.errors import NoFace, TooSmallFace
from facepairs.photos.detector import DETECTOR, MIN_FACE_PX
from facepairs.photos.frame import Face
from facepairs.photos.hints import Hint
from facepairs.photos.photo import MAX_PIXELS
from facepairs.photos.yunet import MAX_FACES

# Of records and embeddings on disk: change it with their fields, with the numbers of faces, with
# the hints and their limits, and with the meaning of `tf_decodable`.
FORMAT = 6

Side = Annotated[int, Meta(ge=0, le=MAX_PIXELS)]


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
    hints: tuple[Hint, ...] = ()
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
