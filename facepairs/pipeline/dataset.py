"""One function from blocks of index pairs to a `tf.data.Dataset` of batches.

A batch is `{"images": …, "genuine": bool[B]}`, and where it is asked for `"people": int32[2·B]`,
who the images show. The compiled step calls `store.pixels` on the images and gets
uint8[2·B, crop_px, crop_px, 3]: the B left ones, then the B right ones, so that a Siamese tower
takes the batch as it is and a difference takes two slices. For `files` and `tfrecord` the images
are these pixels already; for `memory` they are int32[2·B] numbers, gathered where the store lies,
on the device where there is one. Casting, resizing and augmentation follow in the same step
(`facepairs.models`).
"""

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.pairs import PairList
from facepairs.pipeline.decode import plain

Blocks = Callable[[], Iterator[PairList]]


class Store(Protocol):
    """Where images come from."""

    def loader(self, images: int) -> Callable[[tf.Tensor], tf.Tensor]:
        """Make the pipeline's part: int32[N] image numbers → a batch's images; N is `images`.

        A last batch may be shorter.
        """
        ...

    @property
    def arrays(self) -> tuple[tf.Tensor, ...]:
        """What `pixels` reads besides a batch's images.

        A compiled step takes it as arguments: what a graph captures, TensorFlow never frees.
        """
        ...

    def pixels(self, images: tf.Tensor, *arrays: tf.Tensor) -> tf.Tensor:
        """Do the step's part: a batch's images → uint8[N, crop_px, crop_px, 3].

        `arrays` are the store's own, which it takes itself where none are given.
        """
        ...


def image_batches(store: Store, images: npt.NDArray[np.int64], size: int) -> tf.data.Dataset:
    """Load int64[N] image numbers in their order, `size` at a time, for `store.pixels`."""
    return (
        tf.data.Dataset.from_tensor_slices(images.astype(np.int32))
        .batch(size)
        .map(plain(store.loader(size)), num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        .prefetch(2)
    )


@plain
def _batches(images: tf.Tensor, genuine: tf.Tensor) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices((images, genuine))


def _rows(block: PairList, batches: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """Lay a block out as a row a batch: int32[batches, 2·B] lefts then rights, bool[batches, B]."""
    sides = [side.reshape(batches, -1) for side in (block.left, block.right)]
    return np.concatenate(sides, axis=1), block.genuine.reshape(batches, -1)


def people_numbers(
    person_of: npt.NDArray[np.int32], people: npt.NDArray[np.int64]
) -> npt.NDArray[np.int32]:
    """Number some people from 0 in their order, an image at a time: int32[images]; others are -1.

    `person_of` int32[images] is the index's, `people` int64[P] are distinct person numbers of it.
    """
    numbers = np.full(int(person_of.max(initial=-1)) + 1, -1, np.int32)
    numbers[people] = np.arange(len(people), dtype=np.int32)
    return numbers[person_of]


def make_dataset(
    store: Store,
    blocks: Blocks,
    batch_size: int,
    people: npt.NDArray[np.int32] | None = None,
    part: tuple[int, int] | None = None,
) -> tf.data.Dataset:
    """Build batches from `blocks`, pair lists that come one after the other, in their order.

    Of workers that share every batch each gives its `part`, from pair to pair: it gets the images
    of these pairs alone, and labels and people of all.

    Every block but the last must hold a multiple of `batch_size` pairs; the last batch may be
    short. `people` int32[images], as `people_numbers` gives them, go along with the images. Raises
    tf.errors.InvalidArgumentError while iterating where an image cannot be decoded.
    """

    def generate() -> Iterator[tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]]:
        for block in blocks():
            whole = len(block) // batch_size
            if whole:
                yield _rows(block.where(slice(0, whole * batch_size)), whole)
            if whole * batch_size < len(block):
                yield _rows(block.where(slice(whole * batch_size, None)), 1)

    begin, end = part or (0, batch_size)
    load = store.loader(2 * (end - begin))
    known = None if people is None else tf.constant(people)  # no copy in every graph

    @plain
    def batch_of(images: tf.Tensor, genuine: tf.Tensor) -> dict[str, tf.Tensor]:
        own = images
        if part:
            own = tf.concat([images[begin:end], images[batch_size + begin : batch_size + end]], 0)
        batch = {"images": load(own), "genuine": genuine}
        return batch if known is None else {**batch, "people": tf.gather(known, images)}

    return (
        tf.data.Dataset.from_generator(
            generate,
            output_signature=(
                tf.TensorSpec([None, None], tf.int32),
                tf.TensorSpec([None, None], tf.bool),
            ),
        )
        # Python hands over a block at a time; cutting it into batches is C++.
        .flat_map(_batches)
        # One call a batch: a dataset element for each image would cost as much as its decoding.
        .map(
            batch_of,
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        .prefetch(tf.data.AUTOTUNE)
    )
