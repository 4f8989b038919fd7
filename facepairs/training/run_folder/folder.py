"""The run folder: configuration, log, history, checkpoint, TensorBoard and bundle of one training.

RUN/config.toml       all settings, defaults included
RUN/history.json      one row per epoch
RUN/checkpoint.npz    weights, optimizer and position: what `--resume` continues from
RUN/log.txt           messages with their times
RUN/tensorboard/      for `tensorboard --logdir RUN/tensorboard`
RUN/bundle/           the verifier
"""

import contextlib
import json
import time
from pathlib import Path
from typing import Any

from facepairs.config import TrainConfig, from_table, read_table
from facepairs.errors import BadConfig, BadRun
from facepairs.support.atomic import atomic_file, is_temporary
from facepairs.support.lock import held
from facepairs.training.inputs.initial_weights import settings_from_bundle

CONFIG = "config.toml"
CHANGEABLE = {"epochs", "minutes", "checkpoint_minutes"}  # settings that `--resume` may change
WRITTEN_FIRST = ("run.lock", "log.txt")  # before config.toml, which makes a folder a run


def resolve_config(
    options: dict[str, Any], file: Path | None, out: Path, resume: bool
) -> TrainConfig:
    """Return the settings of a run: the options override the TOML file, the file the defaults.

    Args:
        options: Fields of TrainConfig.
        file: TOML file, or None.
        out: The run folder.
        resume: Read the settings of the run in `out`; `options` may then only change how long it
            trains and how often it saves.

    Raises:
        BadConfig: A setting cannot be used, or cannot be changed by resuming.
        BadRun: There is no run to resume in `out`.
    """
    if not resume:
        table = {**(read_table(file) if file else {}), **options}
        if table.get("init"):
            table = settings_from_bundle(table)
        return from_table(table, str(file) if file else "options")
    fixed = sorted(set(options) - CHANGEABLE) + (["config"] if file else [])
    if fixed:
        raise BadConfig(f"--resume keeps the run's own {', '.join(fixed)}; leave the option out")
    path = out / CONFIG
    if not path.is_file():
        raise BadRun(f"{out}: nothing to resume (no config.toml); leave out --resume")
    # Runs of older versions did not look for faces.
    return from_table({"align": "none", **read_table(path)}, str(path)).replace(**options)


class RunFolder:
    """A run folder that this process has locked; use it as a context manager.

    Args:
        path: The folder.
        resume: Whether the folder may hold a run already.
        read_only: Neither lock nor write: for workers other than the chief.
    """

    def __init__(self, path: Path, resume: bool, read_only: bool = False) -> None:
        self.path, self.resume, self.read_only = path, resume, read_only
        self.config_path = path / CONFIG
        self.checkpoint_path = path / "checkpoint.npz"
        self.tensorboard_path = path / "tensorboard"
        self.bundle_path = path / "bundle"
        self._lock = contextlib.ExitStack()

    def __enter__(self) -> "RunFolder":
        if self.read_only:
            return self
        occupied = self.path.is_dir() and any(
            entry.name not in WRITTEN_FIRST and not is_temporary(entry.name)
            for entry in self.path.iterdir()
        )
        if occupied and not self.resume:
            raise BadRun(
                f"{self.path} holds a run already; continue it with --resume or choose "
                "another --out"
            )
        self._lock.enter_context(held(self.path / "run.lock", self.path))
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    def write_config(self, config: TrainConfig) -> None:
        """Write the settings atomically."""
        if self.read_only:
            return
        with atomic_file(self.config_path) as handle:
            handle.write(config.to_toml())

    def write_history(self, rows: list[dict[str, Any]]) -> None:
        """Replace the history, one JSON object per epoch."""
        if self.read_only:
            return
        with atomic_file(self.path / "history.json") as handle:
            json.dump(rows, handle, indent=1)

    def log(self, line: str) -> None:
        """Append a line with the UTC time to the log."""
        if self.read_only:
            return
        with open(self.path / "log.txt", "a", encoding="utf-8") as handle:
            handle.write(time.strftime("%Y-%m-%dT%H:%M:%SZ ", time.gmtime()) + line + "\n")
