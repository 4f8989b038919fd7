"""`fit_people`: from people and their photos to a run folder with a bundle.

Read it from top to bottom: open the data, build and compile the model, continue what was saved, and
`model.fit(...)`. Importing this module loads TensorFlow.
"""

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path

import keras
import tensorflow as tf
from keras.callbacks import LambdaCallback

from facepairs import choices
from facepairs.bundles.error_profile import operating_point
from facepairs.config import Settings
from facepairs.data.index import FaceIndex
from facepairs.data.split import PeopleSplit
from facepairs.errors import BadConfig
from facepairs.fisher.network import FisherNetwork
from facepairs.models.build import build_network, dtype_policy
from facepairs.models.export.keras_file import check_exportable
from facepairs.models.losses import EmbeddingLoss
from facepairs.models.network import Network
from facepairs.photos.crop import CropPlan
from facepairs.pipeline.dataset import Store, clocked
from facepairs.pipeline.files import photos_named
from facepairs.support import console
from facepairs.support.lock import held
from facepairs.support.platform import keep_freed_memory
from facepairs.training.callbacks import EpochBoard, Timekeeper
from facepairs.training.distribution import Workers, connect_devices
from facepairs.training.features import prepare_source
from facepairs.training.inputs.data import TrainingData
from facepairs.training.inputs.pair_cache import cache_named
from facepairs.training.inputs.people import describe_few_people
from facepairs.training.keras_models import load_initial_weights
from facepairs.training.pictures import PairPictures
from facepairs.training.progress import Epoch, Progress
from facepairs.training.run_folder import LOCK, Run, begin_run
from facepairs.training.schedule import PlannedRate, ending_s
from facepairs.training.stop import ShouldStop, TrainingInterrupted, stop_on_signal
from facepairs.training.trained_bundle import write_trained_bundle


