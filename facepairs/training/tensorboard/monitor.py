"""What the TensorBoard log looks at: validation pairs, their faces, their embeddings."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.models.network import EmbeddingNetwork, Network
from facepairs.models.step_random import StepRandom
from facepairs.pipeline.dataset import Store
from facepairs.pipeline.decode import plain
from facepairs.training.tensorboard.pictures import pair_grid

BATCH = 16  # a graph for more takes tens of megabytes
THUMBNAIL_PX = 64
POINTS, POINTS_EACH = 500, 8  # in the projector: in all, of one person

Ints = npt.NDArray[np.integer[Any]]
Pixels = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Watched:
    """What a log may show; images are given by number.

    `scores` gives float64[N], those of `pairs` after the epoch that has ended. `name` gives person
    and image as they may be written. `thumbnails` gives uint8[K, 64, 64, 3], None where faces are
    not wanted; `embed` float32[K, D], None where the model has no embeddings; `projected` are the
    images for the projector.
    """

    pairs: PairList
    scores: Callable[[], npt.NDArray[np.float64]]
    name: Callable[[int], tuple[str, str]]
    thumbnails: Callable[[Ints], Pixels] | None
    embed: Callable[[Ints], Floats] | None
    projected: Ints


def watch(
    network: Network,
    index: FaceIndex,
    pairs: PairList,
    scores: Callable[[], npt.NDArray[np.float64]],
    stores: tuple[Store, Store],
    faces: bool,
) -> Watched:
    """Join what a log looks at; `stores` hold images and what the network is fed from.

    Without `faces` there are no thumbnails, and numbers stand for names.
    """
    images, fed = stores
    embed = None
    if isinstance(network, EmbeddingNetwork):
        compiled = tf.function(network.embeddings, autograph=False, reduce_retracing=True)
        embed = _by_number(fed, compiled)

    def name(image: int) -> tuple[str, str]:
        if faces:
            return index.people[int(index.person_of[image])], index.name(image)
        return f"person {index.person_of[image]}", f"image {image}"

    people = np.unique(index.person_of[pairs.images()]).astype(np.int64)
    return Watched(
        pairs,
        scores,
        name,
        _by_number(images, _small) if faces else None,
        embed,
        projected_images(index.first, people),
    )


def _by_number(
    store: Store, function: Callable[[tf.Tensor], tf.Tensor]
) -> Callable[[Ints], npt.NDArray[Any]]:
    """Give what a function makes of a store's images, called by their numbers.

    Their dataset is made once: each call's own would be traced anew, and TensorFlow gives back what
    a graph took long after it is gone.
    """
    wanted: list[npt.NDArray[np.int32]] = []
    batches = (
        tf.data.Dataset.from_generator(
            lambda: iter(wanted), output_signature=tf.TensorSpec([None], tf.int32)
        )
        .map(plain(store.loader(BATCH)), num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        .prefetch(2)
    )

    def made(numbers: Ints) -> npt.NDArray[Any]:
        starts = range(0, len(numbers), BATCH)
        wanted[:] = [numbers[at : at + BATCH].astype(np.int32) for at in starts]
        return np.concatenate([np.asarray(function(store.pixels(batch))) for batch in batches])

    return made


def _small(pixels: tf.Tensor) -> tf.Tensor:
    """Shrink uint8[N, px, px, 3] by averaging: uint8[N, 64, 64, 3]."""
    small = tf.image.resize(pixels, (THUMBNAIL_PX, THUMBNAIL_PX), "area")
    return tf.cast(tf.round(small), tf.uint8)


def projected_images(first: npt.NDArray[np.integer], people: Ints) -> Ints:
    """Choose at most 500 images for the projector, of people with most photos up to 8 each.

    `first` int[people + 1] is the index's; `people` are person numbers.
    """
    ends = np.minimum(first[people + 1], first[people] + POINTS_EACH)
    order = np.argsort(first[people] - ends, kind="stable")[:POINTS]
    chosen = [np.arange(first[people[i]], ends[i], dtype=np.int64) for i in order]
    return np.concatenate([np.zeros(0, np.int64), *chosen])[:POINTS]


def training_grid(network: Network, images: Store, block: PairList, seed: int) -> Pixels:
    """Draw a block's pairs as the network sees them at the first step: uint8[H, W, 3]."""
    pixels = _by_number(images, lambda pixels: pixels)(np.concatenate([block.left, block.right]))
    seen = np.asarray(network.preprocess(tf.constant(pixels), StepRandom(seed, 0)))
    return pair_grid(seen, block.genuine)
