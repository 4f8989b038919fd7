"""How every image of an index is cropped: around its face, or the centre square."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from facepairs.choices import Align
from facepairs.images.crop import Crop, CropSpec, crop_photo, warp_photo
from facepairs.images.photo import Photo
from facepairs.images.warp import Points, Similarity

LFW_FRAME = "lfw-frame"  # the alignment of images that are taken as they are
ALIGNMENTS: dict[Align, str] = {"landmarks": "landmarks-5", "none": LFW_FRAME}
"""The name in a bundle's manifest of each way to align."""


@dataclass(frozen=True, eq=False)
class CropPlan:
    """How every image of an index is cropped.

    Attributes:
        spec: Side of the crop; without a map, which centre square it is.
        plain_px: int32[N, 2], height and width of each image that TensorFlow decodes as Pillow does
            (see `images.decode`); zeros for all others.
        to_crop: float64[N, 2, 3], the map from each full-size upright image to its crop: matrix and
            offset. None: the centre square of each image.
        alignment: Its name in a bundle's manifest, such as "landmarks-5" or "lfw-frame".
        detector: What found the faces; "" without a map.
    """

    spec: CropSpec
    plain_px: npt.NDArray[np.int32]
    to_crop: Points | None = None
    alignment: str = LFW_FRAME
    detector: str = ""

    def __len__(self) -> int:
        return len(self.plain_px)

    @property
    def plain(self) -> npt.NDArray[np.bool_]:
        """Whether TensorFlow decodes each image as Pillow does: bool[N]."""
        return self.plain_px[:, 0] > 0

    @cached_property
    def digest(self) -> str:
        """SHA-256 in hexadecimal digits over what decides the crops: spec, alignment and maps.

        Maps are rounded: crops of the same digest differ by less than a grey level.
        """
        digest = hashlib.sha256(f"{self.spec}\0{self.alignment}\0".encode())
        if self.to_crop is not None:
            steps = (1e6, 1e6, 1e3)  # the matrix multiplies positions of up to some thousands
            digest.update(np.round(self.to_crop * steps).astype("<i8").tobytes())
        return digest.hexdigest()

    def take(self, images: npt.NDArray[np.integer[Any]]) -> "CropPlan":
        """Return the plan of some images, int[N], in that order."""
        to_crop = None if self.to_crop is None else self.to_crop[images]
        return replace(self, plain_px=self.plain_px[images], to_crop=to_crop)

    def crop(self, photo: Photo, image: int) -> Crop:
        """Cut the crop of an image by its number, as verification does.

        Raises:
            BadImage: The photo is damaged.
        """
        if self.to_crop is None:
            return crop_photo(photo, self.spec)
        to_crop = self.to_crop[image]
        return warp_photo(photo, Similarity(to_crop[:, :2], to_crop[:, 2]), self.spec.crop_px)
