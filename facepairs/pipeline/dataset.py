"""One function from blocks of index pairs to a `tf.data.Dataset` of batches.

A batch is `{"images": uint8[2·B, crop_px, crop_px, 3], "genuine": bool[B]}`: the B left images,
then the B right ones, so that a Siamese tower takes the batch as it is and a difference takes two
slices. Images stay `uint8` until they are on the device; casting, resizing and augmentation belong
to the compiled step (`facepairs.models.prepare`).
"""

import os
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.pipeline.decode import crop_decoder

Blocks = Callable[[], Iterator[PairList]]


def path_table(index: FaceIndex) -> tf.Tensor:
    """Give every image's whole path as one constant string tensor [images]."""
    root = str(index.root)
    return tf.constant([os.fsencode(f"{root}/{name}") for name in index.names()])


def make_dataset(
    index: FaceIndex, blocks: Blocks, batch_size: int, frame_px: int, crop_px: int
) -> tf.data.Dataset:
    """Build batches from `blocks`, pair lists that come one after the other, in their order.

    Every block but the last must hold a multiple of `batch_size` pairs; the last batch may be
    short. Raises tf.errors.InvalidArgumentError while iterating where an image cannot be decoded.
    """

    def generate() -> Iterator[tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]]:
        for block in blocks():
            for start in range(0, len(block), batch_size):
                batch = block.where(slice(start, start + batch_size))
                yield np.concatenate([batch.left, batch.right]), batch.genuine

    paths = path_table(index)
    decode = crop_decoder(frame_px, crop_px)
    pixels = tf.TensorSpec((crop_px, crop_px, 3), tf.uint8)

    def load(images: tf.Tensor, genuine: tf.Tensor) -> dict[str, tf.Tensor]:
        # One call decodes a batch: an element for each image costs more than its decoding.
        files = tf.gather(paths, images)
        crops = tf.map_fn(
            lambda path: decode(tf.io.read_file(path)), files, fn_output_signature=pixels
        )
        return {"images": crops, "genuine": genuine}

    return (
        tf.data.Dataset.from_generator(
            generate,
            output_signature=(tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.bool)),
        )
        .map(load, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        .prefetch(tf.data.AUTOTUNE)
    )
