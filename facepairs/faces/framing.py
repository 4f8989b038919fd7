"""Find the faces of a photo and cut out the frames that a network knows.

LFW was made the same way: the box of a Viola-Jones detector, grown 2.2 times and resized to
250 x 250 pixels. Of such a frame the network sees the centre.

**An image that counts as framed already** passes through unchanged, pixel for pixel:

1. an image of exactly the model's frame (`frame_px` x `frame_px`) or of LFW's 250 x 250 pixels; the
   detector does not run, and OpenCV is not loaded;
2. an image whose shorter side is below MIN_PX, too small for a face and its surroundings;
3. a nearly square image whose largest face would be framed by nearly the whole image.

Every other image is framed, or raises NoFace.

References:
    Huang et al., *Labeled Faces in the Wild*, UMass Amherst TR 07-49, 2007.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from facepairs.errors import NoFace
from facepairs.faces.detector import Detector, Face, cut_square
from facepairs.faces.hints import Hint, photo_hints
from facepairs.images import jpeg
from facepairs.images.crop import Crop, CropSpec, crop_photo, load_crop
from facepairs.images.decode_budget import decode_budget, decode_cost_px
from facepairs.images.photo import ImageSource, Photo, load_upright, open_photo
from facepairs.images.pixels import Pixels

FRAME_BOXES = 2.2  # side of the frame, in boxes of the detector
LFW_PX = 250
MIN_PX = 50  # shorter side: below, a frame would hold a box of less than 22 pixels
NEARLY_SQUARE = 1.1  # longer side by shorter
SIZE_SLACK, CENTRE_SLACK = 1.25, 0.08  # how much a face's frame may differ from the image (rule 3)
MIN_ROLL_DEG = 4.0  # the measured roll of an upright face is 0 +- 3 degrees
SEARCH_PX = 1600  # longer side of the copy in which faces are searched

FindFaces = Callable[[Pixels, bool], Sequence[Face]]


@dataclass(frozen=True, eq=False)
class AlignedFace:
    """One face as the network sees it, and where it comes from.

    Attributes:
        crop: uint8[crop_px, crop_px, 3].
        size_px: Width and height of the upright photo.
        framed: False where the whole image was used, see the module's rules.
        face: The face in pixels of the upright photo, None where the detector did not run.
        roll_deg: Degrees by which the frame was turned clockwise to bring the face upright.
        faces: Number of faces found (see `Detector.faces`), None where the detector did not run.
        hints: What makes the photo hard to judge.
    """

    crop: Crop
    size_px: tuple[int, int]
    framed: bool = False
    face: Face | None = None
    roll_deg: float = 0.0
    faces: int | None = None
    hints: tuple[Hint, ...] = ()

    def describe(self) -> str:
        """Return in words how the face was framed."""
        if not self.framed:
            return "the whole image, not framed again"
        assert self.face is not None
        side = round(self.face.side_px)
        turned = f", levelled by {abs(self.roll_deg):.0f} degrees" if self.roll_deg else ""
        others = f", the largest of {self.faces} faces" if (self.faces or 0) > 1 else ""
        return f"face of {side} x {side} pixels{turned}{others}"

    @property
    def box(self) -> list[int] | None:
        """The face's box in whole pixels: left, top, side."""
        if self.face is None:
            return None
        half = self.face.side_px / 2
        corner = (self.face.x - half, self.face.y - half, self.face.side_px)
        return [round(value) for value in corner]

    def describe_box(self) -> str:
        """Return in words where the face is."""
        return "{0},{1} {2}x{2}".format(*self.box) if self.box else "the whole image"

    def to_json(self) -> dict[str, Any]:
        """Return a plain dict: framed, box [left, top, side], roll_deg, faces, hints."""
        return {
            "framed": self.framed,
            "box": self.box,
            "roll_deg": round(self.roll_deg, 1),
            "faces": self.faces,
            "hints": [hint._asdict() for hint in self.hints],
        }


def align_faces(
    source: ImageSource,
    spec: CropSpec,
    name: str | None = None,
    every: bool = False,
    find: FindFaces | None = None,
    hints: bool = True,
) -> list[AlignedFace]:
    """Find and frame the largest face of an image.

    Args:
        source: An image, see `load_crop`.
        spec: Which crop of a frame the network sees.
        name: What messages call the image.
        every: Frame every face found, the largest first.
        find: Replaces the detector: (uint8[H, W, 3], every) -> faces.
        hints: Look for what makes the photo hard to judge; takes longer than reading an image.

    Returns:
        At least one face.

    Raises:
        BadImage: The image cannot be read.
        NoFace: No face is found.
    """
    photo = open_photo(source, name)
    if _is_frame((photo.width_px, photo.height_px), spec):
        return [unaligned_face(photo, spec, hints=hints)]
    # Formats other than JPEG are decoded at full size and held until their faces are found.
    is_jpeg = isinstance(photo.content, bytes) and photo.content.startswith(jpeg.SIGNATURE)
    pixels = photo.width_px * photo.height_px
    with decode_budget.acquire(0 if is_jpeg else decode_cost_px(photo.content, pixels, pixels)):
        return _find_and_frame(photo, spec, every, find or find_faces, hints)


