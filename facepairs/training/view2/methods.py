"""What cross-validation compares: methods by name, and their settings from one TOML file.

seed = 0
folds = "1-10"
methods = ["siamese", "pixels"]

[siamese]          # fields of TrainConfig
epochs = 30
"""

import dataclasses
import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from facepairs.config import TrainConfig, from_table, read_table
from facepairs.errors import BadConfig, BadRun
from facepairs.support.atomic import atomic_file
from facepairs.training.view2.folds import fold_numbers

METHODS: dict[str, dict[str, Any]] = {
    "siamese": {"model": "siamese"},
    "siamese-conv": {"model": "siamese-conv"},
    "difference": {"model": "difference"},
    "difference-article": {"model": "difference", "sampler": "article"},
    "pixels": {"model": "pixels"},
    "eigenfaces": {"model": "eigenfaces"},
}
# By gradient, so that minutes count.
TRAINED = ("siamese", "siamese-conv", "difference", "difference-article")
# What the method or the protocol decides, and no table may.
FIXED = ("model", "sampler", "init", "protocol", "lists", "cache", "seed", "skip_bad", "test_share")
TOP = ("seed", "folds", "methods")
SCHEMA = 1
CONFIG = "config.toml"


@dataclass(frozen=True)
class Plan:
    """What to run: settings by method, in order, and the folds asked for (none: all there are)."""

    configs: dict[str, TrainConfig]
    folds: tuple[int, ...]


def make_plan(
    methods: str | None, folds: str | None, minutes_per_fold: float | None, file: Path | None
) -> Plan:
    """Join a TOML file and the options given, which go first; raises BadConfig."""
    table = read_table(file) if file else {}
    source = str(file) if file else "options"
    tables = {name: value for name, value in table.items() if name not in TOP}
    for name, value in tables.items():
        if name not in METHODS or not isinstance(value, dict):
            raise BadConfig(f"{source}: {_unknown(name)}")
    names = _names(methods or table.get("methods", TrainConfig.model), source)
    configs = {}
    for name in dict.fromkeys([*names, *tables]):  # tables of other methods are checked too
        minutes = minutes_per_fold if name in TRAINED else None
        where = f"{source} [{name}]" if name in tables else source
        configs[name] = _config(name, tables.get(name, {}), table.get("seed", 0), minutes, where)
    chosen = str(table.get("folds", "")) if folds is None else folds
    asked = fold_numbers(chosen) if folds is not None or "folds" in table else ()
    return Plan({name: configs[name] for name in names}, asked)


def _unknown(name: str) -> str:
    if name in {field.name for field in dataclasses.fields(TrainConfig)}:
        return f"{name} belongs below a method, such as [{TrainConfig.model}]"
    near = difflib.get_close_matches(name, [*METHODS, *TOP], 1)
    hint = f"did you mean {near[0]!r}?" if near else f"methods: {', '.join(METHODS)}"
    return f"unknown method or setting {name!r}; {hint}"


def _names(given: Any, source: str) -> list[str]:
    names = given.split(",") if isinstance(given, str) else given
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadConfig(f"{source}: methods is {given!r}; give a list of names")
    names = list(dict.fromkeys(name.strip() for name in names))
    for name in names:
        if name not in METHODS:
            raise BadConfig(f"{source}: method {name!r} is unknown; use {', '.join(METHODS)}")
    return names


def _config(
    name: str, table: dict[str, Any], seed: Any, minutes: float | None, source: str
) -> TrainConfig:
    fixed = sorted(set(table) & set(FIXED))
    if fixed:
        raise BadConfig(f"{source}: {fixed[0]} is decided by the method and the protocol")
    if table.get("store") == "tfrecord":
        raise BadConfig(
            f"{source}: a cache holds one fold's pairs; use store auto, files or memory"
        )
    given = {**METHODS[name], **table, "seed": seed, "test_share": 0.0}
    return from_table({**given, **({} if minutes is None else {"minutes": minutes})}, source)


def check_place(out: Path, data: Path, resume: bool) -> None:
    """Refuse an `out` that holds something unless it is resumed, or nothing if it is.

    Raises BadRun, and BadConfig for a place among the faces.
    """
    if out.resolve().is_relative_to(data.resolve()):
        raise BadConfig(f"{out} lies in the folder of faces; choose another --out")
    try:
        empty = not out.is_dir() or not any(out.iterdir())
    except OSError as error:
        raise BadRun(f"{out}: {error.strerror}; choose another --out") from None
    if resume and empty:
        raise BadRun(f"{out}: nothing to resume; leave out --resume")
    if not resume and not empty:
        raise BadRun(f"{out} holds something already; go on with --resume or choose another --out")


def keep_settings(
    folder: Path, method: str, config: TrainConfig, digests: Mapping[str, str]
) -> None:
    """Write a method's settings into its folder, or compare with those that stand there.

    Raises BadRun that names what has changed: all folds of a method must be trained alike.
    """
    import tomli_w

    path = folder / CONFIG
    if not path.exists():
        settings = {"schema": SCHEMA, "method": method, "data": dict(digests)}
        with atomic_file(path) as handle:
            handle.write(tomli_w.dumps({**settings, "train": dataclasses.asdict(config)}))
        return
    check_data(folder, digests)
    before = from_table(_stored(path).get("train", {}), str(path))
    changed = [
        f"{field.name} was {getattr(before, field.name)!r} and is {getattr(config, field.name)!r}"
        for field in dataclasses.fields(TrainConfig)
        if getattr(before, field.name) != getattr(config, field.name)
    ]
    if changed:
        raise BadRun(
            f"{path}: {'; '.join(changed)}: all folds are trained alike, so leave the settings as "
            "they were or choose another --out"
        )


def check_data(folder: Path, digests: Mapping[str, str]) -> None:
    """Raise BadRun where a method's folder was made from other images or lists."""
    path = folder / CONFIG
    before = _stored(path).get("data", {})
    names = {"index": "the images"}
    changed = [names.get(key, key) for key, value in digests.items() if before.get(key) != value]
    if changed:
        raise BadRun(
            f"{path}: {' and '.join(changed)} have changed since these folds were made; choose "
            "another --out"
        )


def _stored(path: Path) -> dict[str, Any]:
    try:
        with open(path, "rb") as handle:
            table = tomllib.load(handle)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadRun(f"{path}: cannot be read ({error}); choose another --out") from None
    if table.get("schema") != SCHEMA:
        raise BadRun(f"{path}: of another version of facepairs; choose another --out")
    return table
