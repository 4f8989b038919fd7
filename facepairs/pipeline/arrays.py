"""Large arrays in memory that TensorFlow can use without copying them."""

import contextlib
import math
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf


def aligned_array(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return zeros aligned to a memory page: TensorFlow crashes on less than 64 bytes."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return np.frombuffer(mmap.mmap(-1, size), dtype).reshape(shape)


def as_tensor(values: npt.NDArray[Any]) -> tf.Tensor:
    """Return an array as a tensor.

    Args:
        values: Aligned to 64 bytes, writable; it may take a quarter of the machine's memory.

    Returns:
        A copy on the GPU if there is one with room, else a view that shares the array's memory.
    """
    tensor = tf.experimental.dlpack.from_dlpack(values.__dlpack__())
    if tf.config.list_logical_devices("GPU"):
        # Without room beside the network, gathering stays on the CPU.
        with contextlib.suppress(tf.errors.ResourceExhaustedError), tf.device("/GPU:0"):
            tensor = tf.identity(tensor)
    return tensor


class ArraySource:
    """An `InputSource` that gathers the rows of an array by image number.

    Args:
        rows: [images, …], aligned to 64 bytes; not copied on a CPU.
    """

    def __init__(self, rows: npt.NDArray[Any]) -> None:
        self.arrays = (as_tensor(rows),)

    def loader(self, images: int) -> Callable[[tf.Tensor], tf.Tensor]:
        """Return the identity: a dataset that holds the array would copy it."""
        return lambda numbers: numbers

    def gather(self, images: tf.Tensor, *arrays: tf.Tensor) -> tf.Tensor:
        """Return the rows of int32[N] image numbers: [N, …]."""
        (rows,) = arrays or self.arrays
        # Called eagerly, `tf.gather` itself takes a tenth as long as the copying does.
        return tf.raw_ops.Gather(params=rows, indices=images)
