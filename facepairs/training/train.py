"""`train_people`: from people and their photos to a run folder with a bundle."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.identities import Identities
from facepairs.config import TrainConfig
from facepairs.data.index import FaceIndex
from facepairs.data.split import PeopleSplit
from facepairs.errors import BadConfig
from facepairs.images.crop_plan import CropPlan
from facepairs.models.frozen_backbone import FrozenBackboneNetwork
from facepairs.pipeline.dataset import InputSource
from facepairs.pipeline.features import FeatureStore
from facepairs.pipeline.files import photos_named
from facepairs.support.platform import keep_freed_memory
from facepairs.support.progress import MessageCallback
from facepairs.training.distributed.context import DistributedContext
from facepairs.training.distributed.startup import connect_devices, translate_lost_worker
from facepairs.training.export.trained_bundle import calibrate_on_pairs, write_trained_bundle
from facepairs.training.fitting.fisher import delete_features, fit_cohort
from facepairs.training.inputs.pair_cache import open_training_cache
from facepairs.training.inputs.store import open_store
from facepairs.training.inputs.training_data import TrainingData, limit_batch_size
from facepairs.training.loop.callbacks import describe_collapse
from facepairs.training.loop.clock import running_s
from facepairs.training.loop.interrupt import stop_on_signal
from facepairs.training.loop.train_loop import TrainingInterrupted
from facepairs.training.loop.validation import Validator
from facepairs.training.options import TrainOptions
from facepairs.training.run_folder.folder import RunFolder
from facepairs.training.run_folder.result import Run
from facepairs.training.session import Session, create_state
from facepairs.training.stages import portable_settings, prepare_model, train_epochs


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
        options = replace(options, started_s=running_s())
    log = options.log
    context = connect_devices(options.devices, log)
    _check_devices(context, config, log)
    with (
        translate_lost_worker(context.workers),
        RunFolder(out, resume, read_only=not context.is_chief) as run,
        stop_on_signal(log) as should_stop,
    ):
        data = _open_data(index, plan, split, config, run, options, context)
        state = create_state(data, context, options.deterministic)
        session = Session(run, data, state, context, should_stop, options, callbacks)
        session.restore()
        run.begin(config)
        bundle = None
        try:
            with photos_named(data.store):
                model, source = prepare_model(session)
            pairs = data.validation_pairs()
            validator = Validator(model, source, pairs, data.config.batch_size)
            train_epochs(session, model, source, validator)
        except TrainingInterrupted:
            interrupted = True
        else:
            interrupted = False
            if context.is_chief:
                bundle = _write_bundle(session, source)
        context.shutdown()
        result = _result(session, interrupted, bundle)
        if bundle:
            result.save()
            run.log(f"trained {result.describe_time()}")
        return result


def _check_devices(context: DistributedContext, config: TrainConfig, log: MessageCallback) -> None:
    """Log which devices train; raise BadConfig when they cannot share this training."""
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
    """Open the cache and the store that the settings name."""
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


def _write_bundle(session: Session, source: InputSource) -> Path:
    """Save the final state and write the bundle of the kept epoch; return its folder."""
    data, state, options = session.data, session.state, session.options
    row = session.kept_row
    state.warning = describe_collapse(row["val_auc"], row["val_score_spread"])
    session.save()  # export rounds the weights; a longer run continues from these
    session.report(f"exporting{_describe_kept(session)}")
    network = session.network_for_export()
    if isinstance(network, FrozenBackboneNetwork) and isinstance(source, FeatureStore):
        photos = data.index.first[data.split.training]
        if fit_cohort(network, source, photos, data.config.seed):
            options.log("fitted the cohort of typical faces")
    calibration = options.calibration
    fit_calibration = calibrate_on_pairs(
        data.index, data.calibration_pairs(), options.progress("calibrating")
    )
    write_trained_bundle(
        session.run.bundle_path,
        network,
        data.plan,
        _identities(session),
        _manifest_entry(session),
        (lambda draft: calibration) if calibration else fit_calibration,
    )
    delete_features(session.run.path)
    return session.run.bundle_path


def _describe_kept(session: Session) -> str:
    """Say which epoch is exported, where that is not the last one."""
    row, last = session.kept_row, session.state.progress.history[-1]
    if row is last:
        return ""
    return (
        f" epoch {row['epoch']}: validation AUC {row['val_auc']:.4f}, after the last epoch "
        f"{last['val_auc']:.4f}"
    )


def _identities(session: Session) -> Identities:
    """Return the people who influenced the weights or the calibration."""
    data = session.data
    training, calibration = (
        [data.index.people[int(person)] for person in part]
        for part in (data.split.fitted, data.split.calibration)
    )
    known = Identities(frozenset(session.state.initial_bundle.get("known", ())), frozenset())
    return Identities.of(training, calibration).union(known)


def _manifest_entry(session: Session) -> Mapping[str, Any]:
    """Return what the bundle's manifest records about the training."""
    data, state = session.data, session.state
    initial = {name: value for name, value in state.initial_bundle.items() if name != "known"}
    return {
        "protocol": data.config.protocol,
        "seed": data.config.seed,
        "people": len(data.split.training),
        "images": len(data.images),
        "pairs": state.progress.step * data.config.batch_size,
        "epochs": state.schedule.epochs,
        "epoch": session.kept_row["epoch"],
        "seconds": round(state.progress.seconds, 1),
        "val_auc": session.kept_row["val_auc"],
        "val_people": len(data.split.validation),
        "config": portable_settings(data),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **({"init": initial} if initial else {}),
    }


def _result(session: Session, interrupted: bool, bundle: Path | None) -> Run:
    state, context, row = session.state, session.context, session.kept_row
    return Run(
        out=session.run.path,
        interrupted=interrupted,
        epochs=state.progress.step // state.schedule.steps_per_epoch,
        epoch=row.get("epoch", 0),
        seconds=round(state.progress.seconds, 1),
        wall_seconds=round(session.wall_s, 1),
        val_auc=row.get("val_auc"),
        val_people=len(session.data.split.validation),
        people={name: len(part) for name, part in vars(session.data.split).items()},
        threshold=Bundle.open(bundle).threshold if bundle else None,
        warning=state.warning,
        worker=context.worker,
        workers=context.workers,
    )
