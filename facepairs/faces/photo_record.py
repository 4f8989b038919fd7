"""What is known of a photo once it was inspected, and its form on disk."""

import zlib
from collections.abc import Sequence
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from facepairs.errors import BadData
from facepairs.faces.detector import Face
from facepairs.images.pixels import MAX_PIXELS

MAX_FACES = 1000  # that are kept of one photo
CHECKSUM_BYTES = 4

Number = Annotated[float, Meta(ge=-1e6, le=1e6)]  # refuses NaN, too
Side = Annotated[int, Meta(ge=0, le=MAX_PIXELS)]
FaceRow = Annotated[tuple[Number, ...], Meta(min_length=11, max_length=11)]
"""The score, then x and y of the eyes, the nose tip and the mouth corners."""


class PhotoRecord(msgspec.Struct, frozen=True, array_like=True):
    """The result of inspecting one photo.

    Attributes:
        problem: "" for a photo that can be decoded, else "zero_byte", "not_image", "unsupported",
            "unreadable", "no_permission" or "too_large".
        reason: The problem in words.
        width_px: Width of the upright photo.
        height_px: Height of the upright photo.
        plain: TensorFlow decodes the file exactly as Pillow does.
        orientation: EXIF orientation, 1 to 8.
        faces: The faces, the most prominent first, in pixels of the upright photo; None if they
            were not looked for.
        digest: SHA-256 of the file, b"" if it could not be read.
    """

    problem: str = ""
    reason: str = ""
    width_px: Side = 0
    height_px: Side = 0
    plain: bool = False
    orientation: Annotated[int, Meta(ge=1, le=8)] = 1
    faces: Annotated[tuple[FaceRow, ...], Meta(max_length=MAX_FACES)] | None = None
    digest: Annotated[bytes, Meta(max_length=32)] = b""

    @property
    def face(self) -> Face | None:
        """The most prominent face, None if there is none."""
        if not self.faces:
            return None
        score, *points = self.faces[0]
        return Face(np.array(points).reshape(5, 2), score)


def face_rows(faces: Sequence[Face]) -> tuple[FaceRow, ...]:
    """Return the `faces` of a record."""
    return tuple((face.score, *face.landmarks.ravel().tolist()) for face in faces[:MAX_FACES])


def encode_record(record: PhotoRecord) -> bytes:
    """Return the form of a record on disk: a CRC-32, then MessagePack."""
    data = msgspec.msgpack.encode(record)
    return zlib.crc32(data).to_bytes(CHECKSUM_BYTES) + data


def decode_record(data: bytes) -> PhotoRecord:
    """Return the record that `encode_record` encoded.

    Raises:
        BadData: The bytes are damaged.
    """
    content = data[CHECKSUM_BYTES:]
    if zlib.crc32(content).to_bytes(CHECKSUM_BYTES) != data[:CHECKSUM_BYTES]:
        raise BadData("damaged record of a photo: wrong checksum")
    try:
        return msgspec.msgpack.decode(content, type=PhotoRecord)
    except msgspec.MsgspecError as error:
        raise BadData(f"damaged record of a photo: {error}") from None
