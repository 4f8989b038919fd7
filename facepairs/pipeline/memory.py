"""The `memory` store: one array in memory, from which the compiled step gathers whole batches.

It has every image, decoded once, or the features of every image.
"""

import contextlib
import math
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.index import FaceIndex
from facepairs.images.crop import CropPlan
from facepairs.pipeline.dataset import image_batches
from facepairs.pipeline.files import FileStore, photos_named
from facepairs.support import console

BUILD_BATCH = 64
Array = npt.NDArray[Any]


class MemoryStore:
    """A `Store` that gathers the rows of an array by image number: decoded images, or features.

    Args:
        rows: [images, …], aligned to 64 bytes and writable; not copied on a CPU. A GPU gets a copy,
            if it has room.
    """

    def __init__(self, rows: Array) -> None:
        self.rows = rows
        tensor = tf.experimental.dlpack.from_dlpack(rows.__dlpack__())
        if tf.config.list_logical_devices("GPU"):
            # Without room beside the network, gathering stays on the CPU.
            with contextlib.suppress(tf.errors.ResourceExhaustedError), tf.device("/GPU:0"):
                tensor = tf.identity(tensor)
        self.arrays = (tensor,)

    def loader(self, images: int) -> Callable[[tf.Tensor], tf.Tensor]:
        """Return the identity: a dataset that holds the array would copy it."""
        return lambda numbers: numbers

    def gather(self, images: tf.Tensor, *arrays: tf.Tensor) -> tf.Tensor:
        """Return the rows of int32[N] image numbers: [N, …]."""
        (rows,) = arrays or self.arrays
        # Called eagerly, `tf.gather` itself takes a tenth as long as the copying does.
        return tf.raw_ops.Gather(params=rows, indices=images)

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
