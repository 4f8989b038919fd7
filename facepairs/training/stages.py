"""The stages of a training between restoring and exporting: fit, precompute, train.

Most models train on pixels. A model with a frozen backbone trains in two stages: its features are
computed once (`precompute_backbone`), then its head is trained on them. Either way the training
loop has one model and one source of inputs from beginning to end.
"""

import math
from dataclasses import replace

import keras

from facepairs.errors import BadImage
from facepairs.models.frozen_backbone import FrozenBackboneNetwork
from facepairs.models.network import Trainable
from facepairs.pipeline.dataset import InputSource
from facepairs.pipeline.features import FeatureStore
from facepairs.pipeline.files import photos_named
from facepairs.support.words import counted
from facepairs.training.fitting.fisher import fit_mixture, precompute_features, start_projection
from facepairs.training.inputs.training_data import TrainingData
from facepairs.training.loop.callbacks import CollapseAlarm, ProgressReport
from facepairs.training.loop.schedule import Schedule, plan_epochs
from facepairs.training.loop.step import TrainStep
from facepairs.training.loop.train_loop import TrainingInterrupted, TrainLoop
from facepairs.training.loop.validation import Validator
from facepairs.training.session import Session
from facepairs.training.tensorboard.log import TensorBoardLog
from facepairs.training.tensorboard.monitor import make_monitor, training_grid

MACHINE_SETTINGS = ("lists", "init")  # paths of this machine, which bundles and logs leave out
GRID_PAIRS = 16
EXPORT_S, CALIBRATION_S_PER_IMAGE = 15.0, 0.006  # on two cores


def prepare_model(session: Session) -> tuple[Trainable, InputSource]:
    """Fit what is not trained by gradient descent.

    Args:
        session: The training.

    Returns:
        What the training loop trains, and the source of its inputs.

    Raises:
        TrainingInterrupted: Training was asked to stop. Nothing is saved: a resumed training
            starts this stage again.
    """
    network, data = session.state.network, session.data
    if isinstance(network, FrozenBackboneNetwork):
        return network.feature_head(), precompute_backbone(session, network)
    return network, data.store


def precompute_backbone(session: Session, network: FrozenBackboneNetwork) -> FeatureStore:
    """Compute the features of all images with the frozen backbone.

    A new training first fits the backbone, and afterwards starts the projection from the features.
    The chief fits; all workers compute a share of the features.
    """
    data, context, log = session.data, session.context, session.options.log
    seed, images = data.config.seed, data.images
    if session.state.is_new:
        log("fitting local descriptors")
        if context.is_chief:
            display = session.options.progress("fitting local descriptors")
            fit_mixture(network, data.store, images, seed, display)
        context.broadcast_variables(network.head.variables)
    log(f"computing the features of {len(data.index):,} images")
    progress = session.options.progress("computing features")

    def progress_or_stop(done: int, total: int) -> None:
        progress(done, total)
        if context.any(session.should_stop()):  # every worker needs the others' features
            raise TrainingInterrupted

    features = precompute_features(
        network, data.store, len(data.index), session.run.path, progress_or_stop, log,
        context, data.index.fingerprint,
    )  # fmt: skip
    if session.state.is_new:
        if context.is_chief:
            log("starting the projection at principal components")
            start_projection(network, features, images, seed)
        context.broadcast_variables(network.head.variables)
    return features


