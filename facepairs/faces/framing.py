"""From a photo as it comes to the frame that a network knows: the face found, levelled and cut out.

LFW was framed so: the box of a Viola-Jones detector, grown 2.2 times, brought to 250 x 250 pixels
(Huang et al., *Labeled Faces in the Wild*, 2007); of such a frame the network sees the centre.

**What counts as framed already**, and passes through unchanged, pixel for pixel:

1. an image of exactly the model's frame (`frame_px` x `frame_px`) or of LFW's 250 x 250 pixels; no
   face is looked for (and OpenCV not loaded);
2. an image whose shorter side is below LEAST_PX, too small for a face and what is around it;
3. a nearly square image whose largest face would be framed by nearly the whole image.

Everything else is framed, or raises NoFace.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from facepairs.errors import NoFace
from facepairs.faces.detector import Detector, Face, square
from facepairs.faces.hints import Hint, hints_of
from facepairs.images.bombs import JPEG, room, weight
from facepairs.images.photo import (
    Crop,
    Framing,
    Photo,
    Source,
    crop_photo,
    load_crop,
    load_upright,
    open_photo,
)

FRAME_BOXES = 2.2  # side of the frame in boxes
LFW_PX = 250
LEAST_PX = 50  # shorter side: below, a frame would hold a box of less than 22 pixels
NEARLY_SQUARE = 1.1  # longer side by shorter
SIZE_SLACK, CENTRE_SLACK = 1.25, 0.08  # how well frame and image agree, to be called the same
LEVEL_FROM = 4.0  # degrees: the lean of a level face measures 0 ± 3
SEARCH_PX = 1600  # longer side of the copy in which faces are looked for

FindFaces = Callable[[Crop, bool], Sequence[Face]]


@dataclass(frozen=True, eq=False)
class Portrait:
    """One face as the network sees it, and where it comes from.

    `crop` is uint8[crop_px, crop_px, 3]. `face` is in pixels of the upright photo of `size_px`
    (width, height), None where no face was looked for; `framed` is false where the image passed
    through as it came. `level` are the degrees by which it was turned clockwise, `faces` counts
    those found (see `Detector.faces`).
    """

    crop: Crop
    size_px: tuple[int, int]
    framed: bool = False
    face: Face | None = None
    level: float = 0.0
    faces: int | None = None
    hints: tuple[Hint, ...] = ()

    def told(self) -> str:
        """Say in words how the face was framed."""
        if not self.framed:
            return "as it came"
        assert self.face is not None
        side = round(self.face.side_px)
        level = f", levelled by {abs(self.level):.0f} degrees" if self.level else ""
        others = f", the largest of {self.faces} faces" if (self.faces or 0) > 1 else ""
        return f"face of {side} x {side} pixels{level}{others}"

    @property
    def box(self) -> list[int] | None:
        """The face's box in whole pixels: left, top, side."""
        if self.face is None:
            return None
        half = self.face.side_px / 2
        corner = (self.face.x - half, self.face.y - half, self.face.side_px)
        return [round(value) for value in corner]

    def place(self) -> str:
        """Say where the face is."""
        return "{0},{1} {2}x{2}".format(*self.box) if self.box else "the whole image"

    def to_json(self) -> dict[str, Any]:
        """Give a plain dict: framed, box [left, top, side], level, faces, hints."""
        return {
            "framed": self.framed,
            "box": self.box,
            "level": round(self.level, 1),
            "faces": self.faces,
            "hints": [hint._asdict() for hint in self.hints],
        }


def portraits(
    source: Source,
    framing: Framing,
    name: str | None = None,
    every: bool = False,
    find: FindFaces | None = None,
    hints: bool = True,
) -> list[Portrait]:
    """Frame the largest face of an image, or `every` one, the largest first; at least one.

    `find` gives the faces of uint8[H, W, 3]; by default `Detector` does. Without `hints` none are
    given, which saves more time than reading an image takes. Raises BadImage for what
    cannot be read, NoFace where no face is found.
    """
    photo = open_photo(source, name)
    size = (photo.width_px, photo.height_px)
    if _is_framed(size, framing):
        return [as_it_came(photo, framing, hints=hints)]
    # What is not a JPEG comes at its whole size, and is held until its faces are found.
    whole = not (isinstance(photo.content, bytes) and photo.content.startswith(JPEG))
    pixels = photo.width_px * photo.height_px
    with room.take(weight(photo.content, pixels, pixels) if whole else 0):
        return _found_portraits(photo, framing, every, find, hints)


