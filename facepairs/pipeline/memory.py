"""The `memory` store: every image decoded and cropped once, then whole batches gathered by number.

The crops are one uint8[images, crop_px, crop_px, 3] array. With a path it is kept as an `.npy` file
and memory-mapped, so that a second run starts at once and two runs share the pages.
"""

import contextlib
import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.index import FaceIndex
from facepairs.errors import BadData
from facepairs.pipeline.cached_array import cached_array
from facepairs.pipeline.decode import file_decoder, plain
from facepairs.pipeline.files import file_paths

BUILD_BATCH = 64
Crops = npt.NDArray[np.uint8]
Progress = Callable[[int, int], None]


def store_bytes(images: int, crop_px: int) -> int:
    """Give the size of the array for so many images."""
    return images * crop_px * crop_px * 3


def as_tensor(values: npt.NDArray[Any]) -> tf.Tensor:
    """Give an array aligned to 64 bytes as a tensor: a view, or a copy on a GPU with room.

    Elsewhere it is never copied: it may take a quarter of the machine's memory.
    """
    tensor = tf.experimental.dlpack.from_dlpack(values.__dlpack__())
    if tf.config.list_logical_devices("GPU"):
        # Where it does not fit beside the network, gathering stays with the processor.
        with contextlib.suppress(tf.errors.ResourceExhaustedError), tf.device("/GPU:0"):
            tensor = tf.identity(tensor)
    return tensor


class MemoryStore:
    """Decoded crops: uint8[images, crop_px, crop_px, 3], aligned to 64 bytes, not copied."""

    def __init__(self, crops: Crops) -> None:
        self.crop_px = int(crops.shape[1])
        self.arrays = (as_tensor(crops),)

    @classmethod
    def build(
        cls,
        index: FaceIndex,
        frame_px: int,
        crop_px: int,
        path: Path | None = None,
        progress: Progress | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> "MemoryStore":
        """Decode every image of an index, or map the `.npy` at `path` where an earlier run left it.

        The caller names `path` after the index's fingerprint and the crop. A file that is damaged
        is made anew, which `say` is told. Raises BadData that names the first image that cannot be
        decoded, or a `path` that cannot be written.
        """
        shape = (len(index), crop_px, crop_px, 3)
        if path is None:
            # Pages of its own: TensorFlow crashes on memory that is not aligned to 64 bytes.
            crops = np.frombuffer(mmap.mmap(-1, store_bytes(*shape[:2])), np.uint8).reshape(shape)
            _fill(crops, index, frame_px, progress)
            return cls(crops)

        def fill(crops: Crops) -> None:
            _fill(crops, index, frame_px, progress)

        return cls(cached_array(path, shape, np.uint8, fill, say))

    def loader(self, images: int) -> Callable[[tf.Tensor], tf.Tensor]:
        """Leave int32[N] image numbers as they are: a dataset that held the array would copy it."""
        return lambda numbers: numbers

    def pixels(self, images: tf.Tensor, *arrays: tf.Tensor) -> tf.Tensor:
        """Gather int32[N] image numbers into uint8[N, crop_px, crop_px, 3] where the array is."""
        (crops,) = arrays or self.arrays
        # Called eagerly, `tf.gather` itself takes a tenth as long as the copying does.
        return tf.raw_ops.Gather(params=crops, indices=images)


def _fill(crops: Crops, index: FaceIndex, frame_px: int, progress: Progress | None) -> None:
    paths = file_paths(index)
    decode = file_decoder(frame_px, crops.shape[1], BUILD_BATCH)
    batches = (
        tf.data.Dataset.range(len(index))
        .batch(BUILD_BATCH)
        .map(
            plain(lambda some: decode(*paths(some))),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        .prefetch(2)
    )
    done = 0
    try:
        for batch in batches:
            crops[done : done + len(batch)] = batch.numpy()
            done += len(batch)
            if progress:
                progress(done, len(crops))
    except tf.errors.OpError:
        raise BadData(
            f"one of {index.path(done)} and the {BUILD_BATCH - 1} images after it cannot be "
            f"decoded; find it with: facepairs data check {index.root}"
        ) from None
