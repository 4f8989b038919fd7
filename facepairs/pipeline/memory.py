"""The `memory` store: one array in memory, from which whole batches are gathered.

It has every image, decoded once, or the features of every image.
"""

import math
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.index import FaceIndex
from facepairs.photos.crop import CropPlan
from facepairs.pipeline.dataset import image_batches
from facepairs.pipeline.files import FileStore, photos_named
from facepairs.support import console

BUILD_BATCH = 64
Array = npt.NDArray[Any]


class MemoryStore:
    """A `Store` that gathers the rows of an array by image number: decoded images, or features.

    Args:
        rows: [images, …], aligned to 64 bytes and writable; not copied.
    """

    def __init__(self, rows: Array) -> None:
        self.rows = rows
        self._tensor = tf.experimental.dlpack.from_dlpack(rows.__dlpack__())

    def loader(self, images: int) -> Callable[[tf.Tensor], tf.Tensor]:
        """Return a function from int32[N] image numbers to their rows: [N, …]."""
        return lambda numbers: tf.gather(self._tensor, numbers)

    @classmethod
    def build(cls, index: FaceIndex, plan: CropPlan) -> "MemoryStore":
        """Decode every image of an index: uint8[images, crop_px, crop_px, 3].

        Args:
            index: The images.
            plan: How they are cropped.

        Raises:
            BadImage: An image cannot be decoded.
        """
        crops = zeros((len(index), plan.spec.crop_px, plan.spec.crop_px, 3), np.uint8)
        files = FileStore(index, plan)
        done, progress = 0, console.progress("decoding images")
        with photos_named(files):
            for batch in image_batches(files, np.arange(len(crops)), BUILD_BATCH):
                crops[done : done + len(batch)] = batch.numpy()
                done += len(batch)
                progress(done, len(crops))
        return cls(crops)


def zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Return zeros that TensorFlow can use without copying them.

    They are aligned to a memory page: TensorFlow crashes on less than 64 bytes.
    """
    memory = mmap.mmap(-1, math.prod(shape) * np.dtype(dtype).itemsize)
    return np.frombuffer(memory, dtype).reshape(shape)
