"""The run folder: configuration, log, history, checkpoint, TensorBoard and bundle of one training.

RUN/config.toml       what was asked for, as it was understood
RUN/history.json      one row an epoch
RUN/checkpoint.npz    weights, optimizer and position: what `--resume` goes on from
RUN/log.txt           what happened, with times
RUN/tensorboard/      for `tensorboard --logdir RUN/tensorboard`
RUN/bundle/           the verifier
"""

import contextlib
import json
import time
from pathlib import Path
from typing import Any

from facepairs.config import TrainConfig, from_table, load_config, read_table
from facepairs.errors import BadConfig, BadRun
from facepairs.support.atomic import atomic_file, is_temporary
from facepairs.support.lock import held
from facepairs.training.inputs.initial_weights import starting_settings

CONFIG = "config.toml"
GIVEN_ANEW = {"epochs", "minutes", "checkpoint_minutes"}  # when a run is resumed
BEGUN = ("run.lock", "log.txt")  # there before `config.toml`, without which nothing is resumed


def resolve_config(
    options: dict[str, Any], file: Path | None, out: Path, resume: bool
) -> TrainConfig:
    """Join defaults, a TOML file and the options given, the later ones first in rank.

    A resumed run keeps its own configuration; only how long it is, and how often it saves, may be
    given anew.
    """
    if not resume:
        table = {**(read_table(file) if file else {}), **options}
        if table.get("init"):
            table = starting_settings(table)
        return from_table(table, str(file) if file else "options")
    fixed = sorted(set(options) - GIVEN_ANEW) + (["config"] if file else [])
    if fixed:
        raise BadConfig(f"--resume keeps the run's own {', '.join(fixed)}; leave the option out")
    path = out / CONFIG
    if not path.is_file():
        raise BadRun(f"{out}: nothing to resume (no config.toml); leave out --resume")
    return load_config(path).replace(**options)


class RunFolder:
    """A run folder held by this process; use as a context manager, which holds the lock.

    With `read_only`, for workers that look on while another one writes it, nothing is ever written.
    """

    def __init__(self, path: Path, resume: bool, read_only: bool = False) -> None:
        self.path = path
        self.resume = resume
        self.read_only = read_only
        self._held = contextlib.ExitStack()

    def __enter__(self) -> "RunFolder":
        if self.read_only:
            return self
        occupied = self.path.is_dir() and any(
            entry.name not in BEGUN and not is_temporary(entry.name)
            for entry in self.path.iterdir()
        )
        if occupied and not self.resume:
            raise BadRun(
                f"{self.path} holds a run already; go on with --resume or choose another --out"
            )
        self._held.enter_context(held(self.path / "run.lock", self.path))
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    @property
    def config_path(self) -> Path:
        return self.path / CONFIG

    @property
    def checkpoint_path(self) -> Path:
        return self.path / "checkpoint.npz"

    @property
    def tensorboard_path(self) -> Path:
        return self.path / "tensorboard"

    @property
    def bundle_path(self) -> Path:
        return self.path / "bundle"

    def write_config(self, config: TrainConfig) -> None:
        """Write the configuration, whole or not at all."""
        if self.read_only:
            return
        with atomic_file(self.config_path) as handle:
            handle.write(config.to_toml())

    def write_history(self, rows: list[dict[str, Any]]) -> None:
        """Write the history anew, one JSON object an epoch."""
        if self.read_only:
            return
        with atomic_file(self.path / "history.json") as handle:
            json.dump(rows, handle, indent=1)

    def log(self, line: str) -> None:
        """Append a line with the time (UTC) to the log."""
        if self.read_only:
            return
        with open(self.path / "log.txt", "a", encoding="utf-8") as handle:
            handle.write(time.strftime("%Y-%m-%dT%H:%M:%SZ ", time.gmtime()) + line + "\n")
