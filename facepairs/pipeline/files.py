"""The `files` store: every image is read and decoded when it is needed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.index import FaceIndex
from facepairs.pipeline.decode import file_decoder


class FileStore:
    """A `Store` that decodes the images of an index in the dataset; it holds only the index.

    Args:
        index: The images.
        frame_px: Short side of an image to which `crop_px` refers.
        crop_px: Side of the centre square.
    """

    arrays: tuple[tf.Tensor, ...] = ()

    def __init__(self, index: FaceIndex, frame_px: int, crop_px: int) -> None:
        self.frame_px = frame_px
        self.crop_px = crop_px
        self._paths = file_paths(index)

    def loader(self, images: int) -> Callable[[tf.Tensor], tf.Tensor]:
        """Return a function from int32[N] image numbers to uint8[N, crop_px, crop_px, 3]."""
        paths, decode = self._paths, file_decoder(self.frame_px, self.crop_px, images)
        return lambda numbers: decode(*paths(numbers))

    def gather(self, images: tf.Tensor, *arrays: tf.Tensor) -> tf.Tensor:
        """Return the pixels unchanged: the dataset has decoded them."""
        return images


def file_paths(index: FaceIndex) -> Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]:
    """Return a function from image numbers to the paths of their files and their total size.

    The paths are built on demand: a tensor of all paths takes over 100 bytes per image.

    Returns:
        A function int[N] → (string[N] paths, int64[] bytes).
    """

    def look_up(
        images: npt.NDArray[np.integer[Any]],
    ) -> tuple[npt.NDArray[np.object_], np.int64]:
        return np.array(index.encoded_paths(images), np.object_), index.sizes[images].sum()

    def paths(images: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        names, size = tf.numpy_function(look_up, [images], (tf.string, tf.int64), stateful=False)
        return tf.ensure_shape(names, images.shape), tf.ensure_shape(size, ())

    return paths
