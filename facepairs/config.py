"""`TrainConfig`: every setting that decides what a training run learns, as one frozen dataclass.

It is loaded from TOML, checked as a whole, and written as TOML into the run folder, from which
a resumed run reads it. `settings.toml.template` says what each means; what nobody sets is in
`facepairs.recipes`.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from facepairs.choices import Align, Loss, Model
from facepairs.errors import BadConfig
from facepairs.recipes import RECIPES, Pace, Recipe
from facepairs.support.validation import check_fields, parse_toml, validate

MAX_EPOCHS = 100_000

Epochs = Annotated[int, Meta(ge=1, le=MAX_EPOCHS)]
Minutes = Annotated[float, Meta(ge=0.01, le=100_000)]
TEMPLATE = Path(__file__).with_name("settings.toml.template")  # each setting with its meaning
BY_MODEL = 0  # stands for the value of the model's recipe


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """The settings of a training run; `docs/reference/settings.md` explains each.

    What is not given, or 0 where a number depends on the model, is decided by the model's recipe.

    Examples:
        >>> TrainConfig(model="difference", minutes=10).image_size
        64

    Raises:
        BadConfig: A value is of the wrong type or outside its range, or two values contradict
            each other.
    """

    model: Model = "resnet"
    init: str = ""
    loss: Loss = "in-batch"
    lists: str = ""
    epochs: Epochs | None = None
    minutes: Minutes | None = None
    patience: Epochs | None = None
    batch_size: Annotated[int, Meta(ge=2, le=4096)] = BY_MODEL
    pairs_per_epoch: Annotated[int, Meta(ge=2, le=10**9)] = BY_MODEL
    learning_rate: Annotated[float, Meta(ge=1e-8, le=10)] = BY_MODEL
    image_size: Annotated[int, Meta(ge=64, le=224)] = BY_MODEL
    align: Align = "landmarks"
    cache: str = ""
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    calibration_share: Annotated[float, Meta(ge=0.01, le=0.9)] = 0.15
    test_share: Annotated[float, Meta(ge=0, le=0.9)] = 0.15
    validation_share: Annotated[float, Meta(ge=0, le=0.5)] = 0.04
    skip_bad: bool = False

    def __post_init__(self) -> None:
        if self.model in RECIPES:  # else `check_fields` refuses it
            if not self.init:
                object.__setattr__(self, "init", self.recipe.starts_from)
            self._fill_in(self._pace())
        check_fields(self)
        if contradiction := next(self._contradictions(), ""):
            raise BadConfig(contradiction)

    def _contradictions(self) -> Iterator[str]:
        """Say which settings do not go together."""
        recipe, model, px = self.recipe, self.model, self.image_size
        if self.pairs_per_epoch < self.batch_size:
            yield (
                f"pairs_per_epoch is {self.pairs_per_epoch}; use at least batch_size, "
                f"{self.batch_size}"
            )
        if recipe.precomputes and (px < 96 or px % 16):
            yield f"image_size is {px}; {model} needs a multiple of 16 from 96 on"
        if recipe.points and px != recipe.image_size:
            yield f"image_size is {px}; {model} needs {recipe.image_size}"
        if recipe.points and self.align == "none":
            yield f"align is none; {model} needs aligned faces, fisher does not"
        if self.calibration_share + self.test_share + self.validation_share > 0.95:
            yield "calibration_share, test_share and validation_share leave nobody to train on"
        if not recipe.embeds and self.loss != "in-batch":
            yield f"loss {self.loss} is for models that embed a face, not {model}"
        if self.cache and not recipe.takes_pairs:
            yield (
                f"{model} does not train from a cache of pairs; leave the cache out, or use model "
                "difference or siamese"
            )

    def _pace(self) -> Pace:
        return self.recipe.fine_tuning if self.init else self.recipe.from_scratch

    def _fill_in(self, pace: Pace) -> None:
        """Set what the model decides and was not given."""
        decided = vars(self.recipe) | vars(pace)
        for name in ("batch_size", "image_size", "pairs_per_epoch", "learning_rate"):
            if getattr(self, name) == BY_MODEL:
                object.__setattr__(self, name, decided[name])
        if self.init and self.epochs is None:
            object.__setattr__(self, "epochs", pace.epochs)

    @property
    def recipe(self) -> Recipe:
        """What the model decides and nobody sets."""
        return RECIPES[self.model]

    @property
    def protocol(self) -> Literal["heldout", "view1"]:
        """`view1` with LFW's lists of View 1, else `heldout`: all people are split."""
        return "view1" if self.lists else "heldout"

    @property
    def max_epochs(self) -> int:
        """The number of epochs to train; with `minutes`, the upper limit."""
        return self.epochs or (MAX_EPOCHS if self.minutes else self._pace().epochs)

    @property
    def first_plan(self) -> int:
        """The number of epochs that are planned before the speed of the first is known."""
        return min(self.max_epochs, self._pace().epochs) if self.minutes else self.max_epochs

    @property
    def length(self) -> list[float | None]:
        """The settings that decide how long to train."""
        return [self.epochs, self.minutes, self.patience]

    def to_toml(self) -> str:
        """Return the settings as TOML, one line per field that has a value."""
        import tomli_w

        return tomli_w.dumps(self.to_table())

    def to_table(self) -> dict[str, Any]:
        """Return the settings that have a value, by name."""
        values = dataclasses.asdict(self)  # `vars` lacks defaults where msgspec built the object
        return {name: value for name, value in values.items() if value is not None}

    def portable(self) -> dict[str, Any]:
        """Return the settings without paths of this machine, for bundles and logs."""
        return {k: v for k, v in self.to_table().items() if k not in ("lists", "init", "cache")}

    def replace(self, **changes: Any) -> "TrainConfig":
        """Return a copy with some fields changed, checked again.

        A new `model` or `init` brings its recipe for the fields that still have their defaults.

        Raises:
            BadConfig: A name is unknown or a value is not allowed.
        """
        init = "" if self.init == self.recipe.starts_from else self.init  # another model's differs
        return from_table({**self.changes(), "model": self.model, "init": init, **changes})

    def changes(self) -> dict[str, Any]:
        """Return the settings that differ from the defaults of their model and `init`."""
        defaults = vars(TrainConfig(model=self.model, init=self.init))
        defaults = {**defaults, "model": TrainConfig.model, "init": TrainConfig.init}
        return {name: value for name, value in vars(self).items() if value != defaults[name]}


def from_table(table: Mapping[str, Any], source: str = "") -> TrainConfig:
    """Build a TrainConfig from plain values; the recipe of the model fills in what is missing.

    Args:
        table: Values by field name.
        source: The file that they come from, for messages.

    Raises:
        BadConfig: Names the source, the field, its value and what is allowed.
    """
    return validate(table, TrainConfig, source)


def load_config(path: Path) -> TrainConfig:
    """Read a TOML file; raise BadConfig with the file's name when it cannot be used."""
    return from_table(read_table(path), str(path))


def read_table(path: Path | None) -> dict[str, Any]:
    """Return the content of a TOML file, unchecked; nothing where no file is given.

    Raises:
        BadConfig: The file cannot be read or is not TOML.
    """
    if path is None:
        return {}
    try:
        return parse_toml(path.read_bytes(), path, BadConfig)
    except OSError as error:
        raise BadConfig(f"{path}: {error.strerror}; choose a TOML file", "config") from None
