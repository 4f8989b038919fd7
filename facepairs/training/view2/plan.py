"""What a cross-validation trains: methods with their settings, and folds.

Settings come from options and from one TOML file, with a table for each method:

    [siamese]          # fields of TrainConfig
    epochs = 30

RUN/METHOD/config.toml keeps the settings, which all folds of a method share.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from facepairs.choices import Align, Model
from facepairs.config import TrainConfig, from_table, read_table
from facepairs.data.lfw.lists import MAX_FOLDS
from facepairs.errors import BadConfig, BadRun
from facepairs.evaluation.serialize import to_plain
from facepairs.support.atomic import atomic_file
from facepairs.support.validation import did_you_mean, validate
from facepairs.training.run_folder import CONFIG

METHODS: tuple[str, ...] = get_args(Model)
# Settings that the method or the protocol decides.
FIXED = ("model", "init", "lists", "cache", "skip_bad", "test_share")


class MethodSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The schema of a method's `config.toml`; `data` are digests of the images and lists."""

    schema: Literal[3] = 3
    data: dict[str, str]
    train: dict[str, Any]
    recipe: dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes:
        configs: The settings of each method, in the order in which they run.
        folds: Numbers of the folds; all folds when empty.
    """

    configs: dict[str, TrainConfig]
    folds: tuple[int, ...]

    @property
    def align(self) -> Align:
        """`landmarks` if any method needs the faces to be found."""
        return "landmarks" if any(c.align == "landmarks" for c in self.configs.values()) else "none"


def make_plan(
    methods: str | None = None,
    folds: str | None = None,
    file: Path | None = None,
) -> Plan:
    """Return the methods of a cross-validation with their settings, from names and a TOML file.

    Args:
        methods: Names separated by commas; None for those of the file, or the model that `train`
            trains by default.
        folds: Fold numbers such as `2,5,7-8`; None for all.
        file: The TOML file, or None.

    Raises:
        BadConfig: A name or value cannot be used.
    """
    table = read_table(file) if file else {}
    names = [name.strip() for name in methods.split(",")] if methods else list(table)
    names = names or [TrainConfig.model]
    configs: dict[str, TrainConfig] = {}
    for name in {**dict.fromkeys(names), **table}:  # mistakes in tables that are not used, too
        source = f"{file} [{name}]" if name in table else "methods"
        if name not in METHODS:
            raise BadConfig(f"{source}: no method {name!r}; {did_you_mean(name, METHODS)}")
        given = validate(table.get(name, {}), dict[str, Any], source)
        if fixed := sorted(set(given) & set(FIXED)):
            raise BadConfig(f"{source}: {fixed[0]} is decided by the method and the protocol")
        configs[name] = from_table({**given, "model": name, "test_share": 0.0}, source)
    chosen = () if folds is None else parse_folds(folds)
    return Plan({name: configs[name] for name in names}, chosen)


def parse_folds(text: str) -> tuple[int, ...]:
    """Parse fold numbers such as `3`, `1-10` or `2,5,7-8`; return each once, rising.

    Raises:
        BadConfig: The text is no list of numbers and ranges.
    """
    numbers: set[int] = set()
    for part in text.split(","):
        ends = [end.strip() for end in part.split("-")]
        valid = all(end.isascii() and end.isdigit() and len(end) < 5 for end in ends)
        if len(ends) > 2 or not valid or not 1 <= int(ends[0]) <= int(ends[-1]) <= MAX_FOLDS:
            raise BadConfig(f"folds is {text!r}; use numbers and ranges such as 3, 1-10 or 2,5,7-8")
        numbers |= set(range(int(ends[0]), int(ends[-1]) + 1))
    return tuple(sorted(numbers))


def plan_of_run(out: Path, folds: str | None = None) -> Plan:
    """Return the plan that continues a run: its methods, with their settings.

    Args:
        out: The run folder.
        folds: As for `make_plan`.

    Raises:
        BadRun: There is no method to continue, or its settings cannot be read.
        BadConfig: The folds cannot be read.
    """
    configs = {path.parent.name: read_config(path.parent) for path in method_files(out)}
    if not configs:
        raise BadRun(f"{out}: nothing to resume; begin a new run", "resume")
    return Plan(configs, () if folds is None else parse_folds(folds))


def method_files(out: Path) -> list[Path]:
    """Return the `config.toml` of each method of a run."""
    return sorted(out.glob(f"*/{CONFIG}"))


def keep_settings(folder: Path, config: TrainConfig, digests: Mapping[str, str]) -> None:
    """Write a method's settings into its folder, or compare them with those already there.

    Args:
        folder: The method's folder.
        config: Its settings.
        digests: SHA-256 in hex of the lists and the index, by name.

    Raises:
        BadRun: They differ: all folds of a method must be trained with the same settings.
    """
    path = folder / CONFIG
    recipe = {name: value for name, value in to_plain(config.recipe).items() if value is not None}
    wanted = MethodSettings(data=dict(digests), train=config.to_table(), recipe=recipe)
    if not path.exists():
        with atomic_file(path, "wb") as handle:
            handle.write(msgspec.toml.encode(wanted))
        return
    old = _read_settings(path)
    before, now = ({**one.data, **one.train, **one.recipe} for one in (old, wanted))
    changed = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
    if changed:
        raise BadRun(
            f"{path}: {', '.join(changed)} changed since, but all folds are trained alike; leave "
            "settings, photos and lists as they were, or choose another folder",
            "out",
        )


def check_data(out: Path, digests: Mapping[str, str]) -> None:
    """Raise BadRun if any method's folder was made from other images or lists."""
    for path in method_files(out):
        data = _read_settings(path).data
        if changed := [name for name, digest in digests.items() if data.get(name) != digest]:
            raise BadRun(
                f"{path}: made from other data ({changed[0]}); choose another folder", "out"
            )


def read_config(folder: Path) -> TrainConfig:
    """Return the settings in a method's folder.

    Raises:
        BadRun: The file cannot be read.
        BadConfig: A setting in it cannot be used.
    """
    path = folder / CONFIG
    return from_table(_read_settings(path).train, str(path))


def _read_settings(path: Path) -> MethodSettings:
    try:
        return msgspec.toml.decode(path.read_bytes(), type=MethodSettings)
    except (OSError, ValueError) as error:
        raise BadRun(
            f"{path}: cannot be read ({error}); it is damaged or of another version: choose "
            "another folder",
            "out",
        ) from None
