"""`train_people`: from people and their photos to a run folder with a bundle.

Read it from top to bottom: open the data, build the training, train, and write the bundle.
`facepairs.training.loop` has the loop itself. Importing this module loads TensorFlow.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import keras

from facepairs import choices
from facepairs.bundles.bundle import Bundle
from facepairs.config import TrainConfig
from facepairs.data.index import FaceIndex
from facepairs.data.split import PeopleSplit
from facepairs.errors import BadConfig
from facepairs.fisher.network import FisherNetwork
from facepairs.images.crop import CropPlan
from facepairs.models.network import Trainable
from facepairs.pipeline.dataset import Store
from facepairs.pipeline.files import photos_named
from facepairs.support import console
from facepairs.support.platform import keep_freed_memory
from facepairs.training.distributed import DistributedContext, connect_devices
from facepairs.training.features import prepare_features
from facepairs.training.inputs.data import TrainingData
from facepairs.training.loop import (
    EpochBoard,
    ProgressReport,
    ShouldStop,
    TrainingInterrupted,
    Validator,
    stop_on_signal,
    train_epochs,
)
from facepairs.training.run_folder import Run, RunFolder
from facepairs.training.step import TrainStep
from facepairs.training.trained_bundle import write_trained_bundle
from facepairs.training.training import Training


def train_people(
    index: FaceIndex,
    plan: CropPlan,
    split: PeopleSplit,
    config: TrainConfig,
    out: Path,
    *,
    devices: choices.Devices = "one",
    store: choices.Store = "auto",
    callbacks: Sequence[keras.callbacks.Callback] = (),
    started_s: float | None = None,
) -> Run:
    """Train a model, calibrate it and write `out/bundle`.

    When there are several workers, all of them call this; only the chief writes to `out`.

    Args:
        index: The images, from `prepare`.
        plan: How they are cropped, from `prepare`.
        split: The people, from `prepare`.
        config: The settings, complete.
        out: The run folder; a run in it is continued.
        devices: As in `facepairs.train`.
        store: As in `facepairs.train`.
        callbacks: Called beside the training's own, on the chief alone.
        started_s: When the command began, by `time.perf_counter`; None: now.

    Raises:
        LostWorker: Another worker stopped or cannot be reached.
        FacepairsError: Anything that the user can correct.
    """
    keep_freed_memory()
    started_s = time.perf_counter() if started_s is None else started_s
    context = connect_devices(devices)
    _check_devices(context, config)
    bundle, interrupted = None, False
    with (
        context.translate_lost_worker(),
        RunFolder(out, read_only=not context.is_chief) as run,
        stop_on_signal() as should_stop,
    ):
        data = TrainingData.open(index, plan, split, config, store)
        training = Training.build(data, run, context, started_s)
        run.begin(config)
        try:
            with photos_named(data.store):
                model, source = _model_and_source(training, should_stop)
                _train(training, model, source, callbacks, should_stop)
        except TrainingInterrupted:
            interrupted = True
        else:
            if context.is_chief:
                bundle = write_trained_bundle(training, source)
        context.shutdown()
        result = _result(training, interrupted, bundle)
        if bundle:
            run.finish(result)
        return result


def _check_devices(context: DistributedContext, config: TrainConfig) -> None:
    """Log which devices train; raise BadConfig when a batch is too small for them."""
    if not context.strategy:
        return
    if config.batch_size < 2 * context.replicas:
        raise BadConfig(
            f"batch_size {config.batch_size} is too small for {context.replicas} devices; use "
            f"{2 * context.replicas} or more, or fewer devices",
            "batch_size",
            "devices",
        )
    worker = f"worker {context.worker} of {context.workers}"
    console.log(f"{worker}; {context.replicas} devices share every batch")


def _model_and_source(training: Training, should_stop: ShouldStop) -> tuple[Trainable, Store]:
    """Return what is trained and the source of its inputs: images, or features computed once."""
    network = training.network
    if not isinstance(network, FisherNetwork):
        return network, training.data.store
    features = prepare_features(training, network, should_stop)
    return network.feature_head(), features


def _train(
    training: Training,
    model: Trainable,
    source: Store,
    callbacks: Sequence[keras.callbacks.Callback],
    should_stop: ShouldStop,
) -> None:
    """Train the epochs that are left, if any."""
    if training.epochs_done >= training.epochs:
        return
    _describe_selection(training)
    data, context, config = training.data, training.context, training.data.config
    validator = Validator(model, source, data.validation_pairs(), config.batch_size)
    step = TrainStep(model, config.seed, training.optimizer, context)
    batches = data.batches(source, training.epochs_done, context.local_range(config.batch_size))
    chosen: list[keras.callbacks.Callback] = []
    if context.is_chief:
        folder = str(training.run.path / "tensorboard")
        board = EpochBoard(folder, write_graph=False)
        chosen = [ProgressReport(training), board, *callbacks]
    driven = keras.callbacks.CallbackList(chosen, model=training)
    train_epochs(training, step, batches, validator, driven, should_stop)
    done, asked = training.epochs_done, config.epochs or training.epochs
    if done < asked:
        console.log(f"stopping early after epoch {done} of {asked}")


def _describe_selection(training: Training) -> None:
    """Say so where nobody chooses the epoch although somebody should."""
    config = training.data.config
    if config.validation_share and not training.chooses_epoch:
        or_start = ", or the start where it is no worse," if config.init else ""
        console.log(
            f"too few people to choose the best epoch: the last one{or_start} is kept whatever "
            "patience says, and the validation AUC is of the calibration people"
        )


def _result(training: Training, interrupted: bool, bundle: Bundle | None) -> Run:
    split, kept = training.data.split, training.kept
    return Run(
        out=training.run.path,
        interrupted=interrupted,
        epochs=training.epochs_done,
        epoch=kept.epoch if kept else 0,
        seconds=round(training.seconds, 1),
        wall_seconds=round(training.wall_s, 1),
        val_auc=kept.val_auc if kept else None,
        val_people=len(split.validation),
        people={name: len(part) for name, part in vars(split).items()},
        threshold=bundle.threshold if bundle else None,
    )
