"""`fit_people`: from people and their photos to a run folder with a bundle.

Read it from top to bottom: open the data, build and compile the model, continue what was saved, and
`model.fit(...)`. Importing this module loads TensorFlow.
"""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import keras
import tensorflow as tf

from facepairs import choices
from facepairs.bundles.bundle import Bundle
from facepairs.config import Settings
from facepairs.data.index import FaceIndex
from facepairs.data.split import PeopleSplit
from facepairs.errors import BadConfig, BadRun
from facepairs.fisher.network import FisherNetwork
from facepairs.models.build import build_network, dtype_policy, use_float32
from facepairs.models.export.keras_file import check_exportable
from facepairs.models.losses import EmbeddingLoss
from facepairs.models.network import Network, PairModel
from facepairs.photos.crop import CropPlan
from facepairs.pipeline.dataset import Store
from facepairs.pipeline.files import photos_named
from facepairs.support import console
from facepairs.support.platform import keep_freed_memory
from facepairs.training.callbacks import (
    EpochBoard,
    HistoryFile,
    Pace,
    Patience,
    SaveEpoch,
    StopTogether,
)
from facepairs.training.checkpoints import (
    Checkpoints,
    Epoch,
    Origin,
    Progress,
    read_history,
    write_history,
)
from facepairs.training.distribution import Workers, connect_devices
from facepairs.training.features import prepare_features
from facepairs.training.inputs.data import TrainingData
from facepairs.training.inputs.initial_weights import load_initial_weights
from facepairs.training.inputs.pair_cache import cache_named
from facepairs.training.pictures import PairPictures
from facepairs.training.run_folder import HISTORY, Run, RunFolder
from facepairs.training.schedule import PlannedRate
from facepairs.training.stop import ShouldStop, TrainingInterrupted, stop_on_signal
from facepairs.training.trained_bundle import write_trained_bundle

EXPORT_S, CALIBRATION_S_PER_IMAGE = 15.0, 0.006  # on two cores


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
    workers = connect_devices(devices)
    with (
        workers.translate_lost_worker(),
        RunFolder(out, read_only=not workers.is_chief) as run,
        stop_on_signal() as should_stop,
        dtype_policy("mixed_bfloat16" if config.mixed_precision else "float32"),
    ):
        data = TrainingData.open(index, plan, split, config, store)
        _check_devices(workers, data.config)
        network, model, rate = build_and_compile(data, workers)
        checkpoints = Checkpoints(out / "checkpoints", run.read_only)
        progress = _continue_or_begin(data, network, model, checkpoints, workers, started_s)
        run.begin(config)
        training = Training(data, workers, network, model, rate, progress, checkpoints)
        bundle = None
        try:
            with photos_named(data.store), cache_named(data.cache):
                source = training.source(should_stop)
                training.fit(source, should_stop, callbacks)
            interrupted = workers.any(should_stop())
        except TrainingInterrupted:
            interrupted = True
        done, asked = progress.epochs_done, config.epochs or rate.epochs
        if done < asked and not interrupted:
            console.log(f"stopping early after epoch {done} of {asked}")
        if workers.is_chief and not interrupted:
            training.load_kept_epoch()
            use_float32(network.head)
            bundle = write_trained_bundle(data, network, progress, source, out)
        workers.leave()
        result = _result(out, data, progress, interrupted, bundle)
        if bundle:
            run.finish(result)
        return result


