"""The result of a training, which a finished run keeps in `result.json`."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from facepairs.bundles.manifest import MANIFEST
from facepairs.config import TrainConfig
from facepairs.errors import FacepairsError
from facepairs.evaluation.serialize import write_json
from facepairs.support.words import counted
from facepairs.training.run_folder.folder import BUNDLE, CONFIG, RESULT, load_run_config

SCHEMA = 2
MINUTES_FROM_S = 120


@dataclass(frozen=True)
class TrainReport:
    """The result of a training.

    Attributes:
        out: The run folder.
        interrupted: Whether training was stopped; `resume` continues from the checkpoint.
        epochs: Epochs done.
        epoch: The epoch whose weights the bundle has, from 1; 0 if nothing is trained step by step.
        seconds: Time spent on training steps and validation.
        wall_seconds: Time from the start of the command to its end, preparation and export
            included; of all commands, if the run was resumed.
        val_auc: AUC of the validation after `epoch`, None before the first.
        val_people: Number of people who chose the epoch; 0: nobody did, the last epoch was kept,
            and `val_auc` was measured on the calibration people.
        people: Number of people in each part of the split.
        bundle: The bundle's folder; None if interrupted, and on workers other than the chief.
        threshold: The bundle's threshold, None without a bundle.
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
    bundle: Path | None
    threshold: float | None
    warning: str
    worker: int
    workers: int

    def to_json(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        paths = {"out": str(self.out), "bundle": str(self.bundle) if self.bundle else None}
        return {**asdict(self), **paths, "schema": SCHEMA}

    def describe_time(self) -> str:
        """Say how long training took, alone and in all, and which epoch was kept."""
        wall = _duration(self.wall_seconds)
        if not self.epochs:
            return f"in {wall}, with preparation and export"
        chosen = self.val_people and self.epochs > 1
        kept = f"; the best, epoch {self.epoch}, was kept" if chosen else ""
        return (
            f"{counted(self.epochs, 'epoch')} in {_duration(self.seconds)}, {wall} with "
            f"preparation and export{kept}"
        )

    def save(self) -> None:
        """Write `result.json`, which marks the run as finished."""
        write_json(self.out / RESULT, self.to_json())


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.1f} minutes" if seconds >= MINUTES_FROM_S else f"{seconds:.0f} s"


def finished_report(out: Path, config: TrainConfig) -> TrainReport | None:
    """Return the report of a finished run, or None when there is something left to do.

    Args:
        out: The run folder.
        config: The settings with which the run is to be resumed.
    """
    try:
        table = json.loads((out / RESULT).read_text(encoding="utf-8"))
        values = {field.name: table[field.name] for field in fields(TrainReport)}
        before = load_run_config(out / CONFIG)
    except (OSError, ValueError, KeyError, TypeError, FacepairsError):
        return None
    bundle = out / BUNDLE
    if not (bundle / MANIFEST).is_file():
        return None
    report = TrainReport(**{**values, "out": out, "bundle": bundle})
    return None if _asks_more(config, before, report) else report


def _asks_more(config: TrainConfig, before: TrainConfig, report: TrainReport) -> bool:
    """Return whether settings ask for more than a run has done."""
    if config.length == before.length or not report.epochs:
        return False
    if config.minutes and config.minutes * 60 <= report.wall_seconds:
        return False
    return config.max_epochs > report.epochs
