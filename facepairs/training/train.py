"""`train_people`: from people and their photos to a run folder with a bundle.

Read it from top to bottom: open the data, build the training, prepare the model, train, and write
the bundle. `facepairs.training.loop` has the loop itself.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import keras

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.identities import Identities
from facepairs.config import TrainConfig
from facepairs.data.index import FaceIndex
from facepairs.data.split import PeopleSplit
from facepairs.errors import BadConfig
from facepairs.evaluation.serialize import to_plain
from facepairs.images.crop_plan import CropPlan
from facepairs.models.frozen_backbone import FrozenBackboneNetwork
from facepairs.models.network import Trainable
from facepairs.pipeline.dataset import Store
from facepairs.pipeline.features import FeatureStore
from facepairs.pipeline.files import photos_named
from facepairs.support.platform import keep_freed_memory
from facepairs.support.progress import MessageCallback
from facepairs.support.words import counted
from facepairs.training.callbacks import CollapseAlarm, ProgressReport
from facepairs.training.distributed import (
    DistributedContext,
    connect_devices,
    translate_lost_worker,
)
from facepairs.training.export.trained_bundle import calibrate_on_pairs, write_trained_bundle
from facepairs.training.fisher import (
    delete_features,
    fit_cohort,
    fit_mixture,
    precompute_features,
    start_projection,
)
from facepairs.training.inputs.data import TrainingData, limit_batch_size, open_store
from facepairs.training.inputs.pair_cache import open_training_cache
from facepairs.training.interrupt import stop_on_signal
from facepairs.training.loop import ShouldStop, TrainingInterrupted, train_epochs
from facepairs.training.options import TrainOptions
from facepairs.training.pictures import tensorboard_callbacks
from facepairs.training.run_folder.folder import RunFolder
from facepairs.training.run_folder.result import Run
from facepairs.training.step import TrainStep
from facepairs.training.training import Epoch, Training
from facepairs.training.validation import Validator


def train_people(
    index: FaceIndex,
    plan: CropPlan,
    split: PeopleSplit,
    config: TrainConfig,
    out: Path,
    options: TrainOptions = TrainOptions(),  # noqa: B008 - frozen
    resume: bool = False,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> Run:
    """Train a model, calibrate it and write `out/bundle`.

    When there are several workers, all of them call this; only the chief writes to `out`.

    Args:
        index: The images, from `prepare`.
        plan: How they are cropped, from `prepare`.
        split: The people, from `prepare`.
        config: The settings, from `resolve_config`.
        out: The run folder.
        options: How the training runs.
        resume: Continue the run in the folder, if there is one.
        callbacks: Called beside the training's own, on the chief alone.

    Raises:
        LostWorker: Another worker stopped or cannot be reached.
        FacepairsError: Anything that the user can correct.
    """
    keep_freed_memory()
    if options.started_s is None:
        options = replace(options, started_s=time.perf_counter())
    context = connect_devices(options.devices, options.log)
    _check_devices(context, config, options.log)
    with (
        translate_lost_worker(context.workers),
        RunFolder(out, resume, read_only=not context.is_chief) as run,
        stop_on_signal(options.log) as should_stop,
    ):
        data = _open_data(index, plan, split, config, run, options, context)
        training = Training.build(data, run, context, options)
        run.begin(config)
        bundle = None
        try:
            with photos_named(data.store):
                model, source = _prepare(training, should_stop)
                _train(training, model, source, callbacks, should_stop)
        except TrainingInterrupted:
            interrupted = True
        else:
            interrupted = False
            if context.is_chief:
                bundle = _write_bundle(training, source)
        context.shutdown()
        result = _result(training, interrupted, bundle)
        if bundle:
            result.save()
            run.log(f"trained {result.describe_time()}")
        return result


def _check_devices(context: DistributedContext, config: TrainConfig, log: MessageCallback) -> None:
    """Log which devices train; raise BadConfig when a batch is too small for them."""
    if not context.strategy:
        return
    if config.batch_size < 2 * context.replicas:
        raise BadConfig(
            f"batch_size {config.batch_size} is too small for {context.replicas} devices; use "
            f"--batch-size {2 * context.replicas} or more, or fewer devices"
        )
    log(
        f"worker {context.worker} of {context.workers}; {context.replicas} devices share every "
        "batch"
    )


def _open_data(
    index: FaceIndex,
    plan: CropPlan,
    split: PeopleSplit,
    config: TrainConfig,
    run: RunFolder,
    options: TrainOptions,
    context: DistributedContext,
) -> TrainingData:
    """Open the cache that the settings name, and the store."""
    cache, kind = None, options.store
    if config.cache:
        cache = open_training_cache(Path(config.cache), index, plan, split, config)
        kind = "files"
    run.log(f"{len(index)} images of {len(index.people)} people in {index.root}")
    folder = options.store_folder or run.path.parent
    with context.chief_first():  # the others find what the chief has decoded
        decoding = options.progress("decoding images")
        store = open_store(index, plan, kind, folder, options.log, decoding)
    return TrainingData(limit_batch_size(config, split), index, plan, split, store, cache)


def _prepare(training: Training, should_stop: ShouldStop) -> tuple[Trainable, Store]:
    """Return what is trained and the source of its inputs: images, or features computed once.

    A new training with a frozen backbone first fits the backbone, and then starts the projection
    from the features. The chief fits; all workers compute a share of the features.

    Raises:
        TrainingInterrupted: Nothing is saved: a resumed training begins here again.
    """
    network, data, context = training.network, training.data, training.context
    if not isinstance(network, FrozenBackboneNetwork):
        return network, data.store
    log, seed, images = training.options.log, data.config.seed, data.images
    if training.is_new:
        log("fitting local descriptors")
        if context.is_chief:
            display = training.options.progress("fitting local descriptors")
            fit_mixture(network, data.store, images, seed, display)
        context.broadcast_variables(network.head.variables)
    log(f"computing the features of {len(data.index):,} images")
    progress = training.options.progress("computing features")

    def progress_or_stop(done: int, total: int) -> None:
        progress(done, total)
        if context.any(should_stop()):  # every worker needs the others' features
            raise TrainingInterrupted

    features = precompute_features(
        network,
        data.store,
        len(data.index),
        training.run.path,
        progress_or_stop,
        log,
        context,
        data.index.fingerprint,
    )
    if training.is_new:
        if context.is_chief:
            log("starting the projection at principal components")
            start_projection(network, features, images, seed)
        context.broadcast_variables(network.head.variables)
    return network.feature_head(), features


def _train(
    training: Training,
    model: Trainable,
    source: Store,
    callbacks: Sequence[keras.callbacks.Callback],
    should_stop: ShouldStop,
) -> None:
    """Train the epochs that are left."""
    data, context, config = training.data, training.context, training.data.config
    _describe_plan(training)
    validator = Validator(model, source, data.validation_pairs(), config.batch_size)
    step = TrainStep(model, source, config.seed, training.optimizer, context)
    batches = data.batches(source, training.epochs_done, context.local_range(config.batch_size))
    chosen: list[keras.callbacks.Callback] = []
    if context.is_chief:
        chosen = [ProgressReport(training), CollapseAlarm(training)]
        chosen += [*tensorboard_callbacks(training, validator), *callbacks]
        if config.patience and training.chooses_epoch:
            chosen.append(_early_stopping(training, config.patience))
    if training.epochs_done < training.epochs:
        driven = keras.callbacks.CallbackList(chosen, model=training)
        train_epochs(training, step, batches, validator, driven, should_stop)
    _describe_end(training)


def _early_stopping(training: Training, patience: int) -> keras.callbacks.Callback:
    """Return Keras's callback, which has seen the epochs of a resumed training."""

    class EarlyStopping(keras.callbacks.EarlyStopping):  # type: ignore[misc]
        def on_train_begin(self, logs: Any = None) -> None:
            super().on_train_begin(logs)
            for done in training.history:
                self.on_epoch_end(done.epoch - 1, done.logs())

    return EarlyStopping("val_auc", mode="max", patience=patience)