def build_and_compile(
    data: TrainingData, workers: Workers
) -> tuple[Network, PairModel, PlannedRate]:
    """Build the network of the settings, with the weights of their seed, and compile it.

    Returns:
        The network, the model that is fitted (the network itself, or its head on features), and the
        learning rate.
    """
    if keras.config.backend() != "tensorflow":
        raise BadConfig(
            f"Keras runs on {keras.config.backend()}, training on TensorFlow alone; set "
            "KERAS_BACKEND=tensorflow before Keras is imported"
        )
    config, recipe = data.config, data.config.recipe
    keras.utils.set_random_seed(config.seed)
    with workers.strategy.scope():
        network = _build(config)
        check_exportable(network.inference_model())
        workers.synchronise(network.head)
        model = network.feature_head() if isinstance(network, FisherNetwork) else network
        loss: keras.Loss = keras.losses.BinaryCrossentropy(from_logits=True)
        if recipe.embeds:
            loss = EmbeddingLoss(config.loss, centre=recipe.centres)
        rate = PlannedRate(config.learning_rate, data.steps_per_epoch, config.first_plan)
        optimizer = keras.optimizers.Adam(
            rate, weight_decay=recipe.weight_decay, global_clipnorm=recipe.clip_norm
        )
        optimizer.exclude_from_weight_decay(var_names=["bias", "beta", "gamma"])
        model.compile(optimizer, loss, jit_compile=False)
        optimizer.build(model.trainable_variables)
    return network, model, rate


def _build(config: Settings) -> Network:
    recipe, seed = config.recipe, config.seed
    if recipe.precomputes:
        return FisherNetwork.create(recipe.crop_px, recipe.image_size, seed=seed)
    return build_network(
        recipe.network, recipe.crop_px, recipe.image_size, recipe.augment, seed=seed
    )


def _check_devices(workers: Workers, config: Settings) -> None:
    """Log which devices train; raise BadConfig when they cannot share a batch."""
    if workers.replicas == 1:
        return
    size, replicas = config.batch_size, workers.replicas
    if size % replicas or size < 2 * replicas:
        raise BadConfig(
            f"batch_size {size} cannot be shared by {replicas} devices; use "
            f"{max(2, round(size / replicas)) * replicas}, or other devices",
            "batch_size",
            "devices",
        )
    worker = f"worker {workers.worker} of {workers.workers}"
    console.log(f"{worker}; {replicas} devices share every batch")


def _continue_or_begin(
    data: TrainingData,
    network: Network,
    model: PairModel,
    checkpoints: Checkpoints,
    workers: Workers,
    started_s: float,
) -> Progress:
    """Set the weights to those of the last finished epoch, or of the bundle to start from."""
    config, sources = data.config, data.fingerprint()
    origin, history_file = checkpoints.origin(), checkpoints.folder.parent / HISTORY
    if origin and origin.sources != sources:
        raise BadRun(
            f"{checkpoints.folder}: made for other people or images than those of "
            f"{data.index.root}, or by another detector of faces; train again in another folder",
            "out",
        )
    rows, saved = read_history(history_file), checkpoints.saved()
    last = max((row.epoch for row in rows if row.epoch in saved), default=None)
    history = [row for row in rows if last is not None and row.epoch <= last]
    if origin and last is not None:
        checkpoints.load(model, last)
        console.log(f"resuming after epoch {last}")
    else:
        initial = load_initial_weights(config.start, network) if config.start else None
        origin = Origin(sources, initial)
    cache = data.cache.manifest if data.cache else None  # hosts may have copies
    same = repr([sources, last, config, cache])
    workers.check_same(same, "images, settings, a cache or a checkpoint")
    if workers.is_chief:
        checkpoints.begin(origin)
        write_history(history_file, history)
    return Progress(origin, history, len(data.split.validation) > 0, started_s)


def _result(
    out: Path, data: TrainingData, progress: Progress, interrupted: bool, bundle: Bundle | None
) -> Run:
    kept, split = progress.kept, data.split
    return Run(
        out=out,
        interrupted=interrupted,
        epochs=progress.epochs_done,
        epoch=kept.epoch if kept else 0,
        seconds=round(progress.seconds, 1),
        wall_seconds=round(progress.wall_s, 1),
        val_auc=kept.val_auc if kept else None,
        val_people=len(split.validation),
        people={name: len(part) for name, part in vars(split).items()},
        threshold=bundle.profile.threshold if bundle else None,
    )


