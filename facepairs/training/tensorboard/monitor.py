"""What the TensorBoard log shows: validation pairs, their faces and their embeddings."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.models.frozen_backbone import FeatureHead
from facepairs.models.network import EmbeddingNetwork, Network, Trainable
from facepairs.models.step_random import StepRandom
from facepairs.pipeline.dataset import InputSource, Store, load_ahead
from facepairs.training.loop.validation import Validator
from facepairs.training.tensorboard.pictures import pair_grid

BATCH_SIZE = 16  # a graph for larger batches takes tens of megabytes
THUMBNAIL_PX = 64
PROJECTOR_IMAGES, PROJECTOR_IMAGES_PER_PERSON = 500, 8

Ints = npt.NDArray[np.integer[Any]]
Pixels = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Monitor:
    """What a log shows; images are identified by number.

    Attributes:
        validator: Its pairs, and the scores of the last validation.
        name: Returns (person, image) of an image.
        thumbnails: int[K] → uint8[K, 64, 64, 3].
        embed: int[K] → float32[K, D]; None when the model has no embeddings.
        projector_images: int64[K], the images for the projector.
    """

    validator: Validator
    name: Callable[[int], tuple[str, str]]
    thumbnails: Callable[[Ints], Pixels]
    embed: Callable[[Ints], Floats] | None
    projector_images: Ints


def make_monitor(
    model: Trainable,
    source: InputSource,
    store: Store,
    index: FaceIndex,
    validator: Validator,
) -> Monitor:
    """Return what the log of a training shows.

    Args:
        model: What is trained.
        source: The source of its inputs.
        store: The images' pixels.
        index: The images.
        validator: Scores the validation pairs.
    """
    embed = None
    if isinstance(model, EmbeddingNetwork | FeatureHead):
        compiled = tf.function(model.embeddings, autograph=False, reduce_retracing=True)
        embed = map_images(source, compiled)

    def name(image: int) -> tuple[str, str]:
        return index.people[int(index.person_of[image])], index.name(image)

    people = np.unique(index.person_of[validator.pairs.images()]).astype(np.int64)
    return Monitor(
        validator,
        name,
        map_images(store, _shrink),
        embed,
        choose_projector_images(index.first, people),
    )


def map_images(
    source: InputSource, function: Callable[[tf.Tensor], tf.Tensor]
) -> Callable[[Ints], npt.NDArray[Any]]:
    """Return a function from image numbers, int[K], to `function` of their inputs, [K, …].

    The dataset is built once: TensorFlow would trace each new one again, and release the memory of
    its graph late.
    """
    batches: list[npt.NDArray[np.int32]] = []
    numbers = tf.data.Dataset.from_generator(
        lambda: iter(batches), output_signature=tf.TensorSpec([None], tf.int32)
    )
    dataset = load_ahead(numbers, source.loader(BATCH_SIZE))

    def mapped(images: Ints) -> npt.NDArray[Any]:
        starts = range(0, len(images), BATCH_SIZE)
        batches[:] = [images[at : at + BATCH_SIZE].astype(np.int32) for at in starts]
        return np.concatenate([np.asarray(function(source.gather(batch))) for batch in dataset])

    return mapped


def _shrink(pixels: tf.Tensor) -> tf.Tensor:
    """Average uint8[N, px, px, 3] down to uint8[N, 64, 64, 3]."""
    small = tf.image.resize(pixels, (THUMBNAIL_PX, THUMBNAIL_PX), "area")
    return tf.cast(tf.round(small), tf.uint8)


def choose_projector_images(first: npt.NDArray[np.integer], people: Ints) -> Ints:
    """Return at most 500 images, up to 8 of each of the people with the most photos.

    Args:
        first: int[people + 1], the number of each person's first image, as in the index.
        people: int64[P], person numbers.
    """
    ends = np.minimum(first[people + 1], first[people] + PROJECTOR_IMAGES_PER_PERSON)
    order = np.argsort(first[people] - ends, kind="stable")[:PROJECTOR_IMAGES]
    chosen = [np.arange(first[people[i]], ends[i], dtype=np.int64) for i in order]
    return np.concatenate([np.zeros(0, np.int64), *chosen])[:PROJECTOR_IMAGES]


def training_grid(network: Network, store: Store, block: PairList, seed: int) -> Pixels:
    """Draw pairs as the network sees them at the first step.

    Args:
        network: The network.
        store: The images.
        block: The pairs.
        seed: Of the training.

    Returns:
        uint8[H, W, 3].
    """
    read = map_images(store, lambda pixels: pixels)
    pixels = read(np.concatenate([block.left, block.right]))
    inputs = np.asarray(network.preprocess(tf.constant(pixels), StepRandom(seed, 0)))
    return pair_grid(inputs, block.genuine)
