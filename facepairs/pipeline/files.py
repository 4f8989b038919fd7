"""The `files` store: every image is read and decoded when it is needed."""

import os
from collections.abc import Callable

import tensorflow as tf

from facepairs.data.index import FaceIndex
from facepairs.pipeline.decode import batch_decoder, read_files


def file_paths(index: FaceIndex) -> tf.Tensor:
    """Give every image's path as one string tensor [images]."""
    return tf.constant([os.fsencode(f"{index.root}/{name}") for name in index.names()])


class FileStore:
    """Images of an index, decoded on the fly; memory does not grow with their number."""

    def __init__(self, index: FaceIndex, frame_px: int, crop_px: int) -> None:
        self.frame_px = frame_px
        self.crop_px = crop_px
        self._paths = file_paths(index)

    def loader(self, images: int) -> Callable[[tf.Tensor], tf.Tensor]:
        """Make a function from int32[N] image numbers to uint8[N, crop_px, crop_px, 3]."""
        decode = batch_decoder(self.frame_px, self.crop_px, images)
        return lambda numbers: decode(read_files(tf.gather(self._paths, numbers), images))

    @property
    def arrays(self) -> tuple[tf.Tensor, ...]:
        """Nothing: the batch holds the pixels."""
        return ()

    def pixels(self, images: tf.Tensor, *arrays: tf.Tensor) -> tf.Tensor:
        """Give the pixels that the pipeline decoded."""
        return images
