"""`make_dataset`: from blocks of index pairs to a `tf.data.Dataset` of batches.

A batch is `{"images": …, "genuine": bool[B]}`, and if wanted `"people": int32[2·B]`, the people in
the images. The compiled step calls `store.gather(batch["images"], *store.arrays)` and gets the
inputs of the network: the B left ones, then the B right ones. A Siamese network takes them as they
are, a pair network takes the two halves.

`files` decodes images in the dataset. For `memory`, and for features, the dataset yields image
numbers, int32[2·B], and the step gathers from an array on its own device. A pair cache
(`records.store`) decides which pairs there are, so it makes batches itself. Casting, resizing and
augmentation follow in the same step (`facepairs.models`).
"""

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.pairs import PairList
from facepairs.support.platform import cores

READY_BATCHES = 2
Blocks = Callable[[], Iterator[PairList]]
F = TypeVar("F", bound=Callable[..., Any])


class Store(Protocol):
    """The inputs of a network by image number: uint8 images, or features."""

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
            *arrays: The store's `arrays`; it uses its own when none are given.

        Returns:
            The network's inputs: [N, …].
        """
        ...


def make_dataset(
    store: Store,
    blocks: Blocks,
    batch_size: int,
    people: npt.NDArray[np.int32] | None = None,
    pair_range: tuple[int, int] | None = None,
) -> tf.data.Dataset:
    """Build batches of pairs, in the order of the blocks.

    Args:
        store: Where the images are.
        blocks: Returns an iterator over pair lists of any length.
        batch_size: Pairs per batch, B; the last batch may be smaller.
        people: int32[images] as `people_numbers` returns it; batches then have "people".
        pair_range: The pairs [begin, end) of each batch whose images are loaded, for workers that
            share every batch. Labels and people are always those of the whole batch.

    Returns:
        The dataset. While iterating, it raises `tf.errors.InvalidArgumentError` for an image that
        cannot be decoded.
    """
    begin, end = pair_range or (0, batch_size)
    load = store.loader(2 * (end - begin))
    person_of = None if people is None else tf.constant(people)  # one copy for all graphs

    def load_batch(left: tf.Tensor, right: tf.Tensor, genuine: tf.Tensor) -> dict[str, tf.Tensor]:
        images = tf.concat([left, right], 0)
        own = tf.concat([left[begin:end], right[begin:end]], 0) if pair_range else images
        batch = {"images": load(own), "genuine": genuine}
        return batch if person_of is None else {**batch, "people": tf.gather(person_of, images)}

    numbers, labels = tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.bool)
    pairs = tf.data.Dataset.from_generator(
        lambda: ((block.left, block.right, block.genuine) for block in blocks()),
        output_signature=(numbers, numbers, labels),
    )
    # Python passes on a whole block at a time; cutting it into batches is C++. One call of `map`
    # per batch: an element per image would cost as much as decoding it.
    return load_ahead(pairs.rebatch(batch_size), load_batch)


def image_batches(store: Store, images: npt.NDArray[np.int64], size: int) -> tf.data.Dataset:
    """Load images in a given order.

    Args:
        store: Where the images are.
        images: int64[N] image numbers.
        size: Images per batch; the last batch may be smaller.

    Returns:
        Batches for `store.gather`.
    """
    batches = tf.data.Dataset.from_tensor_slices(images.astype(np.int32)).batch(size)
    return load_ahead(batches, store.loader(size))


def load_ahead(batches: tf.data.Dataset, load: Callable[..., Any]) -> tf.data.Dataset:
    """Apply a function without Python control flow to every batch, on all cores and in order.

    AUTOTUNE is off: its thread sleeps for up to a minute, and the end of an iterator waits for it.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return (
        batches.map(no_autograph(load), num_parallel_calls=cores(), deterministic=True)
        .prefetch(READY_BATCHES)
        .with_options(options)
    )


def no_autograph(function: F) -> F:
    """Disable AutoGraph for a function without Python control flow.

    AutoGraph would slow tracing down and write its translation to a file, which stays behind when
    the process is killed.
    """
    unconverted: F = tf.autograph.experimental.do_not_convert(function)
    return unconverted


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
