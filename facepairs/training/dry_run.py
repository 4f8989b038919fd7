"""`plan_training`: what a training would do, and about how long it would take here.

Nothing is trained or written. A few batches are computed with random weights, which take as long as
trained ones.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import tensorflow as tf

from facepairs.config import FISHER, TrainConfig
from facepairs.data.index import FaceIndex
from facepairs.data.split import PeopleSplit
from facepairs.images.crop_plan import CropPlan
from facepairs.models.frozen_backbone import FrozenBackboneNetwork
from facepairs.models.network import Trainable
from facepairs.pipeline.arrays import aligned_array
from facepairs.pipeline.dataset import InputSource, image_batches
from facepairs.pipeline.features import BATCH, FeatureStore
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import store_bytes
from facepairs.training.fitting.fisher import PROJECTION_IMAGES, SAMPLE_IMAGES
from facepairs.training.inputs.pair_cache import open_training_cache
from facepairs.training.inputs.store import store_kind
from facepairs.training.inputs.training_data import TrainingData, limit_batch_size
from facepairs.training.loop.clock import running_s
from facepairs.training.loop.step import SINGLE_DEVICE, Batch, TrainStep
from facepairs.training.options import TrainOptions
from facepairs.training.session import TrainingState, create_state
from facepairs.training.stages import ending_s

ROUNDS = 3  # of each measurement
SCORING = 1 / 3  # of the time of a training step: forward only
# What fitting takes, in photos whose features take as long; measured on two cores.
MIXTURE_PHOTOS, MIXTURE_PER_PHOTO, PROJECTION_PER_PHOTO = 3_600, 0.4, 0.7
EXPORT_MB = 1_150  # for each member of a frozen backbone, more than training needs


@dataclass(frozen=True)
class TrainingPlan:
    """What a training would do; times and memory are estimates for this machine.

    Attributes:
        photos: Usable photos.
        training_photos: Those of the people who are trained on.
        people: Number of people in each part of the split.
        genuine_pairs: How many different genuine pairs the training photos form.
        epochs: Epochs; with `minutes`, as many as fit.
        steps_per_epoch: Steps between two validations.
        batch_size: Pairs per step.
        store: Where images come from: `files`, `memory` or `tfrecord`.
        store_mb: Decoded photos in memory.
        features_mb: Features of a frozen backbone; in a file where they do not fit in memory.
        memory_mb: The most at a time: while training or, for siamese, while exporting.
        preparation_minutes: For what comes before the first step.
        epoch_minutes: For an epoch with its validation.
        ending_minutes: For export and calibration.
    """

    photos: int
    training_photos: int
    people: dict[str, int]
    genuine_pairs: int
    epochs: int
    steps_per_epoch: int
    batch_size: int
    store: str
    store_mb: float
    features_mb: float
    memory_mb: float
    preparation_minutes: float
    epoch_minutes: float
    ending_minutes: float

    @property
    def minutes(self) -> float:
        """About how long the training takes in all."""
        epochs = self.epochs * self.epoch_minutes
        return self.preparation_minutes + epochs + self.ending_minutes


def plan_training(
    index: FaceIndex,
    plan: CropPlan,
    split: PeopleSplit,
    config: TrainConfig,
    options: TrainOptions = TrainOptions(),  # noqa: B008 - frozen
) -> TrainingPlan:
    """Measure a few batches on one device and return what the training would do.

    Args:
        index: The images, from `prepare`.
        plan: How they are cropped, from `prepare`.
        split: The people, from `prepare`.
        config: The settings, from `resolve_config`.
        options: How the training would run.
    """
    config = limit_batch_size(config, split)
    files, cache = FileStore(index, plan), None
    if config.cache:
        cache = open_training_cache(Path(config.cache), index, plan, split, config)
    data = TrainingData(config, index, plan, split, files, cache)
    state = create_state(data, SINGLE_DEVICE)
    store, photos = store_kind(config, len(index)), len(index)
    decoding_s = _decoding_s(files, photos)
    step_s, features_s, feature_count = _compute_s(data, state)
    preparation_s = photos * (decoding_s if store == "memory" else 0.0)
    if feature_count:
        preparation_s += photos * (features_s + (decoding_s if store == "files" else 0.0))
        if not config.init:
            preparation_s += features_s * _fitted_photos(data)
    elif store == "files":
        step_s += 2 * config.batch_size * decoding_s
    validation_steps = SCORING * len(data.validation_pairs()) / config.batch_size
    epoch_s = step_s * (data.steps_per_epoch + validation_steps)
    export_s = ending_s(data)
    counts = index.image_counts[split.training].astype(np.int64)
    store_mb = store_bytes(photos, config.crop_px) / 1e6 if store == "memory" else 0.0
    features_mb = photos * feature_count * 2 / 1e6  # float16
    return TrainingPlan(
        photos=photos,
        training_photos=int(counts.sum()),
        people={name: len(part) for name, part in vars(split).items()},
        genuine_pairs=int((counts * (counts - 1) // 2).sum()),
        epochs=_epochs(config, state, preparation_s + export_s, epoch_s),
        steps_per_epoch=data.steps_per_epoch,
        batch_size=config.batch_size,
        store=store,
        store_mb=store_mb,
        features_mb=features_mb,
        memory_mb=psutil.Process().memory_info().rss / 1e6
        + max(store_mb + features_mb, _export_mb(config)),
        preparation_minutes=preparation_s / 60,
        epoch_minutes=epoch_s / 60,
        ending_minutes=export_s / 60,
    )


def _epochs(config: TrainConfig, state: TrainingState, other_s: float, epoch_s: float) -> int:
    """Return how many epochs are trained; with `minutes`, as many as fit, and at least one."""
    if config.minutes and state.network.trainable:
        fitting = int((config.minutes * 60 - other_s) / epoch_s)
        return max(1, min(fitting, config.max_epochs))
    return state.schedule.epochs


def _decoding_s(files: FileStore, photos: int) -> float:
    """Measure how long it takes to read and crop one photo, in seconds."""
    batches = iter(image_batches(files, np.arange(min(photos, ROUNDS * BATCH)), BATCH))
    started, count = running_s(), 0
    for batch in batches:
        count += len(batch)
    return (running_s() - started) / count


def _compute_s(data: TrainingData, state: TrainingState) -> tuple[float, float, int]:
    """Measure a training step and the features of one photo.

    Returns:
        Seconds of a step, 0 for a model without; seconds of a photo's features and how many numbers
        they are, both 0 for a model without a frozen backbone.
    """
    network = state.network
    if not network.trainable:
        return 0.0, 0.0, 0
    batch = next(iter(data.batches(data.store, data.sampler(), 0, None)))
    model: Trainable = network
    source: InputSource = data.store
    features_s, count = 0.0, 0
    if isinstance(network, FrozenBackboneNetwork):
        count = network.feature_count
        features = tf.function(network.features, autograph=False)
        photos = batch["images"][:BATCH]
        features_s = _mean_s(lambda: features(photos).numpy()) / len(photos)
        rows = len(batch["images"])
        model = network.feature_head()
        source = FeatureStore(aligned_array((rows, count), np.float16))
        batch = {**batch, "images": tf.range(rows)}
    return _step_s(model, source, batch, state), features_s, count


def _step_s(model: Trainable, source: InputSource, batch: Batch, state: TrainingState) -> float:
    """Measure a training step, in seconds."""
    step = TrainStep(model, source, 0, optimizer=state.optimizer)
    numbers = itertools.count()
    return _mean_s(lambda: float(step(batch, next(numbers))))


def _mean_s(run: Callable[[], object]) -> float:
    """Return the mean time of a call in seconds, after one that compiles."""
    run()
    started = running_s()
    for _ in range(ROUNDS):
        run()
    return (running_s() - started) / ROUNDS


def _export_mb(config: TrainConfig) -> float:
    return EXPORT_MB * len(config.members) if config.model in FISHER else 0.0


def _fitted_photos(data: TrainingData) -> float:
    """Return how many photos' features take as long as fitting the backbone and the projection."""
    photos = len(data.images)
    mixture = MIXTURE_PHOTOS + MIXTURE_PER_PHOTO * min(photos, SAMPLE_IMAGES)
    return mixture + PROJECTION_PER_PHOTO * min(photos, PROJECTION_IMAGES)
