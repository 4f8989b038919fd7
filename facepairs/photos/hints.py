"""List what makes the score of a photo less reliable: light, sharpness, size, pose, cover."""

from collections.abc import Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.photos.crop import Crop, CropSpec, crop_photo
from facepairs.photos.frame import Face, crop_face, fit_crop
from facepairs.photos.photo import Photo

# Measured on one photo each of 1,500 training people of LFW's View 1, aligned, centre 128 of 250.
# One in a hundred is darker than DARK, brighter than BRIGHT, less sharp than BLURRED (of photos
# shrunk to a third and enlarged again, four in five), has a nose beside PROFILE_YAW, or a score
# below COVERED. Their roll is 0 +- 4 degrees; none is above TURNED_DEG.
HINTS_SPEC = CropSpec(frame_px=250, crop_px=128)
DARK, BRIGHT = 0.26, 0.66
BLURRED = 0.552
PROFILE_YAW = 0.36  # the nose's offset from the middle of the eyes, in eye distances
COVERED = 0.905  # of faces with the lower half covered, half are below; of those without eyes, all
TURNED_DEG = 30.0
# Pixels of the photo per pixel of the crop, along a side: those of a face of 60 pixels
SMALL = 60 / 114

Gray = npt.NDArray[np.float32]


class Hint(msgspec.Struct, frozen=True):
    """One weakness of a photo: `kind` for programs, `text` for people."""

    kind: str
    text: str


UNALIGNED = Hint(
    "unaligned", "the whole image was used: this model expects photos framed like LFW's"
)


def gray_of(crop: Crop) -> Gray:
    """Return the luma (ITU-R BT.601) of uint8[H, W, 3] as float32[H, W] in [0, 1]."""
    luma = np.array([0.299, 0.587, 0.114], np.float32) / 255
    return np.asarray(crop @ luma, np.float32)


def brightness(gray: Gray) -> float:
    """Return the mean of float32[H, W] in [0, 1] without black pixels, 0 if all are black.

    A crop is black where it reaches beyond its photo; that does not make the photo dark.
    """
    lit = gray[gray > 0]
    return float(lit.mean()) if lit.size else 0.0


def sharpness(gray: Gray) -> float:
    """Return the mean gradient of an image divided by that of a copy of half its size.

    Args:
        gray: float32[H, W] in [0, 1].

    Returns:
        From 0.5, when the image shows no more detail than the copy, to about 1 for noise. 1 also
        without any gradient, and when a side is under 4 pixels.
    """
    if min(gray.shape) < 4:
        return 1.0
    height, width = (length // 2 * 2 for length in gray.shape)
    half = gray[:height, :width].reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3))
    coarse = _gradient(half)
    return _gradient(gray) / coarse if coarse > 1e-6 else 1.0


def _gradient(gray: Gray) -> float:
    down, right = np.gradient(gray)
    return float(np.sqrt(down * down + right * right).mean())  # np.hypot takes twice the time


def hints_of_crop(crop: Crop, source_px: float, face: Face | None = None) -> tuple[Hint, ...]:
    """Return hints on a photo that is hard to judge.

    Args:
        crop: uint8[crop_px, crop_px, 3].
        source_px: Side of the square in the photo that the crop was resized from.
        face: The face that was aligned; None for a whole image.

    Returns:
        Hints of the kinds `small`, `blurred`, `dark` and `bright`, and of a face `profile`,
        `covered` and `turned`.
    """
    crop_px = len(crop)
    gray = gray_of(crop)
    light = brightness(gray)
    hints = []
    if source_px < SMALL * crop_px:
        hints.append(Hint("small", _too_small(crop_px, source_px, face)))
    elif sharpness(gray) < BLURRED:
        hints.append(Hint("blurred", "blurred, or enlarged from a smaller photo"))
    if light < DARK:
        hints.append(Hint("dark", f"dark: mean light {light:.2f} of 1"))
    if light > BRIGHT:
        hints.append(Hint("bright", f"too bright: mean light {light:.2f} of 1"))
    return (*hints, *_hints_of_landmarks(face)) if face else tuple(hints)


def hints_of_face(photo: Photo, face: Face) -> tuple[Hint, ...]:
    """Return hints on a face that is hard to judge; raise BadImage for damage."""
    square = crop_face(photo, face.landmarks, HINTS_SPEC)
    side_px = HINTS_SPEC.crop_px / fit_crop(face.landmarks, HINTS_SPEC).scale
    return hints_of_crop(square, side_px, face)


def hints_of_whole(photo: Photo) -> tuple[Hint, ...]:
    """Return hints on a whole image, without looking for a face."""
    square = crop_photo(photo, HINTS_SPEC)
    hints = hints_of_crop(square, HINTS_SPEC.side_px(photo.width_px, photo.height_px))
    return (*hints, UNALIGNED)


def _too_small(crop_px: int, source_px: float, face: Face | None) -> str:
    """Return the text of the hint `small`, with the side that other messages name."""
    if face is None:
        return f"too small: {source_px:.0f} pixels; {SMALL * crop_px:.0f} are enough"
    needed = SMALL * crop_px / source_px * face.side_px
    return f"too small: the face measures {face.side_px:.0f} pixels; {needed:.0f} are enough"


def _hints_of_landmarks(face: Face) -> Iterator[Hint]:
    if abs(face.yaw) > PROFILE_YAW:
        yield Hint("profile", "the face is seen from the side")
    if face.score < COVERED:
        yield Hint("covered", f"partly covered, or hard to make out: certainty {face.score:.2f}")
    if abs(face.roll_deg) > TURNED_DEG:
        yield Hint("turned", f"rotated by {abs(face.roll_deg):.0f} degrees, and corrected")
