"""What a training reads: its settings, its people, its images and its pairs."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.config import TrainConfig
from facepairs.data.article import ArticleSamplerForComparison
from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.data.sampler import DistinctPeopleSampler, PairSampler, Sampler, distinct_pairs
from facepairs.data.split import PeopleSplit
from facepairs.images.crop_plan import CropPlan
from facepairs.pipeline.dataset import InputSource, Store, make_dataset, people_numbers
from facepairs.pipeline.records.build import people_digest
from facepairs.pipeline.records.store import RecordStore
from facepairs.training.inputs.pair_cache import cached_batches
from facepairs.training.loop.schedule import training_blocks

MAX_VALIDATION_PAIRS = 2_000  # scored after each epoch


@dataclass(frozen=True)
class TrainingData:
    """The data of one training.

    Attributes:
        config: The settings.
        index: All images.
        plan: How they are cropped.
        split: Who is trained on, who calibrates and who is tested.
        store: The images' pixels.
        cache: Cached pairs for store `tfrecord`, else None.
    """

    config: TrainConfig
    index: FaceIndex
    plan: CropPlan
    split: PeopleSplit
    store: Store
    cache: RecordStore | None = None

    @property
    def images(self) -> npt.NDArray[np.int64]:
        """Numbers of the images that are trained on, rising."""
        return np.flatnonzero(np.isin(self.index.person_of, self.split.training))

    @property
    def steps_per_epoch(self) -> int:
        """Number of steps between two validations."""
        pairs = self.cache.pairs if self.cache else self.config.pairs_per_epoch
        return max(1, pairs // self.config.batch_size)

    def fingerprint(self) -> dict[str, Any]:
        """Return plain values that must be equal for a checkpoint to be resumed."""
        split = self.split
        return {
            "index": self.index.fingerprint,
            "crops": f"{self.plan.alignment} {self.plan.detector}".strip(),
            "people": [len(split.training), len(split.calibration), len(split.test)],
            "training": people_digest(self.index, split.training),
            "validation": people_digest(self.index, split.validation),
        }

    def calibration_pairs(self) -> PairList:
        """Draw distinct pairs of the calibration people, or of the training people without any."""
        people = self.split.calibration if len(self.split.calibration) else self.split.training
        config = self.config
        return distinct_pairs(
            self.index.first, people, config.recipe.calibration_pairs, config.seed
        )

    def validation_pairs(self) -> PairList:
        """Draw distinct pairs of the people who choose the best epoch.

        Where nobody chooses it, return a part of the calibration pairs, to watch the training.
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
            return ArticleSamplerForComparison(first, people, seed, recipe.genuine_share)
        if recipe.embeds:
            size = config.batch_size
            return DistinctPeopleSampler(first, people, seed, size, recipe.several_share)
        return PairSampler(first, people, seed, recipe.genuine_share)

    def batches(
        self,
        source: InputSource,
        sampler: Sampler,
        start_step: int,
        pair_range: tuple[int, int] | None,
    ) -> Iterable[dict[str, tf.Tensor]]:
        """Return the training batches from a step on, without end.

        Args:
            source: What the model is fed from.
            sampler: Draws the pairs; not used with a cache.
            start_step: The first step.
            pair_range: The [begin, end) range of each batch that this worker reads; None for all.
        """
        config, steps = self.config, self.steps_per_epoch
        size = config.batch_size
        if self.cache:
            return cached_batches(self.cache, size, config.seed, start_step, pair_range)
        people = people_numbers(self.index.person_of, self.split.training)
        batches: Iterable[dict[str, tf.Tensor]] = make_dataset(
            source,
            lambda: training_blocks(sampler, size, steps, start_step),
            size,
            people,
            pair_range,
        )
        return batches


def limit_batch_size(config: TrainConfig, split: PeopleSplit) -> TrainConfig:
    """Lower the batch size where a batch of distinct people needs more people than there are.

    A step on precomputed features takes as long for few pairs as for many. So an epoch keeps its
    number of steps, unless its pairs were chosen: more steps do not help so few people.
    """
    people, recipe = len(split.training), config.recipe
    if not recipe.embeds or people >= config.batch_size:
        return config
    usual = recipe.from_scratch.pairs_per_epoch
    if not recipe.precomputes or config.pairs_per_epoch != usual:
        return config.replace(batch_size=people)
    steps = usual // config.batch_size
    return config.replace(batch_size=people, pairs_per_epoch=steps * people)
