"""`Run`: a training's folder and its result, which a finished run keeps in `result.json`."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from facepairs.bundles.manifest import MANIFEST
from facepairs.config import TrainConfig, load_config
from facepairs.errors import BadRun, FacepairsError
from facepairs.evaluation.serialize import write_json
from facepairs.support.words import counted
from facepairs.training.run_folder.folder import BUNDLE, CONFIG, HISTORY, RESULT

if TYPE_CHECKING:
    from facepairs.verification.verifier import Verifier

SCHEMA = 2
MINUTES_FROM_S = 120


@dataclass(frozen=True)
class Run:
    """A training, finished or stopped.

    Attributes:
        out: The run folder.
        interrupted: Whether training was stopped; `resume` continues from the checkpoint.
        epochs: Epochs done.
        epoch: The epoch whose weights the bundle has, from 1; 0: the start.
        seconds: Time spent on training steps and validation.
        wall_seconds: Time from the start of the command to its end, preparation and export
            included; of all commands, if the run was resumed.
        val_auc: AUC of the validation after `epoch`, None before the first.
        val_people: Number of people who chose the epoch; 0: nobody did, the last epoch (or the
            start from a bundle, where it is no worse) was kept, and `val_auc` was measured on the
            calibration people.
        people: Number of people in each part of the split.
        threshold: The bundle's threshold; None if interrupted, and on workers other than the chief.
        warning: How the scores had collapsed, "" when they had not.
        worker: Number of this worker, from 0.
        workers: Number of workers.
    """

    out: Path
    interrupted: bool
    epochs: int
    epoch: int
    seconds: float
    wall_seconds: float
    val_auc: float | None
    val_people: int
    people: dict[str, int]
    threshold: float | None
    warning: str
    worker: int
    workers: int

    @property
    def has_bundle(self) -> bool:
        """Whether there is a bundle: not if interrupted, or on workers other than the chief."""
        return self.threshold is not None

    @property
    def bundle(self) -> Path:
        """The bundle's folder; raises BadRun where there is none."""
        if not self.has_bundle:
            raise BadRun(f"{self.out}: stopped before its bundle was written; resume it")
        return self.out / BUNDLE

    @property
    def config(self) -> TrainConfig:
        """The settings, defaults included."""
        return load_config(self.out / CONFIG)

    @property
    def history(self) -> list[dict[str, float | None]]:
        """A row for each epoch: epoch, loss, val_auc, learning_rate, pairs_per_s, seconds, …

        A training that starts from a bundle also has epoch 0, the start: its `loss` is None.
        """
        rows: list[dict[str, float | None]] = json.loads(
            (self.out / HISTORY).read_text(encoding="utf-8")
        )
        return rows

    def verifier(self) -> "Verifier":
        """Open the bundle; raises BadRun where there is none."""
        from facepairs.verification.verifier import Verifier

        return Verifier.load(self.bundle)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        paths = {"out": str(self.out), "bundle": str(self.bundle) if self.has_bundle else None}
        return {**asdict(self), **paths, "schema": SCHEMA}

    def describe_time(self) -> str:
        """Say how long training took, alone and in all, and which epoch was kept."""
        wall = _duration(self.wall_seconds)
        kept = ""
        if self.epoch == 0:
            kept = "; no epoch was better than the start, which was kept"
        elif self.val_people and self.epochs > 1:
            kept = f"; the best, epoch {self.epoch}, was kept"
        return (
            f"{counted(self.epochs, 'epoch')} in {_duration(self.seconds)}, {wall} with "
            f"preparation and export{kept}"
        )

    def save(self) -> None:
        """Write `result.json`, which marks the run as finished."""
        write_json(self.out / RESULT, self.to_json())


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.1f} minutes" if seconds >= MINUTES_FROM_S else f"{seconds:.0f} s"


def finished_run(out: Path, config: TrainConfig) -> Run | None:
    """Return a finished run, or None when there is something left to do.

    Args:
        out: The run folder.
        config: The settings with which the run is to be resumed.
    """
    try:
        table = json.loads((out / RESULT).read_text(encoding="utf-8"))
        values = {field.name: table[field.name] for field in fields(Run)}
        before = load_config(out / CONFIG)
    except (OSError, ValueError, KeyError, TypeError, FacepairsError):
        return None
    if not (out / BUNDLE / MANIFEST).is_file():
        return None
    run = Run(**{**values, "out": out})
    return None if _asks_more(config, before, run) else run


def _asks_more(config: TrainConfig, before: TrainConfig, run: Run) -> bool:
    """Return whether settings ask for more than a run has done."""
    if config.length == before.length:
        return False
    if config.minutes and config.minutes * 60 <= run.wall_seconds:
        return False
    return config.max_epochs > run.epochs
