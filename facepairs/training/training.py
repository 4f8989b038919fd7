"""`Training`: a network, its optimizer, its data, and how far it has got.

RUN/checkpoints/ holds its state after the last finished epoch, in the format of
`tf.train.Checkpoint`: the network's weights, the optimizer, the weights of the best epoch, and the
position as JSON.
"""

import time
from dataclasses import dataclass, field
from typing import NamedTuple

import keras
import msgspec
import numpy as np
import tensorflow as tf

from facepairs.errors import BadConfig, BadRun
from facepairs.fisher.network import FisherNetwork
from facepairs.models.build import build_network
from facepairs.models.network import Network
from facepairs.models.replicas import synchronise_batch_norms
from facepairs.support import console
from facepairs.training.distributed import DistributedContext
from facepairs.training.inputs.data import TrainingData
from facepairs.training.inputs.initial_weights import InitialBundle, load_initial_weights
from facepairs.training.run_folder import RunFolder
from facepairs.training.schedule import Schedule, plan_epochs
from facepairs.training.step import create_optimizer

EXPORT_S, CALIBRATION_S_PER_IMAGE = 15.0, 0.006  # on two cores


class EpochFigures(NamedTuple):
    """What the steps of an epoch gave: `input_wait` is the share of time spent waiting."""

    loss: float
    learning_rate: float
    pairs_per_s: float
    input_wait: float


class Epoch(msgspec.Struct, frozen=True):
    """A finished epoch, a row of `history.json`.

    Attributes:
        epoch: Its number from 1; 0 is the start from a bundle's weights, before the first step.
        seconds: Time of steps and validation until it ended.
        val_auc: AUC of the validation pairs.
        loss, learning_rate, pairs_per_s, input_wait: As in `EpochFigures`; None for epoch 0.
    """

    epoch: int
    seconds: float
    val_auc: float
    loss: float | None = None
    learning_rate: float | None = None
    pairs_per_s: float | None = None
    input_wait: float | None = None


class Position(msgspec.Struct):
    """How far a training has got; saved beside the weights.

    Attributes:
        sources: Fingerprint of the people and images.
        length: The settings that decided `epochs`.
        epochs: Number of epochs that are planned.
        history: The finished epochs, with epoch 0 where training starts from a bundle.
        wall_s: Wall time of the commands that worked on this run.
        initial: The bundle that training started from.
    """

    sources: str
    length: list[float | None]
    epochs: int
    history: list[Epoch] = []
    wall_s: float = 0.0
    initial: InitialBundle | None = None


