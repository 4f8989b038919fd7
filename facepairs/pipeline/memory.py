"""The `memory` store: every image is decoded once, then whole batches are gathered by number.

The images are one uint8[images, crop_px, crop_px, 3] array. With a path it is a memory-mapped
`.npy` file: a second run starts at once, and two runs share its pages.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.data.index import FaceIndex
from facepairs.images.crop_plan import CropPlan
from facepairs.pipeline.arrays import ArraySource, aligned_array
from facepairs.pipeline.cached_array import cached_array
from facepairs.pipeline.dataset import image_batches
from facepairs.pipeline.files import FileStore, photos_named
from facepairs.support.progress import (
    MessageCallback,
    ProgressCallback,
    ignore_message,
    ignore_progress,
)

BUILD_BATCH = 64
Crops = npt.NDArray[np.uint8]


def store_bytes(images: int, crop_px: int) -> int:
    """Return the size in bytes of the array for `images` images."""
    return images * crop_px * crop_px * 3


class MemoryStore(ArraySource):
    """A `Store` of decoded images.

    Args:
        crops: uint8[images, crop_px, crop_px, 3], aligned to 64 bytes; not copied on a CPU.
    """

    def __init__(self, crops: Crops) -> None:
        super().__init__(crops)
        self.crop_px = int(crops.shape[1])

    @classmethod
    def build(
        cls,
        index: FaceIndex,
        plan: CropPlan,
        path: Path | None = None,
        progress: ProgressCallback = ignore_progress,
        log: MessageCallback = ignore_message,
    ) -> "MemoryStore":
        """Decode every image of an index, or map the file that an earlier run left at `path`.

        Args:
            index: The images.
            plan: How they are cropped.
            path: The `.npy` file; its name must depend on the index's fingerprint and the plan's
                digest.
            progress: Called with images done and in all.
            log: Receives a line when the file at `path` is damaged and is built again.

        Raises:
            BadImage: An image cannot be decoded.
            BadData: `path` cannot be written.
        """
        shape = (len(index), plan.spec.crop_px, plan.spec.crop_px, 3)

        def fill(crops: Crops) -> None:
            _crop_all(crops, FileStore(index, plan), progress)

        if path is not None:
            return cls(cached_array(path, shape, np.uint8, fill, log))
        crops = aligned_array(shape, np.uint8)
        fill(crops)
        return cls(crops)


def _crop_all(crops: Crops, files: FileStore, progress: ProgressCallback) -> None:
    """Fill the array with the crops of all images."""
    done = 0
    with photos_named(files):
        for batch in image_batches(files, np.arange(len(crops)), BUILD_BATCH):
            crops[done : done + len(batch)] = batch.numpy()
            done += len(batch)
            progress(done, len(crops))
