"""External embedders: an ONNX network and a small TOML beside it that describes its input.

    file = "w600k_r50.onnx"    # in the folder of this TOML
    size_px = 112              # side of the square that the network takes
    layout = "nchw"            # or "nhwc"
    colours = "rgb"            # or "bgr"
    mean = 127.5               # (x - mean) / std for x from 0 to 255: one number, or three in the
    std = 127.5                # network's order; or scale and offset: x * scale + offset
    crop = [128, 250]          # 128 of the 250 pixels of a frame's side, or a share such as 0.6
    distance = "cosine"        # or "euclidean", "squared-euclidean", "manhattan"

These keys are required (a network that takes uint8 needs no scaling). Optional keys:

    name = "arcface-r50"       # default: the name of the TOML
    align = "none"             # the frame is the whole image; default: "landmarks", see faces.align
    output = "embedding"       # which output, when the network has several
    normalise = true           # scale embeddings to length one before a distance is taken
    threshold = 0.28           # on the score: accept from there on; distances count negatively
    calibration = { scale = 12.0, offset = -3.4 }  # logistic, score to probability

A threshold or calibration holds for one way of cropping only, so `align` is required beside them.

It is unknown on whom such a network was trained. Without a threshold there is no verdict, without a
calibration no probability.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from facepairs.bundles.calibration import Calibration
from facepairs.bundles.error_table import ErrorTable
from facepairs.bundles.manifest import TrainingRecord, check_file_name, read_regular_file
from facepairs.bundles.thresholds import FmrThreshold
from facepairs.choices import Align
from facepairs.errors import BadBundle
from facepairs.images.crop import CropSpec
from facepairs.support.validation import validate

MAX_TOML_BYTES = 2**20
MAX_NETWORK_BYTES = 2**31  # the most that protobuf, and so one ONNX file, can hold
MIN_SHARE = 0.01

Number = Annotated[float, Meta(ge=-1e30, le=1e30)]
Positive = Annotated[float, Meta(gt=0, le=1e30)]
# Lists of fixed length: msgspec 0.22 crashes on unions of a bounded number and a tuple.
Numbers = Annotated[
    Number | Annotated[list[Number], Meta(min_length=3, max_length=3)],
    Meta(description="one number or three"),
]
PositiveNumbers = Annotated[
    Positive | Annotated[list[Positive], Meta(min_length=3, max_length=3)],
    Meta(description="one number or three, all above 0"),
]
CropShare = Annotated[
    Positive | Annotated[list[Positive], Meta(min_length=2, max_length=2)],
    Meta(description="a share from 0.01 to 1, or [pixels, of how many] such as [128, 250]"),
]
Text = Annotated[str, Meta(min_length=1)]
Floats = npt.NDArray[np.float32]


class EmbedderToml(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of the TOML; the module's docstring explains them."""

    file: Text
    size_px: Annotated[int, Meta(ge=1, le=2048)]
    layout: Literal["nchw", "nhwc"]
    colours: Literal["rgb", "bgr"]
    crop: CropShare
    distance: Literal["cosine", "euclidean", "squared-euclidean", "manhattan"]
    mean: Numbers | None = None
    std: PositiveNumbers | None = None
    scale: Numbers | None = None
    offset: Numbers | None = None
    name: Text | None = None
    align: Align = "landmarks"
    output: Text | None = None
    normalise: bool = False
    threshold: Number | None = None
    calibration: Calibration | None = None


@dataclass(frozen=True)
class ShareCropSpec(CropSpec):
    """A centre square that is `share` of an image's shorter side, resized to crop_px."""

    share: float

    def side_px(self, width: int, height: int) -> int:
        """Return the side of the square in an image of that size, at least 1 pixel."""
        return max(1, round(min(width, height) * self.share))


