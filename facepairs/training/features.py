"""Features of a frozen backbone: computed once for every image, then read instead of pixels.

The features are one float16[images, F] array. It is in memory when it takes at most a third of what
is free, otherwise in a memory-mapped `.npy` file. Several workers compute it together: each one
computes its share of the batches, then receives what the others computed.
"""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil
import tensorflow as tf

from facepairs.models.frozen_backbone import FrozenBackboneNetwork
from facepairs.pipeline.dataset import Store, image_batches
from facepairs.pipeline.files import photos_named
from facepairs.pipeline.memory import MemoryStore, cached_array
from facepairs.support import console
from facepairs.training.distributed import SINGLE_DEVICE, DistributedContext

BATCH = 64
SHARE_OF_FREE_MEMORY = 1 / 3
Features = npt.NDArray[np.float16]


def precompute(
    network: FrozenBackboneNetwork,
    store: Store,
    images: int,
    path: Path,
    context: DistributedContext = SINGLE_DEVICE,
    after_round: Callable[[], None] = lambda: None,
) -> MemoryStore:
    """Compute the features of every image, or map the file that an interrupted run left at `path`.

    Args:
        network: Computes the features; its backbone must not change afterwards.
        store: The images.
        images: How many images the store has.
        path: Where the array goes when memory is short; its name must depend on the images and the
            backbone's weights. Several workers must all start with nothing at `path`.
        context: The workers. The batches, and so the features, are those of a single one.
        after_round: Called after each round of batches, equally often on every worker.

    Returns:
        The features of images 0 to `images` - 1.

    Raises:
        BadData: An image cannot be decoded, or the disk is full.
    """
    numbers = np.arange(images)
    own = numbers[numbers // BATCH % context.workers == context.worker]
    compute = tf.function(
        lambda batch, arrays: network.features(store.gather(batch, *arrays)), autograph=False
    )

    def fill(vectors: Features) -> None:
        """Compute the features; in each round every worker computes one batch."""
        progress = console.progress("computing features")
        batches, round_images = iter(image_batches(store, own, BATCH)), context.workers * BATCH
        for start in range(0, images, round_images):
            computed = np.zeros((round_images, network.feature_count), np.float16)
            first = context.worker * BATCH
            if start + first < images:
                with photos_named(store):
                    batch = compute(next(batches), store.arrays).numpy()
                computed[first : first + len(batch)] = batch
            end = min(start + round_images, images)
            vectors[start:end] = context.sum(computed, np.float16)[: end - start]
            progress(end, images)
            after_round()

    shape = (images, network.feature_count)
    fits = 2 * math.prod(shape) <= SHARE_OF_FREE_MEMORY * psutil.virtual_memory().available
    return MemoryStore(cached_array(None if fits else path, shape, np.float16, fill))