def _find_and_frame(
    photo: Photo, spec: CropSpec, every: bool, find: FindFaces, hints: bool
) -> list[AlignedFace]:
    image, scale = load_upright(photo, SEARCH_PX)
    found = [_scaled(face, 1 / scale) for face in find(image, every)]
    if not found:
        raise NoFace(
            f"{photo.name}: no face found; use a photo that shows one from the front, or "
            "--no-framing (framing=False) if it is a face already cut out"
        )
    size = (round(image.shape[1] / scale), round(image.shape[0] / scale))
    if _fills_image(found[0], size):
        return [unaligned_face(photo, spec, found[0], len(found), hints)]
    chosen = found if every else found[:1]
    if scale < 1 and min(face.side_px for face in chosen) * FRAME_BOXES * scale < spec.frame_px:
        image, scale = load_upright(photo)  # the smaller copy would lose pixels of the face
    return [_align(image, scale, face, len(found), spec, hints) for face in chosen]


def unaligned_face(
    photo: Photo,
    spec: CropSpec,
    face: Face | None = None,
    faces: int | None = None,
    hints: bool = True,
) -> AlignedFace:
    """Return the crop of a photo that is a frame already.

    Args:
        photo: What `open_photo` returned.
        spec: Which square.
        face: The face that was found, if any.
        faces: How many faces were found, None if nobody looked for them.
        hints: Look for problems of the photo, too.

    Raises:
        BadImage: The photo is damaged.
    """
    crop = crop_photo(photo, spec)
    size = (photo.width_px, photo.height_px)
    found = photo_hints(crop, spec.side_px(*size), face) if hints else ()
    return AlignedFace(crop, size, False, face, 0.0, faces, found)


def correction_deg(face: Face) -> float:
    """Return by how many degrees to turn a face clockwise; 0 for a roll that may be noise."""
    return face.roll_deg if abs(face.roll_deg) >= MIN_ROLL_DEG else 0.0


def frame_face(image: Pixels, face: Face, roll_deg: float, frame_px: int) -> Pixels:
    """Cut the frame of a face out of an image.

    Args:
        image: uint8[H, W, 3].
        face: The face in pixels of the image.
        roll_deg: By how much to turn the image, clockwise, in degrees.
        frame_px: Side of the frame.

    Returns:
        uint8[frame_px, frame_px, 3].
    """
    return cut_square(image, face, roll_deg, frame_px, FRAME_BOXES * face.side_px / frame_px)


def _is_frame(size: tuple[int, int], spec: CropSpec) -> bool:
    """Return whether rule 1 or 2 applies."""
    return size in {(spec.frame_px,) * 2, (LFW_PX, LFW_PX)} or min(size) < MIN_PX


def _fills_image(face: Face, size: tuple[int, int]) -> bool:
    """Return whether rule 3 applies."""
    width, height = size
    if max(size) > NEARLY_SQUARE * min(size):
        return False
    offset = max(abs(face.x - width / 2), abs(face.y - height / 2)) / min(size)
    share = FRAME_BOXES * face.side_px / min(size)
    return offset <= CENTRE_SLACK and 1 / SIZE_SLACK <= share <= SIZE_SLACK


def _align(
    image: Pixels, scale: float, face: Face, faces: int, spec: CropSpec, hints: bool
) -> AlignedFace:
    """Frame one face; `image` is the photo at `scale`, `face` is in pixels of the photo."""
    roll_deg = correction_deg(face)
    crop = load_crop(frame_face(image, _scaled(face, scale), roll_deg, spec.frame_px), spec)
    source_px = face.side_px * FRAME_BOXES * spec.crop_px / spec.frame_px
    found = photo_hints(crop, source_px, face) if hints else ()
    size = (round(image.shape[1] / scale), round(image.shape[0] / scale))
    return AlignedFace(crop, size, True, face, roll_deg, faces, found)


def _scaled(face: Face, scale: float) -> Face:
    return replace(face, x=face.x * scale, y=face.y * scale, side_px=face.side_px * scale)


_thread = threading.local()


def find_faces(image: Pixels, every: bool = False) -> list[Face]:
    """Find the faces of uint8[H, W, 3] with this thread's detector, the largest first."""
    import cv2

    if not hasattr(_thread, "detector"):
        _thread.detector = Detector()
    gray = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), np.uint8)
    found: list[Face] = _thread.detector.faces(gray, every)
    return found
