"""`make_dataset`: from blocks of index pairs to a `tf.data.Dataset` of batches.

A batch is `{"images": …, "genuine": bool[B]}`, and if wanted `"people": int32[2·B]`, the people in
the images. The compiled step calls `source.gather(batch["images"], *source.arrays)` and gets the
inputs of the network: the B left ones, then the B right ones. A Siamese network takes them as they
are, a pair network takes the two halves.

The stores `files` and `tfrecord` decode images in the dataset. For `memory`, and for features, the
dataset yields image numbers, int32[2·B], and the step gathers from an array on its own device.
Casting, resizing and augmentation follow in the same step (`facepairs.models`).
"""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.pairs import PairList
from facepairs.pipeline.decode import no_autograph
from facepairs.support.platform import cores

READY_BATCHES = 2
Blocks = Callable[[], Iterator[PairList]]


class InputSource(Protocol):
    """The inputs of a network by image number: images (`Store`) or features (`FeatureStore`)."""

    def loader(self, images: int) -> Callable[[tf.Tensor], tf.Tensor]:
        """Return the dataset's part: a function from int32[N] image numbers to a batch's images.

        Args:
            images: The usual N; the last batch may be shorter.
        """
        ...

    @property
    def arrays(self) -> tuple[tf.Tensor, ...]:
        """The arrays that `gather` reads.

        A compiled step takes them as arguments, because TensorFlow never frees what a graph
        captures.
        """
        ...

    def gather(self, images: tf.Tensor, *arrays: tf.Tensor) -> tf.Tensor:
        """Do the compiled step's part.

        Args:
            images: A batch's images, as `loader` makes them.
            *arrays: The source's `arrays`; it uses its own when none are given.

        Returns:
            The network's inputs: [N, …].
        """
        ...


class Store(InputSource, Protocol):
    """Images; `gather` returns uint8[N, crop_px, crop_px, 3]."""

    @property
    def crop_px(self) -> int:
        """Side of the images."""
        ...


def image_batches(source: InputSource, images: npt.NDArray[np.int64], size: int) -> tf.data.Dataset:
    """Load images in a given order.

    Args:
        source: Where the images are.
        images: int64[N] image numbers.
        size: Images per batch; the last batch may be smaller.

    Returns:
        Batches for `source.gather`.
    """
    batches = tf.data.Dataset.from_tensor_slices(images.astype(np.int32)).batch(size)
    return load_ahead(batches, source.loader(size))


def load_ahead(batches: tf.data.Dataset, load: Callable[..., Any]) -> tf.data.Dataset:
    """Apply a function without Python control flow to every batch, on all cores and in order.

    AUTOTUNE is off: its thread sleeps for up to a minute, and the end of an iterator waits for it.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    loaded = batches.map(no_autograph(load), num_parallel_calls=cores(), deterministic=True)
    return loaded.prefetch(READY_BATCHES).with_options(options)


def people_numbers(
    person_of: npt.NDArray[np.int32], people: npt.NDArray[np.int64]
) -> npt.NDArray[np.int32]:
    """Number some of the people from 0, for every image.

    Args:
        person_of: int32[images], the index's person number of each image.
        people: int64[P], distinct person numbers of the index; they are numbered in this order.

    Returns:
        int32[images]; -1 for images of other people.
    """
    numbers = np.full(int(person_of.max(initial=-1)) + 1, -1, np.int32)
    numbers[people] = np.arange(len(people), dtype=np.int32)
    return numbers[person_of]


def make_dataset(
    source: InputSource,
    blocks: Blocks,
    batch_size: int,
    people: npt.NDArray[np.int32] | None = None,
    pair_range: tuple[int, int] | None = None,
) -> tf.data.Dataset:
    """Build batches of pairs, in the order of the blocks.

    Args:
        source: Where the images are.
        blocks: Returns an iterator over pair lists. Every block except the last must hold a
            multiple of `batch_size` pairs; the last batch may be smaller.
        batch_size: Pairs per batch, B.
        people: int32[images] as `people_numbers` returns it; batches then have "people".
        pair_range: The pairs [begin, end) of each batch whose images are loaded, for workers that
            share every batch. Labels and people are always those of the whole batch.

    Returns:
        The dataset. While iterating, it raises `tf.errors.InvalidArgumentError` for an image that
        cannot be decoded.
    """
    begin, end = pair_range or (0, batch_size)
    load = source.loader(2 * (end - begin))
    person_of = None if people is None else tf.constant(people)  # one copy for all graphs

    def load_batch(images: tf.Tensor, genuine: tf.Tensor) -> dict[str, tf.Tensor]:
        own = images
        if pair_range:
            own = tf.concat([images[begin:end], images[batch_size + begin : batch_size + end]], 0)
        batch = {"images": load(own), "genuine": genuine}
        return batch if person_of is None else {**batch, "people": tf.gather(person_of, images)}

    # Python passes on a whole block at a time; cutting it into batches is C++.
    batches = tf.data.Dataset.from_generator(
        lambda: _batch_rows(blocks(), batch_size),
        output_signature=(
            tf.TensorSpec([None, None], tf.int32),
            tf.TensorSpec([None, None], tf.bool),
        ),
    ).flat_map(_rows_to_elements)
    # One call per batch: a dataset element per image would cost as much as decoding it.
    return load_ahead(batches, load_batch)


def _batch_rows(
    blocks: Iterator[PairList], batch_size: int
) -> Iterator[tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]]:
    """Yield int32[batches, 2·B] image numbers and bool[batches, B] labels, one row per batch."""
    for block in blocks:
        batches = len(block) // batch_size
        if batches:
            yield _rows(block.where(slice(0, batches * batch_size)), batches)
        if batches * batch_size < len(block):
            yield _rows(block.where(slice(batches * batch_size, None)), 1)


def _rows(block: PairList, batches: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    sides = [side.reshape(batches, -1) for side in (block.left, block.right)]
    return np.concatenate(sides, axis=1), block.genuine.reshape(batches, -1)


@no_autograph
def _rows_to_elements(images: tf.Tensor, genuine: tf.Tensor) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices((images, genuine))