@dataclass(frozen=True)
class Training:
    """What one training works with.

    Attributes:
        data: The settings, people, images and pairs.
        workers: The devices.
        network: The network, which is exported.
        model: What is fitted: the network, or its head on features.
        rate: The learning rate.
        progress: How far the training has got.
        checkpoints: Where its state is saved.
    """

    data: TrainingData
    workers: Workers
    network: Network
    model: PairModel
    rate: PlannedRate
    progress: Progress
    checkpoints: Checkpoints

    def source(self, should_stop: ShouldStop) -> Store:
        """Return what the model is fed from: images, or their features, which it computes."""
        if not isinstance(self.network, FisherNetwork):
            return self.data.store
        is_new = self.progress.is_new
        return prepare_features(self.data, self.network, is_new, self.workers, should_stop)

    def load_kept_epoch(self) -> None:
        """Set the weights to those of the epoch that is kept."""
        kept = self.progress.kept
        if kept and kept is not self.progress.history[-1]:
            self.checkpoints.load(self.model, kept.epoch)

    def _validate_start(self, validation: tf.data.Dataset) -> None:
        """Add the weights of the bundle that training starts from, as epoch 0."""
        val_auc = self.model.evaluate(validation, verbose=0, return_dict=True)["auc"]
        console.log(f"validation AUC {val_auc:.4f} at the start")
        self.progress.history.append(Epoch(0, 0.0, float(val_auc), self.progress.wall_s))
        self.checkpoints.save(self.model, 0)
        if self.workers.is_chief:
            write_history(self._folder / HISTORY, self.progress.history)

    def _describe_selection(self) -> None:
        """Say so where nobody chooses the epoch although somebody should."""
        config = self.data.config
        if config.validation_share and not self.progress.chooses:
            or_start = ", or the start where it is no worse," if config.start else ""
            console.log(
                f"too few people to choose the best epoch: the last one{or_start} is kept whatever "
                "patience says, and the validation AUC is of the calibration people"
            )

    @property
    def _folder(self) -> Path:
        return self.checkpoints.folder.parent

    def fit(
        self,
        source: Store,
        should_stop: ShouldStop,
        callbacks: Sequence[keras.callbacks.Callback],
    ) -> None:
        """Train the epochs that are left.

        Args:
            source: What the model is fed from, of `source`.
            should_stop: Returns whether the user asked to stop.
            callbacks: The user's; called on the chief.
        """
        data, config, progress, workers = self.data, self.data.config, self.progress, self.workers
        patience = config.patience if progress.chooses else None
        validation, waited_s = data.validation_dataset(source), tf.Variable(0.0, dtype=tf.float64)
        if progress.origin.initial and not progress.history:
            self._validate_start(validation)
        images = len(data.calibration_pairs().images())
        ending_s = EXPORT_S + CALIBRATION_S_PER_IMAGE * images
        pace = Pace(progress, self.rate, config, ending_s, waited_s, workers)
        pace.plan()
        if progress.epochs_done >= self.rate.epochs or progress.lost_patience(patience):
            return
        self._describe_selection()
        history, of_chief = HistoryFile(self._folder / HISTORY), []
        if workers.is_chief:
            board = EpochBoard(str(self._folder / "tensorboard"), write_graph=False)
            of_chief = [history, board]
            in_order = workers.replicas == 1
            pictures = PairPictures(self._folder / "tensorboard", data, self.network, in_order)
            of_chief.append(pictures)
        early_stopping = [Patience(patience, progress)] if patience else []
        users = callbacks if workers.is_chief else ()
        with contextlib.closing(history):
            self.model.fit(
                data.training_dataset(source, progress.epochs_done, workers, waited_s),
                validation_data=validation,
                initial_epoch=progress.epochs_done,
                epochs=config.max_epochs,
                steps_per_epoch=data.steps_per_epoch,
                callbacks=[
                    pace,
                    *of_chief,
                    SaveEpoch(self.checkpoints, progress),
                    *early_stopping,
                    *users,
                    StopTogether(workers, should_stop),
                ],
                shuffle=False,
                verbose=0,
            )