class ExternalEmbedder(EmbedderToml, frozen=True, kw_only=True):
    """An external network and how to use it; `verify` and `evaluate` take it in place of a bundle.

    Attributes:
        path: The TOML file.
        framing: The crop that the network takes of a photo.
        scaling: (scale, offset), float32[3] each in the network's order of colours; None for a
            network that takes uint8.
    """

    kind: ClassVar[Literal["embedding"]] = "embedding"
    raw: ClassVar[dict[str, Any]] = {}
    training: ClassVar[TrainingRecord] = TrainingRecord()
    thresholds: ClassVar[Sequence[FmrThreshold]] = ()
    operating_point: ClassVar[float | None] = None
    errors: ClassVar[ErrorTable | None] = None

    path: Path
    framing: ShareCropSpec
    scaling: tuple[Floats, Floats] | None

    @classmethod
    def open(cls, path: Path | str) -> "ExternalEmbedder":
        """Read and check a TOML.

        Raises:
            BadBundle: It cannot be used; the message names the file, the key and its value.
        """
        path = Path(path)
        values = _read_toml(path)
        try:
            toml = validate(values, EmbedderToml, error=BadBundle)
            check_file_name(toml.file)
            _check_threshold(toml)
            _check_align(toml, values)
            share = _crop_share(toml)
            frame_px = max(toml.size_px, round(toml.size_px / share))
            framing = ShareCropSpec(frame_px, toml.size_px, share)
            values = msgspec.structs.asdict(toml)
            return cls(path=path, framing=framing, scaling=_scaling(toml), **values)
        except (ValueError, BadBundle) as error:
            raise BadBundle(f"{path}: {error}") from None

    @property
    def model(self) -> str:
        """The embedder's name."""
        return self.name or self.path.stem

    @property
    def alignment(self) -> str:
        """The alignment's name, as bundles have it."""
        return "landmarks-5" if self.aligned else "lfw-frame"

    @property
    def aligned(self) -> bool:
        """Whether faces are found and aligned; if not, images are used whole."""
        return self.align == "landmarks"

    @property
    def network_path(self) -> Path:
        """The ONNX file."""
        return self.folder / self.file

    @property
    def folder(self) -> Path:
        """The folder of the TOML and the network."""
        return self.path.parent

    def knows(self, names: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return bool[len(names)], all False: the people of the training are unknown."""
        return np.zeros(len(names), np.bool_)

    def read_network(self) -> bytes:
        """Read the network's bytes.

        Raises:
            BadBundle: The file is missing, too large, or a link out of the TOML's folder.
        """
        if self.network_path.resolve().parent != self.folder.resolve():
            raise BadBundle(f"{self.network_path}: a link that leads out of {self.folder}; copy it")
        return read_regular_file(self.network_path, MAX_NETWORK_BYTES)


def _read_toml(path: Path) -> dict[str, Any]:
    import tomllib  # only this function needs it

    try:
        return tomllib.loads(read_regular_file(path, MAX_TOML_BYTES).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadBundle(f"{path}: not TOML: {error}") from None


def _crop_share(toml: EmbedderToml) -> float:
    """Return `crop` as a share of the shorter side."""
    share = toml.crop[0] / toml.crop[1] if isinstance(toml.crop, list) else toml.crop
    if not MIN_SHARE <= share <= 1:
        raise BadBundle(f"crop is {toml.crop}, a share of {share:g}; use one from {MIN_SHARE} to 1")
    return share


def _scaling(toml: EmbedderToml) -> tuple[Floats, Floats] | None:
    """Return scale and offset, float32[3] each, from whichever pair of keys is there."""
    keys = ("mean", "std", "scale", "offset")
    given = [key for key in keys if getattr(toml, key) is not None]
    if not given:
        return None
    if given not in (["mean", "std"], ["scale", "offset"]):
        raise BadBundle(f"{', '.join(given)}: give mean and std, or scale and offset")
    first, second = (np.broadcast_to(np.float64(getattr(toml, key)), 3) for key in given)
    scale, offset = (first, second) if given[0] == "scale" else (1 / second, -first / second)
    if not (np.isfinite(scale).all() and np.isfinite(offset).all() and scale.all()):
        raise BadBundle(f"{' and '.join(given)} leave nothing of the image; give others")
    return scale.astype(np.float32), offset.astype(np.float32)


def _check_align(toml: EmbedderToml, given: Container[str]) -> None:
    """Raise BadBundle for a threshold or calibration that does not say which crops it is for."""
    if "align" not in given and (toml.threshold is not None or toml.calibration):
        raise BadBundle(
            "align is missing, and threshold and calibration hold for one way only; give "
            'align = "landmarks" (they are of aligned faces) or "none" (of whole images)'
        )


def _check_threshold(toml: EmbedderToml) -> None:
    value = toml.threshold
    if value is None:
        return
    if toml.distance == "cosine" and abs(value) > 1:
        raise BadBundle(f"threshold is {value}; a cosine lies from -1 to 1")
    if toml.distance != "cosine" and value > 0:
        raise BadBundle(
            f"threshold is {value}; it is on the score, a distance with a minus: give {-value}"
        )