def _describe_plan(training: Training) -> None:
    """Say who chooses the epoch, and whether there is any time left for training."""
    config, split = training.data.config, training.data.split
    if training.epochs_done >= training.epochs:
        return
    if training.chooses_epoch:
        people = counted(len(split.validation), "person", "people")
        training.report(f"{people} set aside to choose the epoch")
    elif config.validation_share and split.calibration.size:
        or_start = ", or the start where it is no worse," if config.init else ""
        patience = "; --patience has no effect" if config.patience else ""
        training.report(
            f"too few people to choose the best epoch: the last one{or_start} is kept, and the "
            f"validation AUC is of the calibration people{patience}"
        )
    if config.minutes and training.wall_s + training.ending_s >= config.minutes * 60:
        training.warn(
            f"preparation took {training.wall_s / 60:.1f} minutes, and export will take about "
            f"{training.ending_s / 60:.1f}: more than --minutes {config.minutes:g}; "
            "no more than one epoch is trained"
        )


def _describe_end(training: Training) -> None:
    """Say why a training ended before the epochs that were asked for."""
    config, done, kept = training.data.config, training.epochs_done, training.kept
    if training.stop_training and kept and done < training.epochs:
        training.report(
            f"stopping early after epoch {done} of {training.epochs}: the best was {kept.name}"
        )
    elif config.minutes and config.epochs and done < config.epochs:
        training.report(
            f"stopping after epoch {done} of {config.epochs}: another one would take longer than "
            f"--minutes {config.minutes:g}"
        )


