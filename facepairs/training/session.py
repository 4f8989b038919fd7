"""One training: its state, and the session that restores, saves and exports it."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.errors import BadConfig, BadRun
from facepairs.models.build import build_network
from facepairs.models.network import Network
from facepairs.models.replicas import synchronise_batch_norms
from facepairs.training.distributed.context import DistributedContext
from facepairs.training.inputs.initial_weights import load_initial_weights
from facepairs.training.inputs.training_data import TrainingData
from facepairs.training.loop.clock import running_s
from facepairs.training.loop.schedule import Schedule, TrainingProgress
from facepairs.training.loop.step import create_optimizer
from facepairs.training.options import TrainOptions
from facepairs.training.run_folder.checkpoint import load_checkpoint, save_checkpoint
from facepairs.training.run_folder.folder import RunFolder


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
        best_weights: The network's variables after the best epoch; empty where none is chosen.
        wall_s: Wall time of the commands that worked on this run before this one.
    """

    network: Network
    optimizer: keras.Optimizer
    schedule: Schedule
    progress: TrainingProgress = field(default_factory=TrainingProgress)
    initial_bundle: dict[str, Any] = field(default_factory=dict)
    warning: str = ""
    best_weights: list[npt.NDArray[Any]] = field(default_factory=list)
    wall_s: float = 0.0

    @property
    def variables(self) -> list[keras.Variable]:
        """Everything that a checkpoint must hold, in a fixed order."""
        return [*self.network.variables, *self.optimizer.variables]

    @property
    def is_new(self) -> bool:
        """Whether training starts from random weights."""
        return not (self.progress.step or self.initial_bundle)


def create_state(
    data: TrainingData, context: DistributedContext, deterministic: bool
) -> TrainingState:
    """Build the network and the optimizer with the weights that the seed gives.

    Raises:
        BadConfig: Keras runs on another backend than TensorFlow.
    """
    if keras.config.backend() != "tensorflow":
        raise BadConfig(
            f"Keras runs on {keras.config.backend()}, training on TensorFlow alone; set "
            "KERAS_BACKEND=tensorflow before Keras is imported"
        )
    config = data.config
    keras.utils.set_random_seed(config.seed)
    if deterministic:
        tf.config.experimental.enable_op_determinism()
    with context.scope():
        network = create_network(data)
    if context.strategy:
        synchronise_batch_norms(network.head)
    # With `minutes` this is planned again after each epoch; the first does not depend on it.
    schedule = Schedule(config.first_plan, data.steps_per_epoch, config.learning_rate)
    return TrainingState(
        network, create_optimizer(network, context, config.recipe.clip_norm), schedule
    )


def create_network(data: TrainingData) -> Network:
    """Build the network that the settings name."""
    config, recipe = data.config, data.config.recipe
    return build_network(
        recipe.network,
        recipe.crop_px,
        config.image_size,
        recipe.augment,
        recipe.erase,
        loss=config.loss,
        members=recipe.members,
        cohort=recipe.cohort,
        photos=data.index.image_counts[data.split.training],
        temperature=recipe.temperature,
        margin=recipe.margin,
        singletons=recipe.singletons,
    )


@dataclass(frozen=True)
class Session:
    """What the stages of one training share: run folder, data, state, devices and options.

    `callbacks` are those of the caller, which the training loop calls beside its own.
    """

    run: RunFolder
    data: TrainingData
    state: TrainingState
    context: DistributedContext
    should_stop: Callable[[], bool]
    options: TrainOptions
    callbacks: Sequence[keras.callbacks.Callback] = ()

    @property
    def chooses_epoch(self) -> bool:
        """Whether people are set aside to choose the best epoch."""
        return len(self.data.split.validation) > 0

    @property
    def command_s(self) -> float:
        """Wall time of this command so far."""
        return running_s() - (self.options.started_s or 0.0)

    @property
    def wall_s(self) -> float:
        """Wall time so far of all commands that worked on this run."""
        return self.state.wall_s + self.command_s

    @property
    def kept_row(self) -> dict[str, Any]:
        """Figures of the epoch whose weights the bundle gets: the best or the last one.

        Before the first epoch it is an empty dictionary.
        """
        history = self.state.progress.history
        if not self.chooses_epoch or not history:
            return history[-1] if history else {}
        return max(history, key=lambda row: (row["val_auc"], -row["epoch"]))

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
        saved, state.best_weights = load_checkpoint(path, state.variables)
        if saved["sources"] != self.data.fingerprint():
            raise BadRun(
                f"{path}: made for other people or images than those of {self.data.index.root}, "
                "or by another detector of faces; train again with another --out"
            )
        state.progress = TrainingProgress(**saved["progress"])
        state.initial_bundle = saved["start"]
        state.wall_s = saved["wall_s"]
        if saved["asked"] == config.length:
            state.schedule = replace(state.schedule, epochs=saved["epochs"])

    def save(self) -> None:
        """Write the checkpoint and the history; only the chief writes."""
        if not self.context.is_chief:
            return
        values = {
            "progress": asdict(self.state.progress),
            "epochs": self.state.schedule.epochs,
            "asked": self.data.config.length,
            "wall_s": self.wall_s,
            "sources": self.data.fingerprint(),
            "start": self.state.initial_bundle,
        }
        path, state = self.run.checkpoint_path, self.state
        save_checkpoint(path, state.variables, values, state.best_weights)
        self.run.write_history(self.state.progress.history)

    def keep_if_best(self) -> None:
        """Keep the weights of the last epoch for the bundle if no earlier epoch is as good."""
        state = self.state
        if self.chooses_epoch and self.kept_row is state.progress.history[-1]:
            state.best_weights = [np.asarray(v).copy() for v in state.network.variables]

    def network_for_export(self) -> Network:
        """Return the network with the weights of the epoch that is kept, on a single device."""
        trained = self.state.network
        network = create_network(self.data) if self.context.strategy else trained
        values = self.state.best_weights or [np.asarray(v) for v in trained.variables]
        for variable, value in zip(network.variables, values, strict=True):
            variable.assign(value)
        return network

    def warn(self, line: str) -> None:
        """Show a warning and write it to the run's log."""
        self.options.log(f"warning: {line}")
        self.run.log(line)

    def report(self, line: str) -> None:
        """Show a line and write it to the run's log."""
        self.options.log(line)
        self.run.log(line)
