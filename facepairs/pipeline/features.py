"""Features of a frozen backbone: computed once for every image, then read instead of pixels.

The features are one float16[images, F] array. It is in memory when it takes at most a third of what
is free, otherwise in a memory-mapped `.npy` file. Several processes can compute it together: each
one takes its share of the batches, then receives what the others computed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import psutil
import tensorflow as tf

from facepairs.pipeline.cached_array import cached_array
from facepairs.pipeline.dataset import Store, image_batches
from facepairs.pipeline.files import photos_named
from facepairs.pipeline.memory import ArrayStore
from facepairs.support.progress import (
    MessageCallback,
    ProgressCallback,
    ignore_message,
    ignore_progress,
)

BATCH = 64
SHARE_OF_FREE_MEMORY = 1 / 3
Features = npt.NDArray[np.float16]


class Backbone(Protocol):
    """A network part whose weights training does not change."""

    @property
    def feature_count(self) -> int:
        """How many numbers describe an image."""
        ...

    def features(self, images: tf.Tensor) -> tf.Tensor:
        """Describe images: uint8[N, crop_px, crop_px, 3] → float16[N, feature_count]."""
        ...


@dataclass(frozen=True)
class WorkShare:
    """The batches that one of several processes computes: `worker`, and every `workers`-th after.

    Attributes:
        worker: Number of this process, from 0.
        workers: How many processes there are.
        sum: Returns the elementwise sum of the float16 arrays that all processes pass to it.
    """

    worker: int
    workers: int
    sum: Callable[[Features], Features]


ALL_WORK = WorkShare(0, 1, lambda features: features)


class FeatureStore(ArrayStore):
    """Features by image number.

    Args:
        vectors: float16[images, F], aligned to 64 bytes; not copied on a CPU.
    """

    def __init__(self, vectors: Features) -> None:
        super().__init__(vectors)
        self.vectors = vectors


def precompute(
    backbone: Backbone,
    store: Store,
    images: int,
    path: Path,
    progress: ProgressCallback = ignore_progress,
    log: MessageCallback = ignore_message,
    share: WorkShare = ALL_WORK,
) -> FeatureStore:
    """Compute the features of every image, or map the file that an interrupted run left at `path`.

    Args:
        backbone: Computes the features; its weights must not change afterwards.
        store: The images.
        images: How many images the store has.
        path: Where the array goes when memory is short; its name must depend on the images and the
            backbone's weights. Several processes must all start with nothing at `path`.
        progress: Called with images done and in all, equally often in every process.
        log: Receives a line when the file at `path` is damaged and is computed again.
        share: This process's part of the work. The batches, and so the features, are those of a
            single process.

    Returns:
        The features of images 0 to `images` - 1.

    Raises:
        BadData: An image cannot be decoded, or the disk is full.
    """
    numbers = np.arange(images)
    own = numbers[numbers // BATCH % share.workers == share.worker]
    compute = tf.function(
        lambda batch, arrays: backbone.features(store.gather(batch, *arrays)), autograph=False
    )

    def fill(vectors: Features) -> None:
        """Compute the features; in each round every process computes one batch."""
        batches, round_images = iter(image_batches(store, own, BATCH)), share.workers * BATCH
        for start in range(0, images, round_images):
            computed = np.zeros((round_images, backbone.feature_count), np.float16)
            first = share.worker * BATCH
            if start + first < images:
                with photos_named(store):
                    batch = compute(next(batches), store.arrays).numpy()
                computed[first : first + len(batch)] = batch
            end = min(start + round_images, images)
            vectors[start:end] = share.sum(computed)[: end - start]
            progress(end, images)

    shape = (images, backbone.feature_count)
    fits = 2 * math.prod(shape) <= SHARE_OF_FREE_MEMORY * psutil.virtual_memory().available
    return FeatureStore(cached_array(None if fits else path, shape, np.float16, fill, log))