@dataclass
class Training:
    """A training in a run folder.

    Attributes:
        data: The settings, people, images and pairs.
        run: The run folder.
        context: The devices.
        started_s: When the command began, by `time.perf_counter`.
        network: The network, whose variables training updates.
        optimizer: Its optimizer.
        position: How far it has got.
        stop_training: Set by a callback, such as Keras's EarlyStopping, to end the training.
        best: The weights of the best epoch so far; empty where the last epoch is kept.
        earlier_s: Wall time of the commands that worked on this run before.
    """

    data: TrainingData
    run: RunFolder
    context: DistributedContext
    started_s: float
    network: Network
    optimizer: keras.Optimizer
    position: Position
    stop_training: bool = False
    best: list[tf.Variable] = field(default_factory=list)
    earlier_s: float = 0.0

    def __post_init__(self) -> None:
        if self.chooses_epoch or self.data.config.init:
            self.best = [tf.Variable(np.asarray(v)) for v in self.network.variables]
        self._checkpoint = tf.train.Checkpoint(
            # By name, because TensorFlow does not find the weights of layers within layers.
            weights=list(self.network.variables),
            optimizer=self.optimizer,
            best=self.best,
            position=tf.Variable("", dtype=tf.string),
        )
        folder = str(self.run.path / "checkpoints")
        self._manager = tf.train.CheckpointManager(self._checkpoint, folder, max_to_keep=1)

    @classmethod
    def build(
        cls,
        data: TrainingData,
        run: RunFolder,
        context: DistributedContext,
        started_s: float,
    ) -> "Training":
        """Build a training with the weights that the seed gives; continue the one in the folder.

        Raises:
            BadRun: The checkpoint is damaged, or of other people or images.
            BadBundle: The weights of `init` cannot be used.
            BadConfig: Keras runs on another backend, or workers differ in settings or images.
        """
        if keras.config.backend() != "tensorflow":
            raise BadConfig(
                f"Keras runs on {keras.config.backend()}, training on TensorFlow alone; set "
                "KERAS_BACKEND=tensorflow before Keras is imported"
            )
        config = data.config
        keras.utils.set_random_seed(config.seed)
        with context.scope():
            network = create_network(data)
        if context.strategy:
            synchronise_batch_norms(network.head)
        optimizer = create_optimizer(network, context, config.recipe.clip_norm)
        # With `minutes` the epochs are planned again after each.
        position = Position(data.fingerprint(), config.length, config.first_plan)
        training = cls(data, run, context, started_s, network, optimizer, position)
        training._restore()
        return training

    @property
    def history(self) -> list[Epoch]:
        """The finished epochs, with epoch 0 where training starts from a bundle."""
        return self.position.history

    @property
    def epochs_done(self) -> int:
        """Number of finished epochs."""
        return self.history[-1].epoch if self.history else 0

    @property
    def epochs(self) -> int:
        """Number of epochs that are planned."""
        return self.position.epochs

    @property
    def is_new(self) -> bool:
        """Whether training starts from random weights."""
        return not (self.history or self.position.initial)

    @property
    def schedule(self) -> Schedule:
        """The length and the learning rate."""
        return Schedule(self.epochs, self.data.steps_per_epoch, self.data.config.learning_rate)

    @property
    def seconds(self) -> float:
        """Time spent on steps and validation of finished epochs."""
        return self.history[-1].seconds if self.history else 0.0

    @property
    def wall_s(self) -> float:
        """Wall time so far of all commands that worked on this run."""
        return self.earlier_s + time.perf_counter() - self.started_s

    @property
    def chooses_epoch(self) -> bool:
        """Whether people are set aside to choose the best epoch."""
        return len(self.data.split.validation) > 0

    @property
    def kept(self) -> Epoch | None:
        """The epoch whose weights the bundle gets: the best one.

        Where nobody is set aside to choose it, that is the better one of the start and the last.
        """
        chosen_from = self.history
        if not self.chooses_epoch:
            chosen_from = [one for one in self.history if one.epoch in (0, self.epochs_done)]
        return max(chosen_from, key=lambda one: (one.val_auc, -one.epoch), default=None)

    def goes_on(self) -> bool:
        """Return whether there is an epoch left to train, on all workers alike."""
        patience, kept = self.data.config.patience, self.kept
        if patience and kept and self.chooses_epoch and self.epochs_done - kept.epoch >= patience:
            return False
        self.stop_training = self.context.any(self.stop_training)
        return self.epochs_done < self.epochs and not self.stop_training

    def end_epoch(self, epoch: Epoch) -> None:
        """Record an epoch, keep its weights if they are the best, plan what is left, and save."""
        self.history.append(epoch)
        if epoch.epoch == 0 or (self.chooses_epoch and self.kept is epoch):
            for best, variable in zip(self.best, self.network.variables, strict=True):
                best.assign(np.asarray(variable))
        if self.data.config.minutes and epoch.epoch:
            self.position.epochs = int(self.context.broadcast(self._plan()))  # the chief decides
        if self.context.is_chief:
            self._save()

    def _plan(self) -> int:
        """Return how many epochs there will be, if calibration and export are to end in time."""
        config = self.data.config
        images = len(self.data.calibration_pairs().images())
        ending_s = EXPORT_S + CALIBRATION_S_PER_IMAGE * images
        left_s = (config.minutes or 0.0) * 60 - self.wall_s - ending_s
        ends_s = [one.seconds for one in self.history if one.epoch]
        return plan_epochs(ends_s, left_s, config.max_epochs)

    def _save(self) -> None:
        """Write the checkpoint and the history."""
        self.position.wall_s = self.wall_s
        self._checkpoint.position.assign(msgspec.json.encode(self.position))
        self._manager.save()
        self.run.write_history([msgspec.structs.asdict(one) for one in self.history])

    def network_for_export(self) -> Network:
        """Return the network with the weights of the epoch that is kept, on a single device."""
        network = create_network(self.data) if self.context.strategy else self.network
        kept = self.network.variables if self.kept is self.history[-1] else self.best
        for variable, value in zip(network.variables, list(map(np.asarray, kept)), strict=True):
            variable.assign(value)
        return network

    def _restore(self) -> None:
        """Continue from the checkpoint if there is one, else from the bundle of `init`."""
        config, path = self.data.config, self._manager.latest_checkpoint
        if path:
            self._load(path)
            console.log(f"resuming after epoch {self.epochs_done} of {self.epochs}")
        elif config.init:
            self.position.initial = load_initial_weights(config.init, self.network)
        cache = self.data.cache.manifest if self.data.cache else None  # hosts may have copies
        same = [self.position.sources, self.epochs_done, self.epochs, config, cache]
        self.context.check_same(repr(same), "images, settings, a cache or a checkpoint")

    def _load(self, path: str) -> None:
        try:
            restored = self._checkpoint.restore(path)
            restored.assert_existing_objects_matched()
            restored.assert_consumed()
            saved = msgspec.json.decode(self._checkpoint.position.numpy(), type=Position)
        except Exception as error:  # noqa: BLE001 - a damaged file can make TensorFlow raise anything
            reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
            raise BadRun(
                f"{path}: damaged, or a checkpoint of another model or version ({reason}); train "
                "again in another folder",
                "out",
            ) from None
        if saved.sources != self.position.sources:
            raise BadRun(
                f"{path}: made for other people or images than those of {self.data.index.root}, "
                "or by another detector of faces; train again in another folder",
                "out",
            )
        if saved.length != self.position.length:  # a resumed run may train for longer
            saved.epochs, saved.length = self.position.epochs, self.position.length
        self.position, self.earlier_s = saved, saved.wall_s


def create_network(data: TrainingData) -> Network:
    """Build the network that the settings name."""
    config, recipe = data.config, data.config.recipe
    if recipe.precomputes:
        return FisherNetwork.build(recipe.crop_px, config.image_size, config.loss)
    return build_network(
        recipe.network,
        recipe.crop_px,
        config.image_size,
        recipe.augment,
        loss=config.loss,
    )
