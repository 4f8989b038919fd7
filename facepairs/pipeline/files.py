"""The `files` store: every image is read and decoded when it is needed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.index import FaceIndex
from facepairs.pipeline.decode import file_decoder


def file_paths(index: FaceIndex) -> Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]:
    """Make a function from image numbers, int[N], to the files' paths, string[N], and bytes in all.

    They are put together when they are asked for: a tensor of all takes over 100 bytes an image.
    """

    def spelled(
        images: npt.NDArray[np.integer[Any]],
    ) -> tuple[npt.NDArray[np.object_], np.int64]:
        return np.array(index.encoded_paths(images), np.object_), index.sizes[images].sum()

    def paths(images: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        found, size = tf.numpy_function(spelled, [images], (tf.string, tf.int64), stateful=False)
        return tf.ensure_shape(found, images.shape), tf.ensure_shape(size, ())

    return paths


class FileStore:
    """Images of an index, decoded on the fly; nothing is kept of them besides the index."""

    def __init__(self, index: FaceIndex, frame_px: int, crop_px: int) -> None:
        self.frame_px = frame_px
        self.crop_px = crop_px
        self._paths = file_paths(index)

    def loader(self, images: int) -> Callable[[tf.Tensor], tf.Tensor]:
        """Make a function from int32[N] image numbers to uint8[N, crop_px, crop_px, 3]."""
        paths, decode = self._paths, file_decoder(self.frame_px, self.crop_px, images)
        return lambda numbers: decode(*paths(numbers))

    @property
    def arrays(self) -> tuple[tf.Tensor, ...]:
        """Nothing: the batch holds the pixels."""
        return ()

    def pixels(self, images: tf.Tensor, *arrays: tf.Tensor) -> tf.Tensor:
        """Give the pixels that the pipeline decoded."""
        return images
