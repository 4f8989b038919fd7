"""A run folder, everything that one training keeps, and `Run`, its result.

RUN/config.toml       all settings, defaults included
RUN/history.csv       one row per epoch
RUN/checkpoints/      weights and optimizer: what a resumed run continues from
RUN/tensorboard/      for `tensorboard --logdir RUN/tensorboard`
RUN/bundle/           the verifier
RUN/result.json       the result, once the training is finished
"""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from facepairs.bundles.manifest import MANIFEST
from facepairs.bundles.rates import OperatingPoint
from facepairs.config import Settings, TrainConfig, load_config
from facepairs.data.split import PeopleSplit
from facepairs.errors import BadConfig, BadRun
from facepairs.support.atomic import atomic_file, is_temporary
from facepairs.support.results import SCHEMA, to_plain, write_json
from facepairs.support.words import counted
from facepairs.training.progress import Progress, read_history

if TYPE_CHECKING:
    from facepairs.verification.verifier import Verifier

CONFIG, BUNDLE, RESULT = "config.toml", "bundle", "result.json"
LOCK = "run.lock"
CHANGEABLE = frozenset(("epochs", "minutes"))  # how long a resumed run trains


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
        val_people: Number of people who chose the epoch; 0: none did, the last epoch (or the
            start from a bundle, where it is no worse) was kept, and `val_auc` was measured on the
            calibration people.
        people: Number of people in each part of the split.
        operating_point: How the bundle decides by default, with its errors; None if interrupted,
            and on workers other than the chief.
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
    operating_point: OperatingPoint | None

    @classmethod
    def of(
        cls,
        progress: Progress,
        split: PeopleSplit,
        interrupted: bool,
        decides: OperatingPoint | None,
    ) -> "Run":
        """Return the result of a training that has got so far, whose bundle decides like this."""
        kept = progress.kept
        return cls(
            out=progress.run,
            interrupted=interrupted,
            epochs=progress.epochs_done,
            epoch=kept.epoch if kept else 0,
            seconds=round(progress.seconds, 1),
            wall_seconds=round(progress.wall_s, 1),
            val_auc=kept.val_auc if kept else None,
            val_people=len(split.validation),
            people={name: len(part) for name, part in vars(split).items()},
            operating_point=decides,
        )

    @classmethod
    def read(cls, out: Path) -> "Run | None":
        """Return the finished run in a folder; None where there is none."""
        try:
            table = json.loads((out / RESULT).read_text(encoding="utf-8"))
            values = {field.name: table[field.name] for field in fields(cls)}
            point = msgspec.convert(table["operating_point"], OperatingPoint | None)
        except (OSError, ValueError, KeyError, TypeError, msgspec.ValidationError):
            return None
        if not (out / BUNDLE / MANIFEST).is_file():
            return None
        return cls(**{**values, "out": out, "operating_point": point})

    def write(self) -> None:
        """Write `result.json`, which marks the run as finished."""
        write_json(self.out / RESULT, self.to_json())

    @property
    def has_bundle(self) -> bool:
        """Whether there is a bundle: not if interrupted, or on workers other than the chief."""
        return self.operating_point is not None

    @property
    def bundle(self) -> Path:
        """The bundle's folder; raises BadRun where there is none."""
        if not self.has_bundle:
            raise BadRun(f"{self.out}: stopped before its bundle was written; resume it")
        return self.out / BUNDLE

    @property
    def config(self) -> Settings:
        """The settings, defaults included."""
        return load_config(self.out / CONFIG).resolve()

    @property
    def history(self) -> list[dict[str, float | None]]:
        """A row for each epoch: epoch, loss, val_auc, learning_rate, pairs_per_s, seconds, …

        A training that starts from a bundle also has epoch 0, the start: its `loss` is None.
        """
        return [msgspec.structs.asdict(row) for row in read_history(self.out)]

    def verifier(self) -> "Verifier":
        """Open the bundle; raises BadRun where there is none."""
        from facepairs.verification.verifier import Verifier

        return Verifier.load(self.bundle)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        paths = {"out": str(self.out), "bundle": str(self.bundle) if self.has_bundle else None}
        plain: dict[str, Any] = to_plain({**asdict(self), **paths, "schema": SCHEMA})
        return plain

    def describe_time(self) -> str:
        """Say how long training took, alone and in all, and which epoch was kept."""
        kept = f"; epoch {self.epoch} was kept" if self.epoch else "; the start was kept"
        return (
            f"{counted(self.epochs, 'epoch')} in {self.seconds / 60:.1f} minutes, "
            f"{self.wall_seconds / 60:.1f} minutes with preparation and export"
            f"{kept if self.epoch != self.epochs else ''}"
        )


def finished_run(out: Path, config: Settings) -> Run | None:
    """Return the run in a folder, or None when these settings leave something to do in it."""
    run = Run.read(out)
    if run is None:
        return None
    no_time = config.minutes is not None and config.minutes * 60 <= run.wall_seconds
    done = run.config.length == config.length or no_time or config.max_epochs <= run.epochs
    return run if done else None


def settings_of_run(
    given: TrainConfig,
    out: Path | None,
    resume: bool,
    changeable: frozenset[str] = CHANGEABLE,
) -> Settings:
    """Return the settings of a run.

    Args:
        given: The settings that were given.
        out: The run folder.
        resume: Take the settings of the run in `out`.
        changeable: The settings that may then be changed.

    Raises:
        BadConfig: A setting cannot be used, or cannot be changed by resuming.
        BadRun: `out` has no run to resume.
        BadBundle: Training cannot start from the bundle of `init`.
    """
    if not resume:
        return given.resolve()
    if out is None:
        raise BadConfig("only a run in a folder can be resumed; give the folder", "out")
    if not (out / CONFIG).is_file():
        raise BadRun(f"{out}: nothing to resume (no {CONFIG}); begin a new run", "resume")
    before = load_config(out / CONFIG)
    table = before.to_table()
    changes = {name: value for name, value in given.given().items() if value != table.get(name)}
    if fixed := sorted(set(changes) - changeable):
        raise BadConfig("a run is resumed with its own settings; leave out others", *fixed)
    if "epochs" in changes:  # a number of epochs replaces a limit of time
        changes = {"minutes": None, **changes}
    return before.replace(**changes).resolve()


def check_place(out: Path, data: Path, resume: bool) -> None:
    """Check the output folder of a run before any work is done.

    Args:
        out: The run folder.
        data: The folder of faces.
        resume: Whether to continue what is in `out`.

    Raises:
        BadConfig: `out` is the folder of faces or inside it.
        BadRun: `out` cannot be read, or holds something and `resume` is false.
    """
    if out.resolve().is_relative_to(data.resolve()):
        raise BadConfig(f"{out} lies in the folder of faces; choose another folder", "out")
    if resume or not (out.exists() or out.is_symlink()):
        return
    try:
        # A process that was killed before it wrote its settings leaves its lock.
        names = (entry.name for entry in out.iterdir())
        holds = [name for name in names if name != LOCK and not is_temporary(name)]
    except OSError as error:
        raise BadRun(f"{out}: {error.strerror}; choose another folder", "out") from None
    if holds:
        raise BadRun(
            f"{out} is not empty (it holds {min(holds)}); resume the run in it, or choose another "
            "folder",
            "resume",
            "out",
        )


def begin_run(out: Path, config: Settings) -> None:
    """Write the settings; the run is not finished any more."""
    (out / RESULT).unlink(missing_ok=True)
    with atomic_file(out / CONFIG) as handle:
        handle.write(config.to_toml())
