"""`TrainConfig`: every setting that decides what a training run learns, as one frozen dataclass.

It is loaded from TOML, checked as a whole, and written as TOML into the run folder, from which
`--resume` reads it.
"""

import dataclasses
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from facepairs.choices import Align, Loss, Member, Model, Protocol, Sampler, Singletons, Store
from facepairs.errors import BadConfig
from facepairs.images.crop import CropSpec
from facepairs.support.validation import check_fields, parse_toml, validate

FISHER = ("siamese", "siamese-small")
EMBEDDINGS = (*FISHER, "siamese-conv")  # models that learn from genuine pairs of distinct people
DEFAULT_EPOCHS, FISHER_EPOCHS = 30, 20  # where none are given
MAX_EPOCHS = 100_000
LOSSES: dict[Loss, tuple[str, ...]] = {  # the settings that each loss reads
    "in-batch": ("temperature",),
    "supervised": ("temperature",),
    "margin": ("margin",),
    "triplet": ("margin",),
    "triplet-hard": ("margin",),
    "cross-entropy": ("temperature",),
    "cosface": ("temperature", "margin", "singletons"),
    "arcface": ("temperature", "margin", "singletons"),
}

SMALL: dict[str, Any] = {
    "image_size": 64,
    "crop_px": 112,
    "pairs_per_epoch": 12_800,
    "learning_rate": 1e-3,
}
# Settings that a model decides where they are not given.
SIAMESE: dict[str, Any] = {
    "batch_size": 256,
    "pairs_per_epoch": 6_656,
    "several_share": 0.75,
    "image_size": 128,
    "members": ("face", "eyes", "lines"),
    "cohort": 256,
    "crop_px": 128,
    "learning_rate": 2e-3,
    "validation_share": 0.04,
}
RECIPES: dict[str, dict[str, Any]] = {  # in which other models differ
    "siamese-small": {"members": ("face",), "cohort": 0},
    "siamese-conv": {**SMALL, "batch_size": 128, "learning_rate": 2e-3, "several_share": "natural"},
    "difference": {
        **SMALL,
        "crop_px": 128,
        "batch_size": 128,
        "pairs_per_epoch": 25_600,
        "learning_rate": 2e-3,
    },
    # Without epochs there is no best one to choose.
    "pixels": {**SMALL, "batch_size": 64, "validation_share": 0.0},
    "eigenfaces": {**SMALL, "batch_size": 64, "validation_share": 0.0},
}
# The same with `init`: the weights are trained already, and few people should change them little.
FINE_TUNING: dict[str, Any] = {"learning_rate": 1e-4, "epochs": 2, "pairs_per_epoch": 3_200}

