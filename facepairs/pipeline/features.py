"""The feature store: what a fitted, frozen part of a network makes of every image, computed once.

Training that moves only what follows then reads vectors where it would read pixels. They are one
float16[images, D] array: in memory where it takes a third of what is free or less, otherwise in an
`.npy` file that is mapped. Several processes can describe the images together: each takes its
batches, then has what the others made of theirs.
"""

import mmap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil
import tensorflow as tf

from facepairs.errors import BadData
from facepairs.pipeline.cached_array import cached_array
from facepairs.pipeline.dataset import Store, image_batches
from facepairs.pipeline.memory import as_tensor

BATCH = 64
SHARE_OF_FREE_MEMORY = 1 / 3
Describe = Callable[[tf.Tensor], tf.Tensor]
Progress = Callable[[int, int], None]
Vectors = npt.NDArray[np.float16]


@dataclass(frozen=True)
class Share:
    """What one of several processes describes: batch `number`, and every `of`-th after it.

    `add` gives the sum of what all of them call it with, float16 arrays of one shape.
    """

    number: int
    of: int
    add: Callable[[Vectors], Vectors]


ALONE = Share(0, 1, lambda vectors: vectors)


class FeatureStore:
    """Vectors by image number; `vectors` is the array itself, float16[images, D]."""

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors
        self.arrays = (as_tensor(vectors),)

    @classmethod
    def build(
        cls,
        images: Store,
        shape: tuple[int, int],
        describe: Describe,
        path: Path,
        progress: Progress | None = None,
        say: Callable[[str], None] = lambda line: None,
        share: Share = ALONE,
    ) -> "FeatureStore":
        """Describe every image of a store, or map the file that a run cut short left at `path`.

        `describe` takes uint8[N, …] pixels and gives float16[N, D]; `shape` is that of the whole
        array. The caller names `path` after the images and the weights. A file that is damaged is
        made anew, which `say` is told. Processes that each give their `share` must all come here
        with nothing at `path`; `progress` is called as often on each, and batches are the same as
        one process makes. Raises BadData where an image cannot be decoded or the disk is full.
        """
        size = int(np.prod(shape)) * np.dtype(np.float16).itemsize
        if size <= SHARE_OF_FREE_MEMORY * psutil.virtual_memory().available:
            # Pages of its own: TensorFlow crashes on memory that is not aligned to 64 bytes.
            in_memory = np.frombuffer(mmap.mmap(-1, size), np.float16).reshape(shape)
            _fill(in_memory, images, describe, progress, share)
            return cls(in_memory)

        def fill(vectors: Vectors) -> None:
            _fill(vectors, images, describe, progress, share)

        try:
            return cls(cached_array(path, shape, np.float16, fill, say))
        except OSError as error:
            raise BadData(
                f"{path}: {error.strerror}; training needs {size / 1e6:,.0f} MB there"
            ) from None

    def loader(self, images: int) -> Callable[[tf.Tensor], tf.Tensor]:
        """Leave int32[N] image numbers as they are."""
        return lambda numbers: numbers

    def pixels(self, images: tf.Tensor, *arrays: tf.Tensor) -> tf.Tensor:
        """Gather int32[N] image numbers into float16[N, D]."""
        (vectors,) = arrays or self.arrays
        return tf.gather(vectors, images)


def _fill(
    vectors: Vectors, images: Store, describe: Describe, progress: Progress | None, share: Share
) -> None:
    compiled = tf.function(
        lambda batch, arrays: describe(images.pixels(batch, *arrays)), autograph=False
    )
    numbers = np.arange(len(vectors))
    own = numbers[numbers // BATCH % share.of == share.number]
    batches = iter(image_batches(images, own, BATCH))
    for done in range(0, len(vectors), share.of * BATCH):
        first = done + share.number * BATCH
        some = np.zeros((share.of * BATCH, *vectors.shape[1:]), np.float16)
        try:
            if first < len(vectors):
                part = compiled(next(batches), images.arrays).numpy()
                some[first - done : first - done + len(part)] = part
        except tf.errors.InvalidArgumentError:
            raise BadData(
                f"one of the images {first} to {first + BATCH - 1} cannot be decoded; find it "
                "with: facepairs data check"
            ) from None
        vectors[done : done + len(some)] = share.add(some)[: len(vectors) - done]
        if progress:
            progress(min(done + len(some), len(vectors)), len(vectors))
