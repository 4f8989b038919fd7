"""The run folder: configuration, log, history, checkpoint, TensorBoard and bundle of one training.

RUN/config.toml       all settings, defaults included
RUN/history.json      one row per epoch
RUN/checkpoints/      weights, optimizer and position: what `--resume` continues from
RUN/log.txt           messages with their times
RUN/tensorboard/      for `tensorboard --logdir RUN/tensorboard`
RUN/bundle/           the verifier
RUN/result.json       the result, once the training is finished
"""

import contextlib
import json
import time
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any

from facepairs.config import TrainConfig, from_table, load_config, read_table
from facepairs.data.index import READABLE
from facepairs.errors import BadConfig, BadRun
from facepairs.support.atomic import atomic_file, is_temporary
from facepairs.support.lock import held
from facepairs.support.validation import shorten
from facepairs.training.inputs.initial_weights import settings_from_bundle

CONFIG, BUNDLE, RESULT, HISTORY = "config.toml", "bundle", "result.json", "history.json"
CHANGEABLE = {"epochs", "minutes", "patience"}  # settings that `--resume` may change
LOCK = "run.lock"
WRITTEN_FIRST = (LOCK, "log.txt")  # before config.toml, which makes a folder a run


def resolve_config(
    options: dict[str, Any], file: Path | None, out: Path | None, resume: bool
) -> TrainConfig:
    """Return the settings of a run: the options override the TOML file, the file the defaults.

    Args:
        options: Fields of TrainConfig.
        file: TOML file, or None.
        out: The run folder.
        resume: Read the settings of the run in `out`; `options` may then only change how long it
            trains.

    Raises:
        BadConfig: A setting cannot be used, or cannot be changed by resuming.
        BadRun: There is no run to resume in `out`.
    """
    if not resume:
        table = {**(read_table(file) if file else {}), **options}
        try:
            return from_table(settings_from_bundle(table) if table.get("init") else table)
        except BadConfig as error:
            setting = str(error).partition(" ")[0]
            if file is None or setting in options:
                raise
            raise BadConfig(f"{file}: {error}") from None
    fixed = sorted(set(options) - CHANGEABLE) + (["config"] if file else [])
    if fixed:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in fixed)
        raise BadConfig(f"--resume keeps the run's own settings; leave out {names}")
    config = config_to_resume(out)
    if "epochs" in options:  # a number of epochs replaces a limit of time
        options = {"minutes": None, **options}
    return config.replace(**options)


def settings_of_run(config: TrainConfig | None, out: Path, resume: bool) -> TrainConfig:
    """Return the settings of a run, as `resolve_config` does, for settings that are an object.

    Args:
        config: The settings; None for the defaults. With `init` they may be incomplete.
        out: The run folder.
        resume: Read the settings of the run in `out`; `config` may only differ in those that
            resuming may change, and None changes nothing.

    Raises:
        BadConfig: As in `resolve_config`.
        BadRun: As in `resolve_config`.
    """
    if config is not None and not isinstance(config, TrainConfig):
        raise BadConfig(
            f"config is {shorten(config)}; give settings such as facepairs.TrainConfig(epochs=3)"
        )
    if resume and config is None:
        return config_to_resume(out)
    wanted = resolve_config((config or TrainConfig()).changes(), None, out, resume=False)
    if not resume:
        return wanted
    before = asdict(config_to_resume(out))
    changes = {name: value for name, value in asdict(wanted).items() if value != before[name]}
    return resolve_config(changes, None, out, resume)


def config_to_resume(out: Path | None) -> TrainConfig:
    """Return the settings of the run in a folder; raise BadRun where there is none."""
    if out is None:
        raise BadConfig("--resume needs the run folder: --out RUN")
    path = out / CONFIG
    if not path.is_file():
        raise BadRun(f"{out}: nothing to resume (no {CONFIG}); leave out --resume")
    return load_config(path)


def check_place(
    out: Path, data: Path, resume: bool, marks: Collection[str] = (CONFIG, RESULT)
) -> None:
    """Check the output folder of a run before any work is done.

    Args:
        out: The run folder.
        data: The folder of faces.
        resume: Whether to continue what is in `out`.
        marks: Names that make a folder a run.

    Raises:
        BadConfig: `out` is the folder of faces or inside it.
        BadRun: `out` holds something and `resume` is false, or nothing and `resume` is true.
    """
    if out.resolve() == data.resolve():
        raise BadConfig(f"{out} is the folder of faces itself; choose another --out")
    if out.resolve().is_relative_to(data.resolve()):
        raise BadConfig(f"{out} lies in the folder of faces; choose another --out")
    try:
        names = _contents(out)
    except OSError as error:
        raise BadRun(f"{out}: {error.strerror}; choose another --out") from None
    if resume and not names:
        raise BadRun(f"{out}: nothing to resume; leave out --resume")
    if names and not resume:
        raise BadRun(_describe_occupied(out, names, marks))


def check_unlocked(out: Path) -> None:
    """Raise BadRun if another process works on a run."""
    if (out / LOCK).exists():
        with held(out / LOCK, out):
            pass


def _contents(out: Path) -> list[str]:
    """Return the names in a folder, without what a run leaves there before its settings."""
    if not out.exists() and not out.is_symlink():
        return []
    names = (entry.name for entry in out.iterdir())
    return sorted(name for name in names if name not in WRITTEN_FIRST and not is_temporary(name))


def _describe_occupied(
    out: Path, names: list[str], marks: Collection[str] = (CONFIG, RESULT)
) -> str:
    """Say what a folder is in which no run can begin, and what to do."""
    if not set(names).isdisjoint(marks):
        return (
            f"{out} holds a run already; continue it with --resume (in Python: resume=True) or "
            "choose another --out"
        )
    if any(Path(name).suffix.lower() in READABLE for name in names) or any(
        path.suffix.lower() in READABLE for path in out.glob("*/*")
    ):
        return f"{out} is a folder of photos, no run; choose a new folder with --out"
    return f"{out} is not empty and holds no run (there is {names[0]}); choose a new --out"


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
        self.checkpoints_path = path / "checkpoints"
        self.tensorboard_path = path / "tensorboard"
        self.bundle_path = path / BUNDLE
        self._lock = contextlib.ExitStack()

    def __enter__(self) -> "RunFolder":
        if self.read_only:
            return self
        if not self.resume and (names := _contents(self.path)):
            raise BadRun(_describe_occupied(self.path, names))
        self._lock.enter_context(held(self.path / LOCK, self.path))
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    def begin(self, config: TrainConfig) -> None:
        """Write the settings; the run is not finished any more."""
        if self.read_only:
            return
        (self.path / RESULT).unlink(missing_ok=True)
        with atomic_file(self.config_path) as handle:
            handle.write(config.to_toml())

    def write_history(self, rows: list[dict[str, float | None]]) -> None:
        """Replace the history, one JSON object per epoch."""
        if self.read_only:
            return
        with atomic_file(self.path / HISTORY) as handle:
            json.dump(rows, handle, indent=1)

    def log(self, line: str) -> None:
        """Append a line with the UTC time to the log."""
        if self.read_only:
            return
        with open(self.path / "log.txt", "a", encoding="utf-8") as handle:
            handle.write(time.strftime("%Y-%m-%dT%H:%M:%SZ ", time.gmtime()) + line + "\n")