Share = Annotated[float, Meta(ge=0, le=1)]
Members = Annotated[
    tuple[Member, ...],
    Meta(
        min_length=1,
        max_length=4,
        description='a list of 1 to 4 of "face", "centre", "eyes" and "lines"',
    ),
]
Epochs = Annotated[int, Meta(ge=1, le=MAX_EPOCHS)]
Minutes = Annotated[float, Meta(ge=0.01, le=100_000)]
BY_MODEL: Any = None  # the default of a setting that the model decides


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """The settings of a training run; what is not given is decided by the recipe of the model.

    Examples:
        >>> TrainConfig(model="difference", minutes=10).image_size
        64

    Attributes:
        model: `siamese` (local descriptors, Fisher vectors and a trained projection, several times
            in one network), `siamese-small` (once: smaller and faster, not as accurate),
            `siamese-conv` (a convolutional network trained from pixels), `difference` (the
            tutorials' network), or the baselines `pixels` and `eigenfaces`.
        protocol: `heldout` splits the people; `view1` uses LFW's lists of View 1.
        lists: Folder of the official LFW lists, for protocol `view1`.
        init: Bundle whose weights training starts from, or `default` for the shipped one.
        epochs: Epochs to train, with `minutes` at most; if not given, as many as `minutes` allow,
            or 20 for `siamese` and `siamese-small`, 30 for the others.
        minutes: Wall time in minutes of the whole command, preparation and export included, that
            the epochs are planned to fit into; if not given, there is no limit.
        patience: Stop when this many epochs brought no better validation AUC; if not given, never.
        batch_size: Pairs per step.
        pairs_per_epoch: Pairs between two validations. Where a batch would need more people than
            there are, it is smaller; `siamese` then keeps the number of steps if this is not given.
        genuine_share: Probability that a training pair is genuine.
        several_share: Share of a siamese batch whose people have several photos, above 0;
            `natural`: their share among the people.
        sampler: `auto`: the model's own; `article`: for comparison only, see `data/article.py`.
        loss: What a siamese model minimises, see `models/losses`.
        temperature: Cosines are divided by it; a start value where `cross-entropy` learns it.
        margin: Margin between genuine and impostor scores; if not given, the loss's default.
        singletons: How `cosface` and `arcface` use people with one photo.
        image_size: Side of the network's input in pixels.
        members: For siamese: what each member of the network sees: the `face` (the whole image),
            its `centre`, the `eyes` and the nose, or the `lines` of the centre, by second
            derivatives. Each has its own mixture and projection.
        cohort: For siamese: how many typical faces of the training people lower the scores of
            photos that are close to them; 0: none, and none where there are too few people.
        align: `landmarks` finds the face in every photo and aligns it; `none` takes photos as they
            are, already framed as LFW's are.
        frame_px: The crop is `crop_px` of every `frame_px` of the frame's side.
        crop_px: Side of the stored crop in pixels.
        augment: Strength of random shift, scale, rotation and light; 0, and siamese always: only
            mirroring.
        erase: Side of a square that is grayed out in half of the images, as a share of the image;
            not for siamese.
        learning_rate: Adam's peak rate; half an epoch of warm-up, cosine decay from epoch 2 on.
        store: Where images come from during training.
        cache: Folder made by `facepairs cache build`, for store `tfrecord`.
        seed: Seed of the split, the pairs, the weights and the augmentation.
        calibration_share: Share of the people held out to set threshold and calibration.
        test_share: Share of the people held out for `evaluate`; protocol `view1` needs none.
        validation_share: Share of the people set aside to choose the best epoch, where enough
            people are there (`data.split`); 0: the last epoch is kept.
        calibration_pairs: Pairs of the calibration people, half of them genuine.
        deterministic: Refuse TensorFlow operations whose results may vary (on GPUs).
        checkpoint_minutes: The longest time between two checkpoints, in minutes; 0: every step.
        skip_bad: Leave out photos that cannot be read or show no face, instead of refusing the
            folder.

    Raises:
        BadConfig: A value is of the wrong type or outside its range, or two values contradict
            each other.
    """

    model: Model = "siamese"
    protocol: Protocol = "heldout"
    lists: str = ""
    init: str = ""
    epochs: Epochs | None = None
    minutes: Minutes | None = None
    patience: Epochs | None = None
    batch_size: Annotated[int, Meta(ge=2, le=4096)] = BY_MODEL
    pairs_per_epoch: Annotated[int, Meta(ge=2, le=10**9)] = BY_MODEL
    genuine_share: Share = 0.5
    several_share: Annotated[float, Meta(gt=0, le=1)] | Literal["natural"] = BY_MODEL
    sampler: Sampler = "auto"
    loss: Loss = "in-batch"
    temperature: Annotated[float, Meta(ge=1e-3, le=10)] = 0.1
    margin: Annotated[float, Meta(ge=0, le=2)] | None = None
    singletons: Singletons = "classes"
    image_size: Annotated[int, Meta(ge=64, le=224)] = BY_MODEL
    members: Members = BY_MODEL
    cohort: Annotated[int, Meta(ge=0, le=4096)] = BY_MODEL
    align: Align = "landmarks"
    frame_px: Annotated[int, Meta(ge=16, le=4096)] = 250
    crop_px: Annotated[int, Meta(ge=16, le=1024)] = BY_MODEL
    augment: Annotated[float, Meta(ge=0, le=2)] = 1.0
    erase: Share = 0.0
    learning_rate: Annotated[float, Meta(ge=1e-8, le=10)] = BY_MODEL
    store: Store = "auto"
    cache: str = ""
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    calibration_share: Annotated[float, Meta(ge=0.01, le=0.9)] = 0.15
    test_share: Annotated[float, Meta(ge=0, le=0.9)] = 0.15
    validation_share: Annotated[float, Meta(ge=0, le=0.5)] = BY_MODEL
    calibration_pairs: Annotated[int, Meta(ge=40, le=10**7)] = 4_000
    deterministic: bool = False
    checkpoint_minutes: Annotated[float, Meta(ge=0, le=100_000)] = 5.0
    skip_bad: bool = False

    def __post_init__(self) -> None:
        recipe = {**SIAMESE, **RECIPES.get(self.model, {}), **(FINE_TUNING if self.init else {})}
        for name, value in recipe.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        for name, value in vars(self).items():
            if isinstance(value, np.generic):  # of a notebook's calculation
                object.__setattr__(self, name, value.item())
        check_fields(self)
        self._check_range("pairs_per_epoch", self.batch_size, 10**9)
        self._check_range("crop_px", 16, min(self.frame_px, 1024))
        if self.model in FISHER and (self.image_size < 96 or self.image_size % 16):
            raise BadConfig(
                f"image_size is {self.image_size}; {self.model} needs a multiple of 16 from 96 on"
            )
        if self.calibration_share + self.test_share + self.validation_share > 0.95:
            raise BadConfig(
                "calibration_share, test_share and validation_share leave nobody to train on; "
                "lower one"
            )
        if (self.store == "tfrecord") != bool(self.cache):
            raise BadConfig(
                "store tfrecord and a cache go together: --store tfrecord --cache DIR, with DIR "
                "made by: facepairs cache build DATA --out DIR --pair-count N"
            )
        if self.model in FISHER and self.cache:
            raise BadConfig(
                f"{self.model} needs each image by itself, and a cache holds pairs only; use "
                "--store files or memory, or --model siamese-conv"
            )
        if self.sampler == "article" and (self.model, self.cache) != ("difference", ""):
            raise BadConfig(
                "sampler article is for comparison only: use it with model difference and no cache"
            )
        self._check_loss()

    def _check_loss(self) -> None:
        changed = [name for name in self.loss_settings if self._changed(name)]
        if changed and self.model not in EMBEDDINGS:
            users, value = " or ".join(EMBEDDINGS), getattr(self, changed[0])
            raise BadConfig(
                f"{changed[0]} {value} is for model {users}, not {self.model}; leave it out"
            )
        for name in changed:
            if name != "loss" and name not in LOSSES[self.loss]:
                users = ", ".join(loss for loss, names in LOSSES.items() if name in names)
                raise BadConfig(f"loss {self.loss} has no {name}; leave it out or use {users}")
        if self.cache and "singletons" in LOSSES[self.loss]:
            raise BadConfig(
                f"loss {self.loss} needs the person of each image, and a cache of pairs does not "
                "hold it; use --store files or memory, or another loss"
            )

    def _changed(self, name: str) -> bool:
        """Return whether a setting differs from its default."""
        return bool(getattr(self, name) != getattr(TrainConfig, name))

    @property
    def loss_settings(self) -> dict[str, Any]:
        """The loss and its settings, as keyword arguments of `build_network`."""
        names = ("loss", "temperature", "margin", "singletons")
        return {name: getattr(self, name) for name in names}

    @property
    def crop_spec(self) -> CropSpec:
        """The square of a frame that the network sees."""
        return CropSpec(self.frame_px, self.crop_px)

    @property
    def max_epochs(self) -> int:
        """The number of epochs to train; with `minutes`, the upper limit."""
        return self.epochs or (MAX_EPOCHS if self.minutes else self.default_epochs)

    @property
    def default_epochs(self) -> int:
        """The number of epochs to train where none is given."""
        return FISHER_EPOCHS if self.model in FISHER else DEFAULT_EPOCHS

    @property
    def length(self) -> list[float | None]:
        """The settings that decide how long to train."""
        return [self.epochs, self.minutes, self.patience]

    def _check_range(self, name: str, least: int, most: int) -> None:
        """Check a range that depends on another setting."""
        value = getattr(self, name)
        if not least <= value <= most:
            raise BadConfig(f"{name} is {value}; use a number from {least:g} to {most:g}")

    def to_toml(self) -> str:
        """Return the settings as TOML, one line per field that has a value."""
        import tomli_w

        return tomli_w.dumps(self.to_table())

    def to_commented_toml(self) -> str:
        """Return all settings as TOML with their meanings; one without a value is commented out."""
        import tomli_w

        table, meanings = self.to_table(), field_meanings()
        blocks = []
        for field in dataclasses.fields(self):
            lines = textwrap.wrap(meanings[field.name], 96, break_on_hyphens=False)
            name = field.name
            value = tomli_w.dumps({name: table[name]}) if name in table else f"# {name} =\n"
            blocks.append("".join(f"# {line}\n" for line in lines) + value)
        return "\n".join(blocks)

    def to_table(self) -> dict[str, Any]:
        """Return the settings that have a value, by name."""
        # As TOML and JSON have it.
        table = {**dataclasses.asdict(self), "members": list(self.members)}
        return {name: value for name, value in table.items() if value is not None}

    def replace(self, **changes: Any) -> "TrainConfig":
        """Return a copy with some fields changed, checked again.

        A new `model` or `init` brings its recipe for the fields that still have their defaults.

        Raises:
            BadConfig: A name is unknown or a value is not allowed.
        """
        table = dataclasses.asdict(self)
        if {"model", "init"} & changes.keys():
            table = {"model": self.model, "init": self.init, **self.changes()}
        return from_table({**table, **changes})

    def changes(self) -> dict[str, Any]:
        """Return the settings that differ from the defaults of their model and `init`."""
        defaults = dataclasses.asdict(from_table({"model": self.model, "init": self.init}))
        defaults |= {"model": TrainConfig.model, "init": ""}
        table = dataclasses.asdict(self)
        return {name: value for name, value in table.items() if value != defaults[name]}


def field_meanings() -> dict[str, str]:
    """Return the text of each field of TrainConfig in its docstring."""
    section = re.split(
        r"^ *(?:Attributes|Raises):\n", TrainConfig.__doc__ or "", flags=re.MULTILINE
    )
    entries = re.findall(r"^ {8}(\w+): (.*(?:\n {9,}.*)*)", section[1], re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}


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
