"""The methods that cross-validation compares, and their settings.

Settings come from one TOML file:

    seed = 0
    folds = "1-10"
    methods = ["siamese", "difference"]

    [siamese]          # fields of TrainConfig
    epochs = 30
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from facepairs.choices import Align, Model
from facepairs.config import Minutes, TrainConfig, from_table, read_table
from facepairs.errors import BadConfig, BadRun
from facepairs.evaluation.protocols import CATEGORIES, OUTSIDE_LABELS
from facepairs.evaluation.serialize import to_plain
from facepairs.images.crop_plan import ALIGNMENTS
from facepairs.support.atomic import atomic_file
from facepairs.support.validation import did_you_mean, find_problem, validate
from facepairs.training.run_folder.folder import CONFIG
from facepairs.training.view2.folds import parse_folds

METHODS: tuple[Model, ...] = get_args(Model)
# Settings that the method or the protocol decides.
FIXED = ("model", "init", "lists", "cache", "seed", "skip_bad", "test_share")
MARKS = ("result.json", *METHODS)  # names that make a folder the run of a cross-validation


class CrossvalSettings(msgspec.Struct, frozen=True):
    """The keys of the TOML file that are not a method's table."""

    seed: int = 0
    folds: str | int | None = None
    methods: list[str] = msgspec.field(default_factory=lambda: [TrainConfig.model])


class MethodSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The schema of a method's `config.toml`; `data` are digests of the images and lists."""

    schema: Literal[2] = 2
    method: str
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
    minutes_per_fold: float | None = None,
    file: Path | None = None,
    align: Align | None = None,
) -> Plan:
    """Combine a TOML file and options; options override the file.

    Args:
        methods: Names separated by commas; None for the model that `train` trains by default.
        folds: Fold numbers such as `2,5,7-8`; None for all.
        minutes_per_fold: Time of each fold, or None.
        file: The TOML file, or None.
        align: For all methods, or None.

    Raises:
        BadConfig: A name or value cannot be used.
    """
    if problem := find_problem(minutes_per_fold, Minutes | None, "minutes_per_fold"):
        raise BadConfig(problem)
    source = str(file) if file else ""
    table = read_table(file) if file else {}
    keys = CrossvalSettings.__struct_fields__
    tables = {name: value for name, value in table.items() if name not in keys}
    for name, value in tables.items():
        if name not in METHODS or not isinstance(value, dict):
            raise BadConfig(f"{source}: {_unknown(name)}")
    given = {key: value for key, value in table.items() if key in keys}
    given |= {} if methods is None else {"methods": [name.strip() for name in methods.split(",")]}
    given |= {} if folds is None else {"folds": folds}
    settings = validate(given, CrossvalSettings, source)
    for name in settings.methods:
        if name not in METHODS:
            where = source if methods is None else "--methods"
            raise BadConfig(f"{where}: unknown method {name!r}; {did_you_mean(name, METHODS)}")
    configs = {}
    for name in [*settings.methods, *tables]:  # also check the tables of other methods
        where = f"{source} [{name}]" if name in tables else source
        configs[name] = _config(name, tables.get(name, {}), settings.seed, where)
        if minutes_per_fold is not None:
            configs[name] = configs[name].replace(minutes=minutes_per_fold)
        if align is not None:
            configs[name] = configs[name].replace(align=align)
    chosen = () if settings.folds is None else parse_folds(str(settings.folds))
    return Plan({name: configs[name] for name in settings.methods}, chosen)


def plan_of_run(out: Path, folds: str | None = None) -> Plan:
    """Return the plan that continues a run: its methods, with their settings.

    Args:
        out: The run folder.
        folds: As for `make_plan`.

    Raises:
        BadRun: There is no method to continue, or its settings cannot be read.
        BadConfig: The folds cannot be read.
    """
    configs = {path.parent.name: _read_config(path) for path in sorted(out.glob(f"*/{CONFIG}"))}
    if not configs:
        raise BadRun(f"{out}: nothing to resume; leave out --resume")
    return Plan(configs, () if folds is None else parse_folds(folds))


def _unknown(name: str) -> str:
    """Return the message for an unknown key."""
    if name in {field.name for field in dataclasses.fields(TrainConfig)}:
        return f"{name} belongs below a method, such as [{TrainConfig.model}]"
    known = [*METHODS, *CrossvalSettings.__struct_fields__]
    return f"unknown method or setting {name!r}; {did_you_mean(name, known)}"


def _config(method: str, table: Mapping[str, Any], seed: int, source: str) -> TrainConfig:
    """Return the settings of a method from its table."""
    fixed = sorted(set(table) & set(FIXED))
    if fixed:
        raise BadConfig(f"{source}: {fixed[0]} is decided by the method and the protocol")
    return from_table({**table, "model": method, "seed": seed, "test_share": 0.0}, source)


def keep_settings(
    folder: Path, method: str, config: TrainConfig, digests: Mapping[str, str]
) -> None:
    """Write a method's settings into its folder, or compare them with those already there.

    Args:
        folder: The method's folder.
        method: Its name.
        config: Its settings.
        digests: SHA-256 in hex of the lists and the index, by name.

    Raises:
        BadRun: They differ: all folds of a method must be trained with the same settings.
    """
    path = folder / CONFIG
    if not path.exists():
        settings = MethodSettings(
            method=method,
            data=dict(digests),
            train=config.to_table(),
            recipe=_recipe_table(config),
        )
        with atomic_file(path, "wb") as handle:
            handle.write(msgspec.toml.encode(settings))
        return
    check_data(folder, digests)
    old = vars(_read_config(path)) | _read_settings(path).recipe
    changed = [
        f"{key} was {_shown(old.get(key))} and is {_shown(value)}"
        for key, value in (vars(config) | _recipe_table(config)).items()
        if old.get(key) != value
    ]
    if changed:
        raise BadRun(
            f"{path}: {'; '.join(changed)}: all folds are trained alike, so leave the settings as "
            "they were or choose another --out"
        )


def _recipe_table(config: TrainConfig) -> dict[str, Any]:
    """Return what the model decides, as TOML has it."""
    table = to_plain(config.recipe)
    return {name: value for name, value in table.items() if value is not None}


def _shown(value: object) -> str:
    return "not given" if value is None else repr(value)


def category_of(folder: Path) -> str:
    """Return LFW's category of a method, by the weights and alignment in its `config.toml`.

    Raises:
        BadRun: The file cannot be read.
        BadConfig: A setting in it cannot be used.
    """
    config = _read_config(folder / CONFIG)
    return OUTSIDE_LABELS if config.init else CATEGORIES[ALIGNMENTS[config.align]]


def check_data(folder: Path, digests: Mapping[str, str]) -> None:
    """Check that a method's folder was made from the same images and lists.

    Raises:
        BadRun: It was not.
    """
    path = folder / CONFIG
    old = _read_settings(path).data
    names = {"index": "the images"}
    changed = [names.get(key, key) for key, value in digests.items() if old.get(key) != value]
    if changed:
        raise BadRun(
            f"{path}: {' and '.join(changed)} have changed since these folds were made; choose "
            "another --out"
        )


def _read_config(path: Path) -> TrainConfig:
    return from_table(_read_settings(path).train, str(path))


def _read_settings(path: Path) -> MethodSettings:
    """Read a method's `config.toml`; raise BadRun if it cannot be used."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=MethodSettings)
    except (OSError, ValueError) as error:
        raise BadRun(
            f"{path}: cannot be read ({error}); it is damaged or of another version: choose "
            "another --out"
        ) from None