def fit_people(
    index: FaceIndex,
    plan: CropPlan,
    split: PeopleSplit,
    config: Settings,
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
        callbacks: Keras callbacks beside the training's own, on the chief alone.
        started_s: When the command began, by `time.perf_counter`; None: now.

    Raises:
        LostWorker: Another worker stopped or cannot be reached.
        FacepairsError: Anything that the user can correct.
    """
    keep_freed_memory()
    started_s = time.perf_counter() if started_s is None else started_s
    workers, bundle = connect_devices(devices), None
    with (
        workers.translate_lost_worker(),
        held(out / LOCK, out) if workers.is_chief else contextlib.nullcontext(),
        stop_on_signal() as should_stop,
        dtype_policy("mixed_bfloat16" if config.mixed_precision else "float32"),
    ):
        data = TrainingData.open(index, plan, split, config, store)
        if few := describe_few_people(split):
            console.log(f"warning: {few}")
        network, rate = build_and_compile(data, workers)
        chooses, chief = bool(split.validation.size), workers.is_chief
        progress = Progress(out, data.fingerprint(), chooses, started_s, writes=chief)
        _continue_or_begin(data, network, progress, workers)
        if chief:
            begin_run(out, config)
        try:
            with photos_named(data.store), cache_named(data.cache):
                source = prepare_source(data, network, progress, workers, should_stop)
                own = callbacks if chief else ()
                _fit_epochs(data, network, rate, progress, source, workers, own, should_stop)
            interrupted = workers.any(should_stop())
        except TrainingInterrupted:
            interrupted = True
        if not interrupted:
            if progress.epochs_done < (asked := config.epochs or rate.epochs):
                console.log(f"stopping early after epoch {progress.epochs_done} of {asked}")
            bundle = write_trained_bundle(data, network, progress, source) if chief else None
        workers.leave()
        decides = operating_point(bundle.profile) if bundle else None
        run = Run.of(progress, split, interrupted, decides)
        if bundle:
            run.write()
        return run


def build_and_compile(data: TrainingData, workers: Workers) -> tuple[Network, PlannedRate]:
    """Build the network of the settings, with the weights of their seed, and compile it.

    Returns:
        The network, and its learning rate, which is planned as the training goes.
    """
    if keras.config.backend() != "tensorflow":
        raise BadConfig(
            f"Keras runs on {keras.config.backend()}, training on TensorFlow alone; set "
            "KERAS_BACKEND=tensorflow before Keras is imported"
        )
    config, recipe = data.config, data.config.recipe
    workers.check_batch_size(config.batch_size)
    keras.utils.set_random_seed(config.seed)
    with workers.strategy.scope():
        network: Network
        if recipe.precomputes:
            network = FisherNetwork(recipe.crop_px, recipe.image_size, seed=config.seed)
        else:
            network = build_network(
                config.model, recipe.crop_px, recipe.image_size, recipe.augment, config.seed
            )
        check_exportable(network.inference_model())
        workers.synchronise(network.head)
        loss: keras.Loss = keras.losses.BinaryCrossentropy(from_logits=True)
        if recipe.embeds:
            loss = EmbeddingLoss(config.loss, centre=recipe.centres)
        rate = PlannedRate(config.learning_rate, data.steps_per_epoch, config.first_plan)
        optimizer = keras.optimizers.Adam(
            rate, weight_decay=recipe.weight_decay, global_clipnorm=recipe.clip_norm
        )
        optimizer.exclude_from_weight_decay(var_names=["bias", "beta", "gamma"])
        network.compile(optimizer, loss, jit_compile=False)
        optimizer.build(network.trainable_variables)  # so that its state can be loaded before `fit`
    return network, rate


def _continue_or_begin(
    data: TrainingData, network: Network, progress: Progress, workers: Workers
) -> None:
    """Set the weights to those of the last finished epoch, or of the bundle to start from."""
    config, done = data.config, progress.epochs_done
    if progress.history:
        progress.load(network, done)
        console.log(f"resuming after epoch {done}")
    elif config.start:
        load_initial_weights(config.start, network)
    cache = data.cache.manifest if data.cache else None  # hosts may have copies
    same = repr([data.fingerprint(), done, config, cache])
    workers.check_same(same, "images, settings, a cache or a checkpoint")


def _validate_start(network: Network, validation: tf.data.Dataset, progress: Progress) -> None:
    """Add the weights of the bundle that training starts from, as epoch 0."""
    val_auc = network.evaluate(validation, verbose=0, return_dict=True)["auc"]
    console.log(f"validation AUC {val_auc:.4f} at the start")
    progress.add(Epoch(0, 0.0, float(val_auc), progress.wall_s), network)


def _describe_selection(config: Settings, progress: Progress) -> None:
    """Warn if there are too few validation people."""
    if config.validation_share and not progress.chooses:
        or_start = " (or the start, if it is as good)" if config.start else ""
        console.log(
            f"too few people to choose the best epoch: the last one is kept{or_start}; the "
            "validation AUC is measured on the calibration people"
        )


def _fit_epochs(
    data: TrainingData,
    network: Network,
    rate: PlannedRate,
    progress: Progress,
    source: Store,
    workers: Workers,
    callbacks: Sequence[keras.callbacks.Callback],
    should_stop: ShouldStop,
) -> None:
    """Train the epochs that are left; where one worker stops, all stop."""
    config, board = data.config, progress.run / "tensorboard"
    waited_s = tf.Variable(0.0, dtype=tf.float64)
    validation = data.fixed_batches(source, data.validation_pairs())
    if config.start and not progress.history:
        _validate_start(network, validation, progress)
    end_s = ending_s(len(data.calibration_pairs().images()))
    timekeeper = Timekeeper(progress, rate, config, end_s, waited_s, workers)
    if timekeeper.is_over:
        return
    _describe_selection(config, progress)
    shown: list[keras.callbacks.Callback] = []
    if workers.is_chief:
        shown = [EpochBoard(str(board), write_graph=False)]
        if config.tensorboard_images:
            shown.append(PairPictures(board, data, shows_worst=workers.replicas == 1))

    def batches(reader: tf.distribute.InputContext) -> tf.data.Dataset:
        part = (reader.num_input_pipelines, reader.input_pipeline_id)
        drawn = data.batches(source, progress.epochs_done, None, workers.replicas, part)
        return clocked(drawn, waited_s)

    def end_epoch(epoch: int, logs: object) -> None:
        network.stop_training = workers.any(should_stop() or network.stop_training)

    network.fit(
        workers.strategy.distribute_datasets_from_function(batches),
        validation_data=validation,
        initial_epoch=progress.epochs_done,
        epochs=config.max_epochs,
        steps_per_epoch=data.steps_per_epoch,
        callbacks=[
            timekeeper,
            *shown,
            *callbacks,
            LambdaCallback(on_epoch_end=end_epoch),
        ],
        shuffle=False,
        verbose=0,
    )
