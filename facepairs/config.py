"""`TrainConfig`: everything that decides what a training run learns, as one frozen dataclass.

Loaded from TOML, checked as a whole, and printed back as TOML into the run folder, from which
`--resume` reads it.
"""

import dataclasses
import difflib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from facepairs.errors import BadConfig

MODELS = ("siamese", "siamese-conv", "difference", "pixels", "eigenfaces")
PROTOCOLS = ("heldout", "view1")
EMBEDDINGS = ("siamese", "siamese-conv")  # learnt from genuine pairs of distinct people
DEFAULT_EPOCHS = 30
STORES = ("auto", "files", "memory", "tfrecord")
SAMPLERS = ("auto", "article")
LOSSES: dict[str, tuple[str, ...]] = {  # what each can be told
    "in-batch": ("temperature",),
    "supervised": ("temperature",),
    "margin": ("margin",),
    "triplet": ("margin",),
    "triplet-hard": ("margin",),
    "cross-entropy": ("temperature",),
    "cosface": ("temperature", "margin", "singletons"),
    "arcface": ("temperature", "margin", "singletons"),
}
SINGLETONS = ("classes", "negatives", "left-out")


SMALL: dict[str, Any] = {"image_size": 64, "crop_px": 112, "pairs_per_epoch": 12_800}
RECIPES: dict[str, dict[str, Any]] = {  # of models other than TrainConfig's own
    "siamese-conv": {**SMALL, "batch_size": 128, "learning_rate": 2e-3, "several_share": 0.0},
    "difference": {**SMALL, "batch_size": 64},
    "pixels": {**SMALL, "batch_size": 64},
    "eigenfaces": {**SMALL, "batch_size": 64},
}
# … and with `init`: the weights are good already, and few people should move them a little only.
FINE_TUNING: dict[str, Any] = {"learning_rate": 1e-4, "epochs": 2, "pairs_per_epoch": 3_200}


