"""What a training saves after each epoch, and how a resumed one continues.

RUN/checkpoints/origin.json              the people and images, and the bundle that it started from
RUN/checkpoints/epoch-0003-….weights.h5  model and optimizer after the last finished epoch, and
                                         after the best one so far
RUN/history.csv                          a row for each epoch

A file of weights appears whole, under a name with its epoch and the start of its SHA-256. Keras'
`BackupAndRestore` writes weights and epoch in place in two files: a process that is killed between
them would train an epoch twice.
"""

import csv
import hashlib
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from facepairs.errors import BadData, BadRun
from facepairs.support.atomic import atomic_file
from facepairs.support.platform import sync_file, sync_folder
from facepairs.training.inputs.initial_weights import InitialBundle

if TYPE_CHECKING:  # importing it loads TensorFlow
    import keras

SUFFIX = ".weights.h5"
DIGEST = 16  # hexadecimal digits
# The columns of the history after the epoch, as `keras.callbacks.CSVLogger` writes them.
COLUMNS = ("input_wait", "learning_rate", "loss", "pairs_per_s", "seconds", "val_auc", "wall_s")


class Origin(msgspec.Struct, frozen=True):
    """What a training began with.

    Attributes:
        sources: Fingerprint of the people and images.
        initial: The bundle whose weights it started from.
    """

    sources: str
    initial: InitialBundle | None = None


class Epoch(msgspec.Struct, frozen=True):
    """A finished epoch, a row of the history.

    Attributes:
        epoch: Its number from 1; 0 is the start from a bundle's weights, before the first step.
        seconds: Time of steps and validation until it ended.
        val_auc: AUC of the validation pairs.
        wall_s: Wall time until it ended of the commands that worked on the run.
        loss: Mean over the epoch's pairs.
        learning_rate: Of its last step.
        pairs_per_s: Of its steps.
        input_wait: Share of the time of its steps that was spent waiting for a batch.
    """

    epoch: int
    seconds: float
    val_auc: float
    wall_s: float
    loss: float | None = None
    learning_rate: float | None = None
    pairs_per_s: float | None = None
    input_wait: float | None = None


@dataclass
class Progress:
    """How far a training has got.

    Attributes:
        origin: What it began with.
        history: The finished epochs, with epoch 0 where it starts from a bundle.
        chooses: Whether people are set aside to choose the best epoch.
        started_s: When the command at work began, by `time.perf_counter`.
    """

    origin: Origin
    history: list[Epoch]
    chooses: bool
    started_s: float

    def __post_init__(self) -> None:
        self._earlier_s = self.history[-1].wall_s if self.history else 0.0

    @property
    def is_new(self) -> bool:
        """Whether the weights are random ones."""
        return not (self.history or self.origin.initial)

    @property
    def epochs_done(self) -> int:
        """Number of finished epochs."""
        return self.history[-1].epoch if self.history else 0

    @property
    def seconds(self) -> float:
        """Time spent on steps and validation of finished epochs."""
        return self.history[-1].seconds if self.history else 0.0

    @property
    def wall_s(self) -> float:
        """Wall time so far of all commands that worked on the run."""
        return self._earlier_s + time.perf_counter() - self.started_s

    @property
    def kept(self) -> Epoch | None:
        """The epoch whose weights the bundle gets: the best one.

        Where nobody is set aside to choose it, that is the better one of the start from a bundle
        and the last.
        """
        candidates = self.history
        if not self.chooses:
            candidates = [row for row in self.history if row.epoch in (0, self.epochs_done)]
        return max(candidates, key=lambda row: (row.val_auc, -row.epoch), default=None)

    @property
    def needed(self) -> set[int]:
        """The epochs whose weights are still needed."""
        chosen = self.kept.epoch if self.chooses and self.kept else 0
        return {self.epochs_done, chosen}

    @property
    def epochs_without_gain(self) -> int:
        """Number of epochs since the best one."""
        return self.epochs_done - self.kept.epoch if self.kept else 0

    def lost_patience(self, patience: int | None) -> bool:
        """Return whether so many epochs brought no gain; with None never."""
        return patience is not None and self.epochs_without_gain >= patience


def read_history(path: Path) -> list[Epoch]:
    """Return the finished epochs; a row that was not written whole is none."""
    if not path.is_file():
        return []
    with path.open(newline="") as handle:
        rows = [{k: v for k, v in row.items() if v} for row in csv.DictReader(handle)]
    epochs = []
    for row in rows:
        try:
            epochs.append(msgspec.convert(row, Epoch, strict=False))
        except msgspec.ValidationError:
            break
    return epochs


def write_history(path: Path, epochs: Sequence[Epoch]) -> None:
    """Replace the history."""
    with atomic_file(path) as handle:
        writer = csv.DictWriter(handle, ("epoch", *COLUMNS))
        writer.writeheader()
        writer.writerows(msgspec.structs.asdict(epoch) for epoch in epochs)


class Checkpoints:
    """The folder of a run's checkpoints.

    Args:
        folder: The folder.
        read_only: Write nothing: for workers other than the chief.
    """

    def __init__(self, folder: Path, read_only: bool = False) -> None:
        self.folder, self._read_only = folder, read_only

    def begin(self, origin: Origin) -> None:
        """Write what a new training begins with."""
        if not self._read_only:
            self.folder.mkdir(parents=True, exist_ok=True)
            with atomic_file(self.folder / "origin.json", "wb") as handle:
                handle.write(msgspec.json.encode(origin))

    def origin(self) -> Origin | None:
        """Return what the training in the folder began with; None without one."""
        path = self.folder / "origin.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=Origin)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise _damaged(path, error) from None

    def save(self, model: "keras.Model", epoch: int) -> None:
        """Save the weights of a compiled model and its optimizer after an epoch.

        Raises:
            BadData: They cannot be written.
        """
        if self._read_only:
            return
        temporary = self.folder / f".epoch{SUFFIX}"
        try:
            model.save_weights(temporary)
            sync_file(temporary)
            digest = hashlib.sha256(temporary.read_bytes()).hexdigest()[:DIGEST]
            temporary.replace(self.folder / f"epoch-{epoch:04d}-{digest}{SUFFIX}")
            sync_folder(self.folder)
        except OSError as error:
            raise BadData(
                f"cannot write {temporary}: {error.strerror or error}; free space and resume"
            ) from None

    def keep(self, epochs: Collection[int]) -> None:
        """Remove what is saved of other epochs."""
        for epoch, path in self.saved().items():
            if epoch not in epochs and not self._read_only:
                path.unlink()

    def saved(self) -> dict[int, Path]:
        """Return the files by epoch."""
        paths = sorted(self.folder.glob(f"epoch-*{SUFFIX}"))
        return {int(path.name.split("-")[1]): path for path in paths}

    def load(self, model: "keras.Model", epoch: int) -> None:
        """Set the weights of a compiled model and its optimizer to those after an epoch.

        Raises:
            BadRun: The file is missing, damaged, or of another model or version.
        """
        path = self.saved().get(epoch)
        if path is None:
            raise BadRun(f"{self.folder}: has no weights of epoch {epoch}; train again", "out")
        try:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()[:DIGEST]
            if digest not in path.name:
                raise ValueError("its checksum differs")
            model.load_weights(path)
        except Exception as error:  # noqa: BLE001 - a damaged file can make Keras raise anything
            raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> BadRun:
    reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
    return BadRun(
        f"{path}: damaged, or a checkpoint of another model or version ({reason}); train again in "
        "another folder",
        "out",
    )
