"""How far a training has got: the finished epochs, and what is saved of them.

RUN/history.csv                          a row for each epoch
RUN/checkpoints/epoch-0003-….weights.h5  model and optimizer after the last finished epoch, and
                                         after the best one so far

A file of weights is named by its epoch, by the people and images of the training, and by its own
checksum; it appears whole, before the row of its epoch does. Keras' `BackupAndRestore` writes
weights and epoch in place in two files: a process that is killed between them would train an epoch
twice. `CSVLogger` would add a third file that may disagree.
"""

import csv
import hashlib
import io
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from facepairs.errors import BadRun
from facepairs.support.atomic import atomic_file

if TYPE_CHECKING:  # importing it loads TensorFlow
    import keras

HISTORY = "history.csv"
SUFFIX = ".weights.h5"
DIGEST = 16  # hexadecimal digits


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


def read_history(run: Path) -> list[Epoch]:
    """Return the finished epochs of a run folder.

    Raises:
        BadRun: The file is damaged.
    """
    path = run / HISTORY
    try:
        with path.open(newline="") as handle:
            rows = [{k: v for k, v in row.items() if v} for row in csv.DictReader(handle)]
        return msgspec.convert(rows, list[Epoch], strict=False)
    except FileNotFoundError:
        return []
    except (OSError, ValueError, msgspec.ValidationError) as error:
        raise _damaged(path, error) from None


class Progress:
    """The finished epochs of a training, which one of them is kept, and their weights.

    Args:
        run: The run folder.
        sources: Digest of the people and images.
        chooses: Whether people are set aside to choose the best epoch.
        started_s: When the command at work began, by `time.perf_counter`.
        writes: Whether this process saves epochs: not if it is a worker other than the chief.

    Attributes:
        history: The finished epochs, with epoch 0 where training starts from a bundle.

    Raises:
        BadRun: The run is damaged, or was made with other people or images.
    """

    def __init__(
        self, run: Path, sources: str, chooses: bool, started_s: float, writes: bool = True
    ) -> None:
        self.run, self.chooses = run, chooses
        self._sources, self._started_s, self._writes = sources[:DIGEST], started_s, writes
        self.history = read_history(run)
        self._earlier_s = self.history[-1].wall_s if self.history else 0.0
        for path in self._saved():
            if path.name.split("-")[2] != self._sources:
                raise BadRun(
                    f"{path}: made for other people or images, from another bundle, or by another "
                    "detector of faces; train again in another folder",
                    "out",
                )

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
        return self._earlier_s + time.perf_counter() - self._started_s

    @property
    def kept(self) -> Epoch | None:
        """The epoch whose weights the bundle gets: the best one.

        Where no people are set aside to choose it, that is the better one of the start from a
        bundle and the last.
        """
        candidates = self.history
        if not self.chooses:
            candidates = [row for row in self.history if row.epoch in (0, self.epochs_done)]
        return max(candidates, key=lambda row: (row.val_auc, -row.epoch), default=None)

    def add(self, epoch: Epoch, model: "keras.Model") -> None:
        """Add a finished epoch; save the weights of the compiled model and its optimizer after it.

        Raises:
            BadData: They cannot be written; what was saved before stays.
        """
        self.history.append(epoch)
        if not self._writes:
            return
        file = _WeightsFile()
        model.save_weights(file)  # not to the disk: h5py ends a process whose disk is full
        content = file.getvalue()
        digest = hashlib.sha256(content).hexdigest()[:DIGEST]
        path = self._folder / f"epoch-{epoch.epoch:04d}-{self._sources}-{digest}{SUFFIX}"
        with atomic_file(path, "wb") as handle:
            handle.write(content)
        with atomic_file(self.run / HISTORY) as handle:
            writer = csv.DictWriter(handle, Epoch.__struct_fields__)
            writer.writeheader()
            writer.writerows(map(msgspec.structs.asdict, self.history))
        best = self.kept.epoch if self.chooses and self.kept else 0  # or the start, if there is one
        for other in self._saved():
            if other != path and _epoch_of(other) != best:
                other.unlink()

    def load(self, model: "keras.Model", epoch: int) -> None:
        """Set the weights of a compiled model and its optimizer to those after an epoch.

        Raises:
            BadRun: The file is missing, damaged, or of another model or version.
        """
        path = next((path for path in self._saved() if _epoch_of(path) == epoch), None)
        if path is None:
            raise BadRun(f"{self._folder}: has no weights of epoch {epoch}; train again", "out")
        try:
            content = path.read_bytes()
            if not path.name.endswith(hashlib.sha256(content).hexdigest()[:DIGEST] + SUFFIX):
                raise ValueError("its checksum differs")
            model.load_weights(_WeightsFile(content))
        except Exception as error:  # noqa: BLE001 - a damaged file can make Keras raise anything
            raise _damaged(path, error) from None

    @property
    def _folder(self) -> Path:
        return self.run / "checkpoints"

    def _saved(self) -> list[Path]:
        return sorted(self._folder.glob(f"epoch-*-*-*{SUFFIX}"))


class _WeightsFile(io.BytesIO):
    """A file in memory; Keras tells by the end of its name what it holds."""

    def __str__(self) -> str:
        return SUFFIX


def _epoch_of(path: Path) -> int:
    return int(path.name.split("-")[1])


def _damaged(path: Path, error: Exception) -> BadRun:
    reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
    return BadRun(
        f"{path}: damaged, or of another model or version ({reason}); train again in another "
        "folder",
        "out",
    )