def _found_portraits(
    photo: Photo, framing: Framing, every: bool, find: FindFaces | None, hints: bool
) -> list[Portrait]:
    image, scale = load_upright(photo, SEARCH_PX)
    found = [_scaled(face, 1 / scale) for face in (find or find_faces)(image, every)]
    if not found:
        raise NoFace(
            f"{photo.name}: no face found; give a photo that shows one from the front, or use "
            "--no-framing (framing=False) if it is a face already cut out"
        )
    size = (round(image.shape[1] / scale), round(image.shape[0] / scale))
    if _fills(found[0], size):
        return [as_it_came(photo, framing, found[0], len(found), hints)]
    chosen = found if every else found[:1]
    if scale < 1 and min(face.side_px for face in chosen) * FRAME_BOXES * scale < framing.frame_px:
        image, scale = load_upright(photo)  # the smaller copy would lose pixels of the face
    return [_portrait(image, scale, face, len(found), framing, hints) for face in chosen]


def as_it_came(
    photo: Photo,
    framing: Framing,
    face: Face | None = None,
    faces: int | None = None,
    hints: bool = True,
) -> Portrait:
    """Take an image for a frame."""
    crop = crop_photo(photo, framing)
    size = (photo.width_px, photo.height_px)
    told = hints_of(crop, framing.side_px(*size), face) if hints else ()
    return Portrait(crop, size, False, face, 0.0, faces, told)


def level_of(face: Face) -> float:
    """Give the degrees by which to turn a face clockwise: none for a lean that may be noise."""
    return face.lean if abs(face.lean) >= LEVEL_FROM else 0.0


def frame_face(image: Crop, face: Face, level: float, frame_px: int) -> Crop:
    """Cut a face's frame out of uint8[H, W, 3], turned clockwise: uint8[frame_px, frame_px, 3]."""
    return square(image, face, level, frame_px, FRAME_BOXES * face.side_px / frame_px)


def _is_framed(size: tuple[int, int], framing: Framing) -> bool:
    """Rules 1 and 2."""
    return size in {(framing.frame_px,) * 2, (LFW_PX, LFW_PX)} or min(size) < LEAST_PX


def _fills(face: Face, size: tuple[int, int]) -> bool:
    """Rule 3."""
    width, height = size
    if max(size) > NEARLY_SQUARE * min(size):
        return False
    off = max(abs(face.x - width / 2), abs(face.y - height / 2)) / min(size)
    share = FRAME_BOXES * face.side_px / min(size)
    return off <= CENTRE_SLACK and 1 / SIZE_SLACK <= share <= SIZE_SLACK


def _portrait(
    image: Crop, scale: float, face: Face, faces: int, framing: Framing, hints: bool
) -> Portrait:
    level = level_of(face)
    frame = frame_face(image, _scaled(face, scale), level, framing.frame_px)
    crop = load_crop(frame, framing)
    share = framing.crop_px / framing.frame_px
    told = hints_of(crop, face.side_px * FRAME_BOXES * share, face) if hints else ()
    size = (round(image.shape[1] / scale), round(image.shape[0] / scale))
    return Portrait(crop, size, True, face, level, faces, told)


def _scaled(face: Face, scale: float) -> Face:
    place = face.x * scale, face.y * scale, face.side_px * scale
    return Face(*place, face.lean, face.hits, face.profile)


_own = threading.local()


def find_faces(image: Crop, every: bool = False) -> list[Face]:
    """Find the faces of uint8[H, W, 3] with this thread's detector, the largest first."""
    import cv2

    if not hasattr(_own, "detector"):
        _own.detector = Detector()
    gray = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), np.uint8)
    found: list[Face] = _own.detector.faces(gray, every)
    return found
