"""The `memory` store: one array in memory, from which the compiled step gathers whole batches.

The `memory` store has every image, decoded once: uint8[images, crop_px, crop_px, 3]. With a path it
is a memory-mapped `.npy` file: a second run starts at once, and two runs share its pages.
"""

import contextlib
import math
import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.index import FaceIndex
from facepairs.images.crop import CropPlan
from facepairs.pipeline.dataset import image_batches
from facepairs.pipeline.files import FileStore, photos_named
from facepairs.support import console
from facepairs.support.atomic import temporary_beside
from facepairs.support.platform import reserve_space

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
    def build(
        cls,
        index: FaceIndex,
        plan: CropPlan,
        path: Path | None = None,
    ) -> "MemoryStore":
        """Decode every image of an index, or map the file that an earlier run left at `path`.

        Args:
            index: The images.
            plan: How they are cropped.
            path: The `.npy` file; its name must depend on the index's fingerprint and the plan's
                digest.

        Raises:
            BadImage: An image cannot be decoded.
            BadData: `path` cannot be written.
        """
        shape = (len(index), plan.spec.crop_px, plan.spec.crop_px, 3)
        files = FileStore(index, plan)

        def fill(crops: Array) -> None:
            done, progress = 0, console.progress("decoding images")
            with photos_named(files):
                for batch in image_batches(files, np.arange(len(crops)), BUILD_BATCH):
                    crops[done : done + len(batch)] = batch.numpy()
                    done += len(batch)
                    progress(done, len(crops))

        return cls(cached_array(path, shape, np.uint8, fill))


def cached_array(
    path: Path | None,
    shape: tuple[int, ...],
    dtype: npt.DTypeLike,
    fill: Callable[[Array], None],
) -> Array:
    """Return the array stored at `path`; compute and store it first if there is none.

    Args:
        path: The `.npy` file. None: the array is computed in memory.
        shape: Shape of the array.
        dtype: Its dtype.
        fill: Computes the array: sets the values of the zeros it receives.

    Returns:
        An array that TensorFlow can use without copying it: aligned to a memory page, as it crashes
        on less than 64 bytes, and writable. A file is mapped copy-on-write; it does not change.

    Raises:
        BadData: The file cannot be written.
    """
    if path is None:
        memory = mmap.mmap(-1, math.prod(shape) * np.dtype(dtype).itemsize)
        array: Array = np.frombuffer(memory, dtype).reshape(shape)
        fill(array)
        return array
    if not _is_whole(path, shape, dtype):
        if os.path.lexists(path):
            console.log(f"{path}: damaged, or another array; it is built again")
        with temporary_beside(path) as temporary:
            array = np.lib.format.open_memmap(temporary, "w+", dtype, shape)
            with open(temporary, "r+b") as handle:  # a full disk would kill the process (SIGBUS)
                reserve_space(handle.fileno(), temporary.stat().st_size)
            fill(array)
            array.flush()
    mapped: Array = np.load(path, mmap_mode="c", allow_pickle=False)
    return mapped


def _is_whole(path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike) -> bool:
    """Return whether a file holds an array of this kind and size, and nothing else."""
    try:
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
        is_such = isinstance(stored, np.memmap) and (stored.shape, stored.dtype) == (shape, dtype)
        return is_such and stored.offset + stored.nbytes == path.stat().st_size
    except Exception:  # noqa: BLE001 - NumPy's parser raises many kinds of errors on damaged files
        return False
