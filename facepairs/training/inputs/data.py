"""`TrainingData`: what a training reads, its settings, people, images and pairs.

It yields the training batches, and draws the fixed pairs of people who are not trained on: those
that are scored after each epoch, and those that calibrate the bundle. `open_store` decides where
the images come from.
"""

import hashlib
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil
import tensorflow as tf

from facepairs import choices
from facepairs.config import Settings
from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.data.sampler import (
    ArticleSamplerForComparison,
    DistinctPeopleSampler,
    PairSampler,
    Sampler,
    distinct_pairs,
)
from facepairs.data.split import PeopleSplit
from facepairs.photos.crop import CropPlan
from facepairs.pipeline.dataset import WHOLE, Store, make_dataset
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore
from facepairs.pipeline.records.build import people_digest
from facepairs.pipeline.records.store import RecordStore
from facepairs.support import console
from facepairs.training.inputs.pair_cache import open_training_cache
from facepairs.training.schedule import training_blocks

CALIBRATION_PAIRS = 4_000  # half of them genuine
MAX_VALIDATION_PAIRS = 2_000  # scored after each epoch
SHARE_OF_FREE_MEMORY = 0.25  # that the memory store may take when the choice is `auto`


@dataclass(frozen=True)
class TrainingData:
    """The data of one training.

    Attributes:
        config: The settings.
        index: All images.
        plan: How they are cropped.
        split: Who is trained on, who chooses the epoch, who calibrates and who is tested.
        store: The images' pixels.
        cache: Cached pairs where `config.pair_cache` names them, else None.
    """

    config: Settings
    index: FaceIndex
    plan: CropPlan
    split: PeopleSplit
    store: Store
    cache: RecordStore | None = None

    @classmethod
    def open(
        cls,
        index: FaceIndex,
        plan: CropPlan,
        split: PeopleSplit,
        config: Settings,
        kind: choices.Store,
    ) -> "TrainingData":
        """Open the cache that the settings name, and a store, as `open_store` does."""
        cache = None
        if config.pair_cache:
            cache = open_training_cache(Path(config.pair_cache), index, plan, split, config)
            kind = "files"  # of the validation pairs
        store = open_store(index, plan, kind)
        return cls(limit_batch_size(config, split), index, plan, split, store, cache)

    @property
    def images(self) -> npt.NDArray[np.int64]:
        """Numbers of the images that are trained on, rising."""
        return np.flatnonzero(np.isin(self.index.person_of, self.split.training))

    @property
    def steps_per_epoch(self) -> int:
        """Number of steps between two validations."""
        return self.config.pairs_per_epoch // self.config.batch_size

    def fingerprint(self) -> str:
        """Return a digest that a resumed run must match: people, images, crops, the start."""
        split, plan, start = self.split, self.plan, self.config.start
        parts = [self.index.fingerprint, plan.alignment, plan.detector]
        parts += [start.manifest.files[start.manifest.network.file].sha256] if start else []
        parts += [people_digest(self.index, part) for part in vars(split).values()]
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def calibration_pairs(self) -> PairList:
        """Draw distinct pairs of the calibration people, or of the training people without any."""
        people = self.split.calibration if len(self.split.calibration) else self.split.training
        return distinct_pairs(self.index.first, people, CALIBRATION_PAIRS, self.config.seed)

    def validation_pairs(self) -> PairList:
        """Draw distinct pairs of the people who choose the best epoch.

        Without validation people, return part of the calibration pairs, to watch the training.
        """
        if not len(self.split.validation):
            pairs = self.calibration_pairs()
            return pairs.where(slice(None, None, -(-len(pairs) // MAX_VALIDATION_PAIRS)))
        people, seed = self.split.validation, self.config.seed
        return distinct_pairs(self.index.first, people, MAX_VALIDATION_PAIRS, seed)

    def sampler(self) -> Sampler:
        """Return the sampler of the training pairs."""
        first, people, config = self.index.first, self.split.training, self.config
        recipe, seed = config.recipe, config.seed
        if recipe.article:
            return ArticleSamplerForComparison(first, people, seed)
        if recipe.embeds:
            size = config.batch_size
            return DistinctPeopleSampler(first, people, seed, size, recipe.several_share)
        return PairSampler(first, people, seed)

    def batches(
        self,
        source: Store,
        first_epoch: int | tf.Tensor,
        epochs: int | None = None,
        replicas: int = 1,
        part: tuple[int, int] = WHOLE,
    ) -> tf.data.Dataset:
        """Return the training batches from an epoch on.

        Args:
            source: What the model is fed from.
            first_epoch: The first epoch, from 0; a tensor is int64.
            epochs: The number of epochs; None: without end.
            replicas: The devices that share a step: each gets a batch.
            part: As in `make_dataset`.
        """
        config, steps = self.config, self.steps_per_epoch
        size, batches = config.batch_size // replicas, steps * replicas  # of a device; an epoch's
        if self.cache:
            found = self.cache.batches(size, config.seed, first_epoch * batches, part)
            return found if epochs is None else found.take(epochs * batches)
        blocks = partial(training_blocks, self.sampler(), config.batch_size, steps, epochs)
        return make_dataset(source, blocks, size, part, (first_epoch,))

    def fixed_batches(self, source: Store, pairs: PairList) -> tf.data.Dataset:
        """Return the batches of some pairs; several workers score all of them."""
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
        size = self.config.batch_size
        counted = tf.data.experimental.assert_cardinality(-(-len(pairs) // size))
        batches = make_dataset(source, lambda: iter([pairs]), size)
        return batches.apply(counted).with_options(options)


def limit_batch_size(config: Settings, split: PeopleSplit) -> Settings:
    """Lower the batch size where a batch of distinct people needs more people than there are.

    A step on precomputed features takes as long for few pairs as for many. So an epoch keeps its
    number of steps, unless its pairs were chosen: more steps do not help so few people.
    """
    recipe, pairs = config.recipe, config.pairs_per_epoch
    if not recipe.embeds:
        return config
    size = min(config.batch_size, len(split.training))
    keeps_steps = recipe.precomputes and pairs == recipe.from_scratch.pairs_per_epoch
    if size < config.batch_size and keeps_steps:
        pairs = pairs // config.batch_size * size
    return replace(config, batch_size=size, pairs_per_epoch=pairs)


def open_store(index: FaceIndex, plan: CropPlan, kind: choices.Store) -> Store:
    """Open a store of images.

    Args:
        index: The images.
        plan: How they are cropped.
        kind: `files`, `memory`, or `auto`: `memory` if the images fit, else `files`.
    """
    if kind == "auto":
        size, free = 3 * len(index) * plan.spec.crop_px**2, psutil.virtual_memory().available
        kind = "memory" if size <= SHARE_OF_FREE_MEMORY * free else "files"
        sizes = f"{size / 1e6:,.0f} MB decoded, {free / 1e6:,.0f} MB of memory are free"
        console.log(f"store: {kind} ({sizes})")
    if kind == "files":
        return FileStore(index, plan)
    return MemoryStore.build(index, plan)
