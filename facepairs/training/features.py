"""Features of a frozen backbone: computed once for every image, then read instead of pixels.

The features are one float16[images, F] array in memory. Several workers compute it together: each
one computes its share of the batches, then receives what the others computed.
"""

from collections.abc import Callable

import numpy as np
import psutil
import tensorflow as tf

from facepairs.errors import NotEnough
from facepairs.models.frozen_backbone import FrozenBackboneNetwork
from facepairs.pipeline.dataset import Store, image_batches
from facepairs.pipeline.files import photos_named
from facepairs.pipeline.memory import MemoryStore, zeros
from facepairs.support import console
from facepairs.training.distributed import SINGLE_DEVICE, DistributedContext

BATCH = 64


def precompute(
    network: FrozenBackboneNetwork,
    store: Store,
    images: int,
    context: DistributedContext = SINGLE_DEVICE,
    after_round: Callable[[], None] = lambda: None,
) -> MemoryStore:
    """Compute the features of every image.

    Args:
        network: Computes the features; its backbone must not change afterwards.
        store: The images.
        images: How many images the store has.
        context: The workers. The batches, and so the features, are those of a single one.
        after_round: Called after each round of batches, equally often on every worker.

    Returns:
        The features of images 0 to `images` - 1.

    Raises:
        BadImage: An image cannot be decoded.
        NotEnough: The features do not fit in memory.
    """
    needed, free = 2 * images * network.feature_count, psutil.virtual_memory().available
    if needed > free:
        raise NotEnough(
            f"the features of {images:,} photos take {needed / 1e9:.1f} GB of memory, and "
            f"{free / 1e9:.1f} GB are free; train on fewer photos, or another model"
        )
    numbers = np.arange(images)
    own = numbers[numbers // BATCH % context.workers == context.worker]
    compute = tf.function(
        lambda batch, arrays: network.features(store.gather(batch, *arrays)), autograph=False
    )

    vectors = zeros((images, network.feature_count), np.float16)
    progress = console.progress("computing features")
    batches, round_images = iter(image_batches(store, own, BATCH)), context.workers * BATCH
    for start in range(0, images, round_images):  # every worker computes one batch
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
    return MemoryStore(vectors)
