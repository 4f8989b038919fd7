"""One training: its options, its state, and the session that restores, saves and exports it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from facepairs.config import DEFAULT_EPOCHS
from facepairs.errors import BadRun
from facepairs.evaluation.metrics.calibration import FittedCalibration
from facepairs.images.crop_plan import LFW_FRAME
from facepairs.models.build import build_network
from facepairs.models.network import Network
from facepairs.models.replicas import synchronise_batch_norms
from facepairs.support.progress import (
    MessageCallback,
    ProgressFactory,
    ignore_message,
    ignore_phases,
)
from facepairs.training.distributed.context import DistributedContext
from facepairs.training.inputs.initial_weights import load_initial_weights
from facepairs.training.inputs.training_data import TrainingData
from facepairs.training.loop.schedule import Schedule, TrainingProgress
from facepairs.training.loop.step import create_optimizer
from facepairs.training.run_folder.checkpoint import load_checkpoint, save_checkpoint
from facepairs.training.run_folder.folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """How a training runs, as opposed to what it learns (`TrainConfig`).

    Attributes:
        resume: Continue the run in the folder, if there is one.
        log: Receives messages.
        progress: Shows the progress of each phase.
        images_in_tensorboard: Whether the TensorBoard log may show faces and names.
        profile: Add a profile of five steps to the TensorBoard log.
        store_folder: Where the memory store's array is kept; by default beside the run folder.
        calibration: Replaces the calibration on people set aside; nobody need then be set aside.
        devices: `one`, `all` or `auto`, as for `connect_devices`.
        config_file: TOML file that the settings come from, if any; messages name it.
    """

    resume: bool = False
    log: MessageCallback = ignore_message
    progress: ProgressFactory = ignore_phases
    images_in_tensorboard: bool = True
    profile: bool = False
    store_folder: Path | None = None
    calibration: FittedCalibration | None = None
    devices: str = "one"
    config_file: Path | None = None


@dataclass
class TrainingState:
    """The state of one training.

    Attributes:
        network: The network, whose variables training updates.
        optimizer: Its optimizer.
        schedule: Length and learning rate.
        progress: The position.
        initial_bundle: Plain values about the bundle that `init` names, empty without one.
        warning: How the last epoch's scores had collapsed, "" when they had not; not saved.
    """

    network: Network
    optimizer: keras.Optimizer
    schedule: Schedule
    progress: TrainingProgress = field(default_factory=TrainingProgress)
    initial_bundle: dict[str, Any] = field(default_factory=dict)
    warning: str = ""

    @property
    def variables(self) -> list[keras.Variable]:
        """Everything that a checkpoint must hold, in a fixed order."""
        return [*self.network.variables, *self.optimizer.variables]

    @property
    def is_new(self) -> bool:
        """Whether training starts from random weights."""
        return not (self.progress.step or self.initial_bundle)


def create_state(data: TrainingData, context: DistributedContext) -> TrainingState:
    """Build the network and the optimizer with the weights that the seed gives."""
    config = data.config
    keras.utils.set_random_seed(config.seed)
    if config.deterministic:
        tf.config.experimental.enable_op_determinism()
    with context.scope():
        network = create_network(data)
    if context.strategy:
        synchronise_batch_norms(network.head)
    # With `minutes` this is planned again after each epoch; the first does not depend on it.
    epochs = min(config.max_epochs, DEFAULT_EPOCHS) if config.minutes else config.max_epochs
    schedule = Schedule(
        epochs if network.trainable else 0, data.steps_per_epoch, config.learning_rate
    )
    return TrainingState(network, create_optimizer(network, context), schedule)


def create_network(data: TrainingData) -> Network:
    """Build the network that the settings name."""
    config = data.config
    photos = data.index.image_counts[data.split.training]
    return build_network(
        config.model, config.crop_px, config.image_size, config.augment, config.erase,
        photos=photos, **config.loss_settings,
    )  # fmt: skip


@dataclass(frozen=True)
class Session:
    """What the stages of one training share: run folder, data, state, devices and options."""

    run: RunFolder
    data: TrainingData
    state: TrainingState
    context: DistributedContext
    should_stop: Callable[[], bool]
    options: TrainOptions

    def restore(self) -> None:
        """Load the checkpoint if there is one, else the initial weights if `init` names any.

        Raises:
            BadRun: The checkpoint is damaged, or of other people or images.
            BadConfig: Workers differ in settings, images or checkpoint.
        """
        data, state = self.data, self.state
        if self.run.checkpoint_path.exists():
            self._load()
            self.options.log(f"resuming at step {state.progress.step} of {state.schedule.steps}")
        elif data.config.init:
            state.initial_bundle = load_initial_weights(data.config.init, state.network)
        cache = data.cache.manifest if data.cache else None  # hosts may have copies
        same = [data.fingerprint(), state.progress.step, state.schedule, data.config, cache]
        self.context.check_same(repr(same), "images, settings, a cache or a checkpoint")

    def _load(self) -> None:
        path, state, config = self.run.checkpoint_path, self.state, self.data.config
        saved = load_checkpoint(path, state.variables)
        if {"crops": LFW_FRAME, **saved["sources"]} != self.data.fingerprint():
            raise BadRun(
                f"{path}: made for other people or images than those of {self.data.index.root}, "
                "or by another detector of faces; train again with another --out"
            )
        state.progress = TrainingProgress(**saved["progress"])
        state.initial_bundle = saved["start"]
        if saved["asked"] == [config.epochs, config.minutes]:
            state.schedule = replace(state.schedule, epochs=saved["epochs"])

    def save(self) -> None:
        """Write the checkpoint and the history; only the chief writes."""
        if not self.context.is_chief:
            return
        values = {
            "progress": asdict(self.state.progress),
            "epochs": self.state.schedule.epochs,
            "asked": [self.data.config.epochs, self.data.config.minutes],
            "sources": self.data.fingerprint(),
            "start": self.state.initial_bundle,
        }
        save_checkpoint(self.run.checkpoint_path, self.state.variables, values)
        self.run.write_history(self.state.progress.history)

    def network_on_one_device(self) -> Network:
        """Return the network for export: the trained one, or a copy of it without a strategy."""
        if not self.context.strategy:
            return self.state.network
        network = create_network(self.data)
        for variable, trained in zip(network.variables, self.state.network.variables, strict=True):
            variable.assign(np.asarray(trained))
        return network

    def warn(self, line: str) -> None:
        """Show a warning and write it to the run's log."""
        self.options.log(f"warning: {line}")
        self.run.log(line)