@dataclass(frozen=True)
class TrainConfig:
    """The settings of a run; the comment beside a field is its documentation."""

    model: str = "siamese"  # siamese-conv: learnt from pixels on; difference; pixels; eigenfaces
    protocol: str = "heldout"  # who is held out: a split of the people, or LFW's View 1 lists
    lists: str = ""  # folder of the official LFW lists, for protocol view1
    init: str = ""  # bundle whose weights training starts from, or default: the package's own
    epochs: int = 0  # passes of `pairs_per_epoch`; 0: as many as `minutes` allow, or 30
    minutes: float = 0.0  # plan the epochs to fit in so many minutes of training; 0: no limit
    batch_size: int = 256  # pairs a step
    pairs_per_epoch: int = 6_656  # pairs drawn between two validations
    genuine_share: float = 0.5  # chance that a training pair shows one person
    several_share: float = 0.75  # of a siamese batch: people with several photos; 0: as they come
    sampler: str = "auto"  # the model's own; article: for comparison only, see data/article.py
    loss: str = "in-batch"  # what a siamese model learns from; see models/losses
    temperature: float = 0.1  # cosines are divided by it; where cross-entropy learns it, its start
    margin: float = 0.0  # between partners and others; 0: the loss's own
    singletons: str = "classes"  # people with one photo, to cosface and arcface; or see SINGLETONS
    image_size: int = 128  # side in pixels that the network works at, 64 to 224
    frame_px: int = 250  # the crop is crop_px of every frame_px of the image's shorter side …
    crop_px: int = 128  # … and is stored at crop_px: LFW's face without its surroundings
    augment: float = 1.0  # of shift, scale, turn and light; 0, and siamese always: mirror only
    erase: float = 0.0  # side of a square grayed out in half of the images, as a share; not siamese
    learning_rate: float = 1e-3  # Adam's peak; half an epoch of warm-up, cosine from epoch 2 on
    store: str = "auto"  # where images come from while training
    cache: str = ""  # folder made by `facepairs cache build`, for store tfrecord
    seed: int = 0  # of the split, the pairs, the weights and the augmentation
    calibration_share: float = 0.15  # people set aside for threshold and probability
    test_share: float = 0.15  # people set aside for `evaluate`; protocol view1 needs none
    calibration_pairs: int = 4_000  # pairs of those people, half genuine
    deterministic: bool = False  # let TensorFlow use no operation whose result may vary (on GPUs)
    checkpoint_minutes: float = 5.0  # the longest time from one checkpoint to the next, in minutes
    skip_bad: bool = False  # leave unreadable images out instead of refusing the folder

    def __post_init__(self) -> None:
        self._choice("model", MODELS)
        self._choice("protocol", PROTOCOLS)
        self._choice("store", STORES)
        self._choice("sampler", SAMPLERS)
        self._choice("loss", tuple(LOSSES))
        self._choice("singletons", SINGLETONS)
        self._range("epochs", 0, 100_000)
        self._range("minutes", 0, 100_000)
        self._range("batch_size", 2, 4096)
        self._range("pairs_per_epoch", self.batch_size, 10**9)
        self._range("genuine_share", 0, 1)
        self._range("several_share", 0, 1)
        self._range("temperature", 1e-3, 10)
        self._range("margin", 0, 2)
        self._range("image_size", 64, 224)
        self._range("frame_px", 16, 4096)
        self._range("crop_px", 16, min(self.frame_px, 1024))
        if self.model == "siamese" and (self.image_size < 96 or self.image_size % 16):
            raise BadConfig(
                f"image_size is {self.image_size}; siamese needs a multiple of 16 from 96 on"
            )
        self._range("augment", 0, 2)
        self._range("erase", 0, 1)
        self._range("learning_rate", 1e-8, 10)
        self._range("seed", 0, 2**31 - 1)
        self._range("calibration_share", 0.01, 0.9)
        self._range("test_share", 0, 0.9)
        self._range("calibration_pairs", 40, 10**7)
        self._range("checkpoint_minutes", 0, 100_000)
        if self.calibration_share + self.test_share > 0.95:
            raise BadConfig("calibration_share and test_share leave nobody to train on; lower one")
        if (self.store == "tfrecord") != bool(self.cache):
            raise BadConfig(
                "store tfrecord and a cache go together: --store tfrecord --cache DIR, with DIR "
                "made by: facepairs cache build DATA DIR --pairs N"
            )
        if self.model == "siamese" and self.cache:
            raise BadConfig(
                "siamese learns from descriptors of each image, and a cache of pairs has none; use "
                "--store files or memory, or --model siamese-conv"
            )
        if self.sampler == "article" and (self.model, self.cache) != ("difference", ""):
            raise BadConfig(
                "sampler article is for comparison only: it goes with model difference and no cache"
            )
        self._check_loss()

    def _check_loss(self) -> None:
        changed = [name for name in self.loss_settings if self._changed(name)]
        if changed and self.model not in EMBEDDINGS:
            users, value = " and ".join(EMBEDDINGS), getattr(self, changed[0])
            raise BadConfig(
                f"{changed[0]} {value} is for model {users}, not {self.model}; leave it out"
            )
        for name in changed:
            if name != "loss" and name not in LOSSES[self.loss]:
                users = ", ".join(loss for loss, names in LOSSES.items() if name in names)
                raise BadConfig(f"loss {self.loss} has no {name}; leave it out or use {users}")
        if self.cache and "singletons" in LOSSES[self.loss]:
            raise BadConfig(
                f"loss {self.loss} must know who each image shows, and a cache of pairs does not "
                "say; use --store files or memory, or another loss"
            )

    def _changed(self, name: str) -> bool:
        """Whether a setting is another than the model's recipe or the default has it."""
        default = RECIPES.get(self.model, {}).get(name, getattr(TrainConfig, name))
        return bool(getattr(self, name) != default)

    @property
    def loss_settings(self) -> dict[str, Any]:
        """The loss and what it is told, as `build_network` takes them."""
        names = ("loss", "temperature", "margin", "singletons")
        return {name: getattr(self, name) for name in names}

    @property
    def most_epochs(self) -> int:
        """How many epochs to train, or with `minutes` at most."""
        return self.epochs or (100_000 if self.minutes else DEFAULT_EPOCHS)

    def _choice(self, name: str, allowed: tuple[str, ...]) -> None:
        if getattr(self, name) not in allowed:
            value = getattr(self, name)
            raise BadConfig(f"{name} is {value!r}; use one of {', '.join(allowed)}")

    def _range(self, name: str, least: float, most: float) -> None:
        value = getattr(self, name)
        if not least <= value <= most:  # NaN fails too
            raise BadConfig(f"{name} is {value}; use a number from {least:g} to {most:g}")

    def to_toml(self) -> str:
        """Print as TOML, one line a field."""
        import tomli_w

        return tomli_w.dumps(dataclasses.asdict(self))

    def replace(self, **changes: Any) -> "TrainConfig":
        """Give a copy with some fields changed, checked again; unknown names raise BadConfig."""
        table = dataclasses.asdict(self)
        if {"model", "init"} & changes.keys():  # they bring a recipe for what is still default
            fixed = {"model": self.model, "init": self.init}
            defaults = dataclasses.asdict(from_table(fixed, "defaults"))
            table = {name: value for name, value in table.items() if value != defaults[name]}
            table |= fixed
        return from_table({**table, **changes}, "options")


def from_table(table: dict[str, Any], source: str) -> TrainConfig:
    """Build from plain values; raise BadConfig that names the source, the key and what fits."""
    types = {field.name: type(field.default) for field in dataclasses.fields(TrainConfig)}
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name not in types:
            near = difflib.get_close_matches(name, types, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(types)}"
            raise BadConfig(f"{source}: unknown setting {name!r}; {hint}")
        wanted = types[name]
        plain = float(value) if wanted is float and type(value) is int else value
        if type(plain) is not wanted:
            raise BadConfig(f"{source}: {name} is {value!r}; it must be of type {wanted.__name__}")
        values[name] = plain
    recipe = dict(RECIPES.get(values.get("model", TrainConfig.model), {}))
    if values.get("init"):
        recipe |= FINE_TUNING
    return TrainConfig(**{**recipe, **values})


def load_config(path: Path) -> TrainConfig:
    """Read a TOML file; raise BadConfig with the file's name where it cannot be used."""
    return from_table(read_table(path), str(path))


def read_table(path: Path) -> dict[str, Any]:
    """Read a TOML file's settings as they stand there, unchecked."""
    try:
        with open(path, "rb") as handle:
            return tomllib.load(handle)
    except OSError as error:
        raise BadConfig(f"{path}: {error.strerror}; give a TOML file with --config") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(f"{path}: not TOML: {error}") from None
