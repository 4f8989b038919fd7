"""Find run folders and read the figures of each, whether its training is finished or not."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from facepairs.config import TrainConfig, load_config
from facepairs.errors import BadRun
from facepairs.training.run_folder.folder import CONFIG, HISTORY, LOCK, check_unlocked
from facepairs.training.run_folder.result import finished_run


@dataclass(frozen=True)
class RunFigures:
    """What a run folder says about its training.

    Attributes:
        folder: The run folder.
        state: `finished`: it has a bundle; `running`: a process works on it; else `stopped`.
        config: The settings, defaults included.
        epochs: Epochs done.
        epoch: The epoch whose weights the bundle has; None where there is no bundle.
        val_auc: AUC of the validation after `epoch`, without a bundle after the last epoch; None
            before the first.
        loss: Mean training loss of the same epoch.
        minutes: Wall time of a finished training; None where there is no bundle.
        people: Number of people in each part of the split; empty where there is no bundle.
    """

    folder: Path
    state: Literal["finished", "running", "stopped"]
    config: TrainConfig
    epochs: int
    epoch: int | None
    val_auc: float | None
    loss: float | None
    minutes: float | None
    people: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {**asdict(self), "folder": str(self.folder), "config": self.config.to_table()}


def read_runs(paths: Sequence[Path]) -> list[RunFigures]:
    """Read run folders, sorted within each folder that holds several.

    Args:
        paths: Run folders, or folders that hold them.

    Raises:
        BadRun: One of the paths neither is nor holds a run.
        BadConfig: The settings of a run cannot be read.
    """
    return [_read(folder) for path in paths for folder in _run_folders(path)]


def _run_folders(path: Path) -> list[Path]:
    if _is_run(path):
        return [path]
    found = sorted(entry.parent for entry in path.glob(f"*/{CONFIG}") if _is_run(entry.parent))
    if not path.is_dir():
        raise BadRun(f"{path}: no such folder; name a run, or the folder of several")
    if not found:
        raise BadRun(f"{path}: no run of `facepairs train` in it; name a run, or their folder")
    return found


def _is_run(folder: Path) -> bool:
    """Return whether a training has begun in a folder; crossval's have no history."""
    begun = (folder / HISTORY).is_file() or (folder / LOCK).is_file()
    return begun and (folder / CONFIG).is_file()


def _read(folder: Path) -> RunFigures:
    config = load_config(folder / CONFIG)
    history = _history(folder / HISTORY)
    run = finished_run(folder, config)
    if run:
        row = history[run.epoch - 1] if 0 < run.epoch <= len(history) else {}
        return RunFigures(
            folder, "finished", config, run.epochs, run.epoch, run.val_auc, row.get("loss"),
            run.wall_seconds / 60, run.people,
        )  # fmt: skip
    last = history[-1] if history else {}
    return RunFigures(
        folder, "running" if _is_locked(folder) else "stopped", config, len(history), None,
        last.get("val_auc"), last.get("loss"), None, {},
    )  # fmt: skip


def _history(path: Path) -> list[dict[str, float | None]]:
    """Return a row for each epoch done; none before the first or where the file is damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[dict[str, float | None]])
    except (OSError, msgspec.MsgspecError):
        return []


def _is_locked(folder: Path) -> bool:
    try:
        check_unlocked(folder)
    except BadRun:
        return True
    return False


def differing_settings(runs: Sequence[RunFigures]) -> dict[str, list[Any]]:
    """Return the settings in which runs differ: their values by name, in the order of the runs."""
    tables = [asdict(run.config) for run in runs]
    rows = {name: [table[name] for table in tables] for name in tables[0]}
    return {name: row for name, row in rows.items() if any(value != row[0] for value in row)}
