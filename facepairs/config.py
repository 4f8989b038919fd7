"""`TrainConfig`: every setting that decides what a training run learns, as one frozen dataclass.

It is loaded from TOML, checked as a whole, and written as TOML into the run folder, from which
`--resume` reads it. What nobody sets is in `facepairs.recipes`.
"""

import dataclasses
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from facepairs.choices import Align, Loss, Model
from facepairs.errors import BadConfig
from facepairs.recipes import RECIPES, Pace, Recipe
from facepairs.support.validation import check_fields, parse_toml, validate

MAX_EPOCHS = 100_000
IDENTITY_LOSSES: tuple[Loss, ...] = ("cosface", "arcface")  # they need the person of each image

Epochs = Annotated[int, Meta(ge=1, le=MAX_EPOCHS)]
Minutes = Annotated[float, Meta(ge=0.01, le=100_000)]
BY_MODEL = 0  # stands for the value of the model's recipe


def _means(text: str) -> dict[str, str]:
    return {"meaning": text}


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

    model: Model = field(
        default="resnet",
        metadata=_means(
            "`resnet` (the included network, trained further), `siamese` (local descriptors, "
            "Fisher vectors and a trained projection, several times in one network; learns from "
            "your photos alone), `siamese-small` (once: smaller and faster, not as accurate), "
            "`siamese-conv` (a convolutional network trained from pixels), `difference` (the "
            "tutorials' network) or `difference-article` (the same, with the pairs of an article, "
            "for comparison)."
        ),
    )
    init: str = field(
        default="",
        metadata=_means(
            "Bundle whose weights training starts from, or `default` for the included one, which "
            "`resnet` starts from anyway."
        ),
    )
    loss: Loss = field(
        default="in-batch",
        metadata=_means("What a siamese model minimises."),
    )
    lists: str = field(
        default="",
        metadata=_means(
            "Folder of LFW's official lists: train on the people of View 1 instead of splitting "
            "all people."
        ),
    )
    epochs: Epochs | None = field(
        default=None,
        metadata=_means(
            "Epochs to train, with `minutes` at most; if not given, as many as `minutes` allow, "
            "or those of the model."
        ),
    )
    minutes: Minutes | None = field(
        default=None,
        metadata=_means(
            "Wall time in minutes of the whole command, preparation and export included, that the "
            "epochs are planned to fit into; if not given, there is no limit."
        ),
    )
    patience: Epochs | None = field(
        default=None,
        metadata=_means(
            "Stop when this many epochs brought no better validation AUC; if not given, never."
        ),
    )
    batch_size: Annotated[int, Meta(ge=2, le=4096)] = field(
        default=BY_MODEL, metadata=_means("Pairs per step.")
    )
    pairs_per_epoch: Annotated[int, Meta(ge=2, le=10**9)] = field(
        default=BY_MODEL,
        metadata=_means(
            "Pairs between two validations. Where a batch would need more people than there are, "
            "it is smaller; `siamese` then keeps the number of steps if this is not given."
        ),
    )
    learning_rate: Annotated[float, Meta(ge=1e-8, le=10)] = field(
        default=BY_MODEL,
        metadata=_means(
            "Adam's peak rate; half an epoch of warm-up, cosine decay from epoch 2 on."
        ),
    )
    image_size: Annotated[int, Meta(ge=64, le=224)] = field(
        default=BY_MODEL, metadata=_means("Side of the network's input in pixels.")
    )
    align: Align = field(
        default="landmarks",
        metadata=_means(
            "`landmarks` finds the face in every photo and aligns it; `none` takes photos as they "
            "are, already framed as LFW's are."
        ),
    )
    cache: str = field(
        default="",
        metadata=_means(
            "Folder made by `facepairs cache build`: train on its pairs instead of drawing them."
        ),
    )
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1)] = field(
        default=0,
        metadata=_means("Seed of the split, the pairs, the weights and the augmentation."),
    )
    calibration_share: Annotated[float, Meta(ge=0.01, le=0.9)] = field(
        default=0.15,
        metadata=_means("Share of the people held out to set threshold and calibration."),
    )
    test_share: Annotated[float, Meta(ge=0, le=0.9)] = field(
        default=0.15,
        metadata=_means("Share of the people held out for `evaluate`; View 1 needs none."),
    )
    validation_share: Annotated[float, Meta(ge=0, le=0.5)] = field(
        default=0.04,
        metadata=_means(
            "Share of the people set aside to choose the best epoch, where enough people are "
            "there; 0: the last epoch is kept, or with `init` the start where it is no worse."
        ),
    )
    skip_bad: bool = field(
        default=False,
        metadata=_means(
            "Leave out photos that cannot be read or show no face, instead of refusing the folder."
        ),
    )

    def __post_init__(self) -> None:
        if self.model in RECIPES:  # else `check_fields` refuses it
            if not self.init:
                object.__setattr__(self, "init", self.recipe.starts_from)
            self._fill_in(self.recipe, self._pace())
        for name, value in vars(self).items():
            if isinstance(value, np.generic):  # of a notebook's calculation
                object.__setattr__(self, name, value.item())
        check_fields(self)
        if self.pairs_per_epoch < self.batch_size:
            raise BadConfig(
                f"pairs_per_epoch is {self.pairs_per_epoch}; use at least batch_size, "
                f"{self.batch_size}"
            )
        if self.recipe.precomputes and (self.image_size < 96 or self.image_size % 16):
            raise BadConfig(
                f"image_size is {self.image_size}; {self.model} needs a multiple of 16 from 96 on"
            )
        if self.recipe.points and self.image_size != self.recipe.image_size:
            raise BadConfig(
                f"image_size is {self.image_size}; {self.model} needs {self.recipe.image_size}"
            )
        if self.recipe.points and self.align == "none":
            raise BadConfig(
                f"align is none, but {self.model} needs aligned faces; use landmarks, or model "
                "siamese"
            )
        if self.calibration_share + self.test_share + self.validation_share > 0.95:
            raise BadConfig(
                "calibration_share, test_share and validation_share leave nobody to train on; "
                "lower one"
            )
        if not self.recipe.embeds and self.loss != "in-batch":
            raise BadConfig(f"loss {self.loss} is for siamese models, not {self.model}")
        if self.cache:
            self._check_cache()

    def _pace(self) -> Pace:
        return self.recipe.fine_tuning if self.init else self.recipe.from_scratch

    def _fill_in(self, recipe: Recipe, pace: Pace) -> None:
        """Set what the model decides and was not given."""
        decided = {
            "batch_size": recipe.batch_size,
            "image_size": recipe.image_size,
            "pairs_per_epoch": pace.pairs_per_epoch,
            "learning_rate": pace.learning_rate,
        }
        for name, value in decided.items():
            if getattr(self, name) == BY_MODEL:
                object.__setattr__(self, name, value)
        if self.init and self.epochs is None:
            object.__setattr__(self, "epochs", pace.epochs)

    def _check_cache(self) -> None:
        if self.recipe.precomputes:
            raise BadConfig(
                f"{self.model} needs each image by itself, and a cache holds pairs only; leave the "
                "cache out or use model siamese-conv"
            )
        if self.recipe.article:
            raise BadConfig(f"{self.model} draws its own pairs; leave the cache out")
        if self.loss in IDENTITY_LOSSES:
            raise BadConfig(
                f"loss {self.loss} needs the person of each image, and a cache of pairs does not "
                "hold it; leave the cache out or use another loss"
            )

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

    def to_commented_toml(self) -> str:
        """Return all settings as TOML with their meanings; one without a value is commented out."""
        import tomli_w

        table, blocks = self.to_table(), []
        for setting in dataclasses.fields(self):
            name = setting.name
            lines = textwrap.wrap(setting.metadata["meaning"], 96, break_on_hyphens=False)
            value = tomli_w.dumps({name: table[name]}) if name in table else f"# {name} =\n"
            blocks.append("".join(f"# {line}\n" for line in lines) + value)
        return "\n".join(blocks)

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
    for name, value in table.items():
        if isinstance(value, Mapping) and name not in TrainConfig.__dataclass_fields__:
            where = f"{source}: " if source else ""
            raise BadConfig(f"{where}write its settings without the table [{name}]")
    return validate(table, TrainConfig, source)


def load_config(path: Path) -> TrainConfig:
    """Read a TOML file; raise BadConfig with the file's name when it cannot be used."""
    return from_table(read_table(path), str(path))


def read_table(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file, unchecked.

    Raises:
        BadConfig: The file cannot be read or is not TOML.
    """
    try:
        return parse_toml(path.read_bytes(), path, BadConfig)
    except OSError as error:
        raise BadConfig(f"{path}: {error.strerror}; choose a TOML file with --config") from None