@dataclass(frozen=True, kw_only=True)
class TrainedRecord:
    """What a bundle's manifest records about its training."""

    protocol: str
    seed: int
    people: int
    images: int
    pairs: int
    epochs: int
    epoch: int
    seconds: float
    val_auc: float
    val_people: int
    config: dict[str, Any]
    finished: str


def _write_bundle(training: Training, source: Store) -> Path:
    """Write the bundle of the kept epoch; return its folder."""
    data, options, kept = training.data, training.options, training.kept
    assert kept is not None
    training.report(f"exporting{_describe_kept(training, kept)}")
    network = training.network_for_export()
    if isinstance(network, FrozenBackboneNetwork) and isinstance(source, FeatureStore):
        photos = data.index.first[data.split.training]
        if fit_cohort(network, source, photos, data.config.seed):
            options.log("fitted the cohort of typical faces")
    record = TrainedRecord(
        protocol=data.config.protocol,
        seed=data.config.seed,
        people=len(data.split.training),
        images=len(data.images),
        pairs=training.epochs_done * data.steps_per_epoch * data.config.batch_size,
        epochs=training.epochs_done,
        epoch=kept.epoch,
        seconds=round(training.seconds, 1),
        val_auc=kept.validation.val_auc,
        val_people=len(data.split.validation),
        config=data.config.portable(),
        finished=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )
    initial = training.position.initial
    entry = to_plain(record)
    if initial:
        entry["init"] = {
            name: value for name, value in to_plain(initial).items() if name != "known"
        }
    fit_calibration = calibrate_on_pairs(
        data.index, data.calibration_pairs(), options.progress("calibrating")
    )
    write_trained_bundle(
        training.run.bundle_path,
        network,
        data.plan,
        _identities(training),
        entry,
        fit_calibration,
    )
    delete_features(training.run.path)
    return training.run.bundle_path


def _describe_kept(training: Training, kept: Epoch) -> str:
    """Say which epoch is exported, where that is not the last one."""
    last = training.history[-1]
    if kept is last:
        return ""
    return (
        f" {kept.name}: validation AUC {kept.validation.val_auc:.4f}, after the last epoch "
        f"{last.validation.val_auc:.4f}"
    )


def _identities(training: Training) -> Identities:
    """Return the people who influenced the weights or the calibration."""
    data, initial = training.data, training.position.initial
    trained, calibration = (
        [data.index.people[int(person)] for person in part]
        for part in (data.split.fitted, data.split.calibration)
    )
    known = Identities(frozenset(initial.known if initial else ()), frozenset())
    return Identities.of(trained, calibration).union(known)


def _result(training: Training, interrupted: bool, bundle: Path | None) -> Run:
    split, kept = training.data.split, training.kept
    return Run(
        out=training.run.path,
        interrupted=interrupted,
        epochs=training.epochs_done,
        epoch=kept.epoch if kept else 0,
        seconds=round(training.seconds, 1),
        wall_seconds=round(training.wall_s, 1),
        val_auc=kept.validation.val_auc if kept else None,
        val_people=len(split.validation),
        people={name: len(part) for name, part in vars(split).items()},
        threshold=Bundle.open(bundle).threshold if bundle else None,
        warning=training.warning,
        worker=training.context.worker,
        workers=training.context.workers,
    )
