"""`make_dataset`: from blocks of index pairs to a `tf.data.Dataset` of batches.

A batch is `((left, right), genuine)`, as `keras.Model.fit` takes it:

- `left`, `right`: uint8[B, crop_px, crop_px, 3], the crops of both sides; or features, if the store
  holds features: float16[B, F].
- `genuine`: float32[B], 1 for two images of one person, else 0.

Training, validation, the bench and `facepairs.pairs_dataset` share this structure. A pair cache
(`records.store`) decides which pairs there are, so it makes such batches itself. Casting, resizing
and augmentation are layers of the model (`facepairs.models`).
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
Batch = tuple[tuple[tf.Tensor, tf.Tensor], tf.Tensor]
F = TypeVar("F", bound=Callable[..., Any])


class Store(Protocol):
    """Images by number: uint8 crops, or features of them."""

    def loader(self, images: int) -> Callable[[tf.Tensor], tf.Tensor]:
        """Return a function from int32[N] image numbers to those images, [N, …].

        Args:
            images: The usual N; the last batch may be shorter.
        """
        ...


def make_dataset(
    store: Store,
    blocks: Blocks,
    batch_size: int,
    pair_range: tuple[int, int] | None = None,
) -> tf.data.Dataset:
    """Build batches of pairs, in the order of the blocks.

    Args:
        store: Where the images are.
        blocks: Returns an iterator over pair lists of any length.
        batch_size: Pairs per batch, B; the last batch may be smaller.
        pair_range: The pairs [begin, end) of each batch whose images are loaded, for workers that
            share every batch. Labels are always those of the whole batch.

    Returns:
        The dataset. While iterating, it raises `tf.errors.InvalidArgumentError` for an image that
        cannot be decoded.
    """
    begin, end = pair_range or (0, batch_size)
    load = store.loader(2 * (end - begin))

    def load_batch(left: tf.Tensor, right: tf.Tensor, genuine: tf.Tensor) -> Batch:
        images = load(tf.concat([left[begin:end], right[begin:end]], axis=0))
        left_images, right_images = tf.split(images, 2)  # shares their memory
        return (left_images, right_images), tf.cast(genuine, tf.float32)

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
        The dataset of batches: [size, …].
    """
    batches = tf.data.Dataset.from_tensor_slices(images.astype(np.int32)).batch(size)
    return load_ahead(batches, store.loader(size))


def load_ahead(batches: tf.data.Dataset, load: Callable[..., Any]) -> tf.data.Dataset:
    """Apply a function without Python control flow to every batch, on all cores and in order.

    AUTOTUNE is off: its thread sleeps for up to a minute, and the end of an iterator waits for it.
    So is the rewriting of the graph: it would copy the array of a memory store.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
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
