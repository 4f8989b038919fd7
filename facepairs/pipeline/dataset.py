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
WHOLE = (1, 0)  # one reader, which gets every batch
Blocks = Callable[..., Iterator[PairList]]
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
    part: tuple[int, int] = WHOLE,
    args: tuple[int | tf.Tensor, ...] = (),
) -> tf.data.Dataset:
    """Build batches of pairs, in the order of the blocks.

    Args:
        store: Where the images are.
        blocks: Returns an iterator over pair lists of any length.
        batch_size: Pairs per batch, B; the last batch may be smaller.
        part: The number of readers that share the batches, and which one this is, from 0: with
            (2, 1) it gets the second, the fourth …
        args: What `blocks` is called with; tensors become NumPy's.

    Returns:
        The dataset. While iterating, it raises `tf.errors.InvalidArgumentError` for an image that
        cannot be decoded.
    """
    load = store.loader(2 * batch_size)

    def load_batch(left: tf.Tensor, right: tf.Tensor, genuine: tf.Tensor) -> Batch:
        images = load(tf.concat([left, right], axis=0))
        left_images, right_images = tf.split(images, 2)  # shares their memory
        return (left_images, right_images), tf.cast(genuine, tf.float32)

    numbers, labels = tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.bool)
    pairs = tf.data.Dataset.from_generator(
        lambda *args: ((block.left, block.right, block.genuine) for block in blocks(*args)),
        args=args,
        output_signature=(numbers, numbers, labels),
    )
    # Python passes on a whole block at a time; cutting it into batches is C++. One call of `map`
    # per batch: an element per image would cost as much as decoding it.
    return load_ahead(pairs.rebatch(batch_size).shard(*part), load_batch)


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


def clocked(batches: tf.data.Dataset, waited_s: tf.Variable) -> tf.data.Dataset:
    """Add the seconds that a reader of the dataset waits for each batch to a float64 variable."""
    asked = tf.data.Dataset.counter().map(no_autograph(lambda _: tf.timestamp()))

    def arrived(asked_s: tf.Tensor, batch: Batch) -> Batch:
        waited_s.assign_add(tf.timestamp() - asked_s)
        return batch

    return tf.data.Dataset.zip(asked, batches).map(no_autograph(arrived))


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
