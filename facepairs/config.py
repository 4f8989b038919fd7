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

MODELS = ("siamese", "difference", "pixels")
PROTOCOLS = ("heldout", "view1")
DEFAULT_EPOCHS = 30
STORES = ("auto", "files", "memory", "tfrecord")


RECIPES: dict[str, dict[str, Any]] = {  # what a model is trained with unless told otherwise
    "siamese": {"batch_size": 128, "learning_rate": 2e-3},
}


@dataclass(frozen=True)
class TrainConfig:
    """The settings of a run; the comment beside a field is its documentation."""

    model: str = "difference"  # siamese: one tower for both; difference; pixels: no weights
    protocol: str = "heldout"  # who is held out: a split of the people, or LFW's View 1 lists
    lists: str = ""  # folder of the official LFW lists, for protocol view1
    epochs: int = 0  # passes of `pairs_per_epoch`; 0: as many as `minutes` allow, or 30
    minutes: float = 0.0  # plan the epochs to fit in so many minutes of training; 0: no limit
    batch_size: int = 64  # pairs a step
    pairs_per_epoch: int = 12_800  # pairs drawn between two validations
    genuine_share: float = 0.5  # chance that a training pair shows one person
    image_size: int = 64  # side in pixels that the network works at, 64 to 224
    frame_px: int = 250  # the crop is crop_px of every frame_px of the image's shorter side …
    crop_px: int = 112  # … and is stored at crop_px: LFW's face without its surroundings
    augment: float = 1.0  # strength of random shift, scale, rotation and light; 0: mirror only
    erase: float = 0.0  # side of a square grayed out in half of the training images, as a share
    learning_rate: float = 1e-3  # Adam's peak; half an epoch of warm-up, cosine from epoch 2 on
    store: str = "auto"  # where images come from while training
    cache: str = ""  # folder made by `facepairs cache build`, for store tfrecord
    seed: int = 0  # of the split, the pairs, the weights and the augmentation
    calibration_share: float = 0.15  # people set aside for threshold and probability
    test_share: float = 0.15  # people set aside for `evaluate`; protocol view1 needs none
    calibration_pairs: int = 4_000  # pairs of those people, half genuine
    skip_bad: bool = False  # leave unreadable images out instead of refusing the folder

    def __post_init__(self) -> None:
        self._choice("model", MODELS)
        self._choice("protocol", PROTOCOLS)
        self._choice("store", STORES)
        self._range("epochs", 0, 100_000)
        self._range("minutes", 0, 100_000)
        self._range("batch_size", 2, 4096)
        self._range("pairs_per_epoch", self.batch_size, 10**9)
        self._range("genuine_share", 0, 1)
        self._range("image_size", 64, 224)
        self._range("frame_px", 16, 4096)
        self._range("crop_px", 16, min(self.frame_px, 1024))
        self._range("augment", 0, 2)
        self._range("erase", 0, 1)
        self._range("learning_rate", 1e-8, 10)
        self._range("seed", 0, 2**31 - 1)
        self._range("calibration_share", 0.01, 0.9)
        self._range("test_share", 0, 0.9)
        self._range("calibration_pairs", 20, 10**7)
        if self.calibration_share + self.test_share > 0.95:
            raise BadConfig("calibration_share and test_share leave nobody to train on; lower one")
        if (self.store == "tfrecord") != bool(self.cache):
            raise BadConfig(
                "store tfrecord and a cache go together: --store tfrecord --cache DIR, with DIR "
                "made by: facepairs cache build DATA DIR --pairs N"
            )

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
        if "model" in changes:  # another model brings its own recipe for what is still default
            defaults = dataclasses.asdict(from_table({"model": self.model}, "defaults"))
            table = {name: value for name, value in table.items() if value != defaults[name]}
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
    return TrainConfig(**{**RECIPES.get(values.get("model", TrainConfig.model), {}), **values})


def load_config(path: Path) -> TrainConfig:
    """Read a TOML file; raise BadConfig with the file's name where it cannot be used."""
    try:
        with open(path, "rb") as handle:
            table = tomllib.load(handle)
    except OSError as error:
        raise BadConfig(f"{path}: {error.strerror}; give a TOML file with --config") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(f"{path}: not TOML: {error}") from None
    return from_table(table, str(path))
