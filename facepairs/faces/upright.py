"""A photo that was decoded once: its faces, the crops of them, and what makes it hard to judge."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from PIL import Image

from facepairs.faces.alignment import fit_crop
from facepairs.faces.detector import LARGE_PX, Face, find_faces, in_full_size
from facepairs.faces.hints import CUT_OFF, UNALIGNED, Hint, photo_hints
from facepairs.images.crop import Crop, CropSpec, warp_photo
from facepairs.images.jpeg import lacks_end
from facepairs.images.orientation import turn_of
from facepairs.images.photo import Photo, hold_budget, load_upright
from facepairs.images.pixels import Pixels
from facepairs.images.warp import Similarity, warp

HINTS_SPEC = CropSpec(frame_px=250, crop_px=128)  # what the limits of hints were measured on


class UprightPhoto(NamedTuple):
    """A decoded photo.

    Attributes:
        photo: What was decoded.
        pixels: uint8[H, W, 3], upright, perhaps shrunk.
        scale: Of the pixels relative to the photo, at most 1.
    """

    photo: Photo
    pixels: Pixels
    scale: float

    def find_faces(self, every: bool = False) -> list[Face]:
        """Find faces, in pixels of the upright photo at its full size; see `detector.find_faces`.

        Raises:
            BadConfig: The detector's file is missing or not the expected one.
            ImageProblem: There is no face, and the image is nearly black.
        """
        return in_full_size(find_faces(self.pixels, every, self.photo.name), self.scale)

    def cut(self, to_square: Similarity, side_px: int) -> Crop:
        """Cut a rotated square, exactly as `warp_photo` does; without decoding where that is sure.

        Args:
            to_square: Map from the upright photo at its full size to the square.
            side_px: Side of the square.
        """
        opened = self.photo.opened
        is_file = opened is not None and turn_of(opened) is None
        if is_file and self.scale == 1 and to_square.scale > 0.5:  # nothing smaller is decoded
            return warp(self.pixels, to_square, side_px)
        return warp_photo(self.photo, to_square, side_px)

    def face_hints(self, face: Face) -> tuple[Hint, ...]:
        """Return what makes a face hard to judge."""
        to_square = fit_crop(face.landmarks, HINTS_SPEC)
        side_px = HINTS_SPEC.crop_px
        square = warp(self.pixels, to_square.of_scaled_image(self.scale), side_px)
        return (*photo_hints(square, side_px / to_square.scale, face), *self._damage())

    def whole_hints(self) -> tuple[Hint, ...]:
        """Return what makes the whole image hard to judge: nobody looked for a face."""
        height, width = self.pixels.shape[:2]
        side = HINTS_SPEC.side_px(width, height)
        left, top = (width - side) // 2, (height - side) // 2
        box = (left, top, left + side, top + side)
        size = (HINTS_SPEC.crop_px, HINTS_SPEC.crop_px)
        square = Image.fromarray(self.pixels).resize(size, Image.Resampling.BILINEAR, box)
        return (*photo_hints(np.asarray(square), side / self.scale), UNALIGNED, *self._damage())

    def _damage(self) -> tuple[Hint, ...]:
        content = self.photo.content
        return (CUT_OFF,) if isinstance(content, bytes) and lacks_end(content) else ()


@contextmanager
def upright(photo: Photo) -> Iterator[UprightPhoto]:
    """Decode a photo that `open_photo` returned, and hold the decode budget for the block.

    Raises:
        ImageProblem: The photo is damaged.
    """
    with hold_budget(photo):
        yield UprightPhoto(photo, *load_upright(photo, LARGE_PX))
