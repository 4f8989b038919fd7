"""The settings of a training: `TrainConfig`, as they are given, and `Settings`, complete.

They are loaded from TOML, resolved once, and written as TOML into the run folder, from which a
resumed run reads them. `settings.toml.template` says what each means; what users never set is in
`facepairs.recipes`.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from facepairs.bundles.bundle import DEFAULT, MODEL, Bundle
from facepairs.choices import Align, Loss
from facepairs.errors import BadBundle, BadConfig
from facepairs.recipes import RECIPES, Model, Pace, Recipe
from facepairs.support.validation import check_fields, parse_toml, validate

MAX_EPOCHS = 100_000

Epochs = Annotated[int, Meta(ge=1, le=MAX_EPOCHS)]
Minutes = Annotated[float, Meta(ge=0.01, le=100_000)]
TEMPLATE = Path(__file__).with_name("settings.toml.template")  # each setting with its meaning


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """The settings of a training run; `docs/reference/settings.md` explains each.

    None stands for what is not given: the model, or the bundle that training starts from, decides.

    Examples:
        >>> TrainConfig(model="difference", minutes=10).resolve().batch_size
        128

    Raises:
        BadConfig: A value is of the wrong type or outside its range.
    """

    model: Model | None = None
    init: str | None = None
    loss: Loss = "in-batch"
    lists: str | None = None
    epochs: Epochs | None = None
    minutes: Minutes | None = None
    batch_size: Annotated[int, Meta(ge=2, le=4096)] | None = None
    pairs_per_epoch: Annotated[int, Meta(ge=2, le=10**9)] | None = None
    learning_rate: Annotated[float, Meta(ge=1e-8, le=10)] | None = None
    align: Align | None = None
    pair_cache: str | None = None
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    calibration_share: Annotated[float, Meta(ge=0.01, le=0.9)] = 0.15
    test_share: Annotated[float, Meta(ge=0, le=0.9)] = 0.15
    validation_share: Annotated[float, Meta(ge=0, le=0.5)] = 0.04
    skip_bad: bool = False
    tensorboard_images: bool = True
    mixed_precision: bool = False

    def __post_init__(self) -> None:
        check_fields(self)

    def resolve(self) -> "Settings":
        """Return the settings with everything that was not given.

        Raises:
            BadBundle: Training cannot start from the bundle of `init`.
            BadConfig: Two settings contradict each other, or one contradicts the bundle.
        """
        start = _open_start(self.init) if self.init else None
        model = (_model_of(start) if start else None) or self.model or "resnet"
        recipe = RECIPES[model]
        if start is None and recipe.starts_from:
            start = _open_start(recipe.starts_from)
        pace = recipe.fine_tuning if start else recipe.from_scratch
        decided: dict[str, Any] = {
            "model": model,
            "batch_size": recipe.batch_size,
            "pairs_per_epoch": pace.pairs_per_epoch,
            "learning_rate": pace.learning_rate,
            "align": "landmarks",
            "epochs": pace.epochs if start else None,
        }
        if start:
            decided["align"] = "landmarks" if start.manifest.aligned else "none"
            for name in ("model", "align"):
                self._check_fits(name, decided[name])
            # An absolute path, so that the run can be resumed from any working directory.
            init = self.init or recipe.starts_from
            decided["init"] = init if init == DEFAULT else str(Path(init).resolve())
        given = {name: value for name, value in vars(self).items() if value is not None}
        given.pop("init", None)
        return Settings(**{**decided, **given}, start=start)

    def _check_fits(self, name: str, needed: str) -> None:
        value = getattr(self, name)
        if value not in (None, needed):
            raise BadConfig(
                f"{name} is {value!r}, but the weights of the bundle {self.init or DEFAULT} need "
                f"{needed!r}; leave {name} out, or train without init",
                name,
                "init",
            )

    def given(self) -> dict[str, Any]:
        """Return the settings that differ from their defaults."""
        defaults = vars(TrainConfig())
        return {name: value for name, value in self.to_table().items() if value != defaults[name]}

    def replace(self, **changes: Any) -> "TrainConfig":
        """Return a copy with some fields changed, checked again.

        Raises:
            BadConfig: A name is unknown or a value is not allowed.
        """
        return validate({**self.to_table(), **changes}, TrainConfig)

    def to_toml(self) -> str:
        """Return the settings as TOML, one line per field that has a value."""
        import tomli_w

        return tomli_w.dumps(self.to_table())

    def to_table(self) -> dict[str, Any]:
        """Return the settings that have a value, by name."""
        names = (field.name for field in dataclasses.fields(TrainConfig))
        values = ((name, getattr(self, name)) for name in names)
        return {name: value for name, value in values if value is not None}


@dataclass(frozen=True, kw_only=True)
class Settings(TrainConfig):
    """Complete settings, from `TrainConfig.resolve`.

    Attributes:
        start: The bundle whose weights training starts from, opened.
    """

    model: Model
    batch_size: int
    pairs_per_epoch: int
    learning_rate: float
    align: Align
    start: Bundle | None = dataclasses.field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if contradiction := next(self._contradictions(), ""):
            raise BadConfig(contradiction)

    def _contradictions(self) -> Iterator[str]:
        """Say which settings do not go together."""
        recipe, model = self.recipe, self.model
        if self.pairs_per_epoch < self.batch_size:
            yield (
                f"pairs_per_epoch is {self.pairs_per_epoch}; use at least batch_size, "
                f"{self.batch_size}"
            )
        if recipe.points and self.align == "none":
            yield f"align is none; {model} needs aligned faces, siamese does not"
        if self.calibration_share + self.test_share + self.validation_share > 0.95:
            yield "calibration_share, test_share and validation_share leave no people to train on"
        if not recipe.embeds and self.loss != "in-batch":
            yield f"loss {self.loss} needs a model that embeds, not {model}"
        if self.mixed_precision and recipe.precomputes:
            yield f"{model} computes in float32; leave mixed_precision out"
        if self.pair_cache and not recipe.takes_pairs:
            yield (
                f"{model} does not train from a cache of both kinds of pairs; leave the cache out, "
                "or use model difference"
            )

    def resolve(self) -> "Settings":
        return self

    @property
    def recipe(self) -> Recipe:
        """The values that the model determines."""
        return RECIPES[self.model]

    @property
    def protocol(self) -> Literal["heldout", "view1"]:
        """`view1` with LFW's lists of View 1, else `heldout`: all people are split."""
        return "view1" if self.lists else "heldout"

    @property
    def _pace(self) -> Pace:
        return self.recipe.fine_tuning if self.init else self.recipe.from_scratch

    @property
    def max_epochs(self) -> int:
        """The number of epochs to train; with `minutes`, the upper limit."""
        return self.epochs or (MAX_EPOCHS if self.minutes else self._pace.epochs)

    @property
    def first_plan(self) -> int:
        """The number of epochs that are planned before the speed of the first is known."""
        return min(self.max_epochs, self._pace.epochs) if self.minutes else self.max_epochs

    @property
    def length(self) -> list[float | None]:
        """The settings that decide how long to train."""
        return [self.epochs, self.minutes]

    def portable(self) -> dict[str, Any]:
        """Return the settings without paths of this machine, for bundles and logs."""
        paths = ("lists", "init", "pair_cache")
        return {name: value for name, value in self.to_table().items() if name not in paths}


def _open_start(init: str) -> Bundle:
    """Open a bundle to start from; raise BadBundle if it has no model to train further."""
    bundle = Bundle.open(init)
    if MODEL not in bundle.manifest.files:
        raise BadBundle(
            f"{bundle.folder}: has no {MODEL}, so training cannot start from it; give a bundle "
            "made by facepairs train"
        )
    recipe = RECIPES.get(_model_of(bundle))
    if (
        recipe is None
        or recipe.crop_spec != bundle.manifest.framing
        or recipe.image_size != bundle.manifest.network.image_px
    ):
        raise BadBundle(
            f"{bundle.folder}: this version cannot train its network or its crops; give another "
            "bundle"
        )
    return bundle


def _model_of(bundle: Bundle) -> Model:
    model: Model = bundle.manifest.model  # type: ignore[assignment]  # `RECIPES` says whether it is one
    return model


def load_config(path: Path) -> TrainConfig:
    """Read a TOML file; raise BadConfig with the file's name when it cannot be used."""
    return validate(read_table(path), TrainConfig, str(path))


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