def train_epochs(
    session: Session,
    model: Trainable,
    source: InputSource,
    validator: Validator,
) -> None:
    """Run the training loop to the end of the schedule, if anything is left to train.

    Args:
        session: The training.
        model: What is trained.
        source: The source of its inputs.
        validator: Called after each epoch.

    Raises:
        TrainingInterrupted: Training was asked to stop; the state has been saved.
        BadImage: A photo cannot be read any more; the state has been saved.
    """
    data, state, context = session.data, session.state, session.context
    if state.progress.step >= state.schedule.steps:
        return
    _describe_plan(session)
    config, options, sampler = data.config, session.options, data.sampler()
    step = TrainStep(
        model,
        source,
        config.seed,
        optimizer=state.optimizer,
        should_stop=session.should_stop,
        context=context,
    )
    loop = TrainLoop(step, validator, state.progress)

    alarm = CollapseAlarm(session.warn)
    callbacks: list[keras.callbacks.Callback] = []
    if context.is_chief:
        monitor = make_monitor(model, source, data.store, data.index, validator)
        block = sampler.block(0, 0, min(GRID_PAIRS, config.batch_size))
        grid = training_grid(state.network, data.store, block, config.seed)
        callbacks = [
            ProgressReport(state.progress, lambda: state.schedule, options.log, options.progress),
            alarm,
            TensorBoardLog(session.run.tensorboard_path, monitor, grid, portable_settings(data)),
            *session.callbacks,
        ]
    batches = data.batches(
        source, sampler, state.progress.step, context.local_range(config.batch_size)
    )
    try:
        with photos_named(data.store):
            loop.run(
                batches,
                state.schedule,
                keras.callbacks.CallbackList(callbacks, model=None),
                lambda schedule: _end_epoch(session, schedule),
            )
    except (TrainingInterrupted, BadImage):
        session.save()
        raise
    finally:
        state.warning = alarm.message


def _end_epoch(session: Session, schedule: Schedule) -> Schedule:
    """Keep the best weights, plan the remaining epochs, save the state and log the figures."""
    state, config = session.state, session.data.config
    session.keep_if_best()
    if config.minutes or config.patience:
        epochs = session.context.broadcast(_plan(session, schedule))  # the chief decides
        schedule = replace(schedule, epochs=int(epochs))
    state.schedule = schedule
    session.save()
    row = state.progress.history[-1]
    session.run.log(" ".join(f"{key}={value:.6g}" for key, value in row.items()))
    return schedule


def _plan(session: Session, schedule: Schedule) -> int:
    """Return how many epochs to train, by time and patience, after at least one epoch."""
    config, progress = session.data.config, session.state.progress
    epochs, done = schedule.epochs, int(progress.history[-1]["epoch"])
    if config.minutes:
        left_s = config.minutes * 60 - session.wall_s - ending_s(session.data)
        epochs = plan_epochs(schedule, progress, left_s, config.max_epochs)
        if done == epochs < (config.epochs or 0):
            session.report(
                f"stopping after epoch {done} of {config.epochs}: another one would take longer "
                f"than --minutes {config.minutes:g}"
            )
    best = session.kept_row["epoch"]
    if config.patience and session.chooses_epoch and done - best >= config.patience < epochs:
        if done < epochs:
            session.report(
                f"stopping after epoch {done}: no validation AUC since epoch {best} was better"
            )
        return done
    return epochs


def ending_s(data: TrainingData) -> float:
    """Estimate how long it takes to end a training: TensorBoard's log, export and calibration."""
    images = len(data.calibration_pairs().images())
    return EXPORT_S + CALIBRATION_S_PER_IMAGE * images


def _describe_plan(session: Session) -> None:
    """Say who chooses the epoch, and whether there is any time left for training."""
    config, validation = session.data.config, len(session.data.split.validation)
    if validation:
        session.report(f"{counted(validation, 'person', 'people')} set aside to choose the epoch")
    elif config.validation_share and session.data.split.calibration.size:
        patience = "; --patience has no effect" if config.patience else ""
        session.report(
            "too few people to choose the best epoch: the last one is kept, and the validation AUC "
            f"is of the calibration people{patience}"
        )
    ending = ending_s(session.data)
    if (config.minutes or math.inf) * 60 - session.wall_s - ending <= 0:
        session.warn(
            f"preparation took {session.command_s / 60:.1f} minutes, and export will take about "
            f"{ending / 60:.1f}: more than --minutes {config.minutes:g}; "
            "no more than one epoch is trained"
        )


def portable_settings(data: TrainingData) -> dict[str, object]:
    """Return the settings without paths of this machine."""
    settings = data.config.to_table()
    return {name: value for name, value in settings.items() if name not in MACHINE_SETTINGS}
