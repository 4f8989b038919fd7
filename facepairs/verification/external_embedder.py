"""Embedders made elsewhere: an ONNX network and a small TOML beside it that says how to feed it.

    file = "w600k_r50.onnx"    # in the folder of this TOML
    size_px = 112              # side of the square that the network takes
    layout = "nchw"            # or "nhwc"
    colours = "rgb"            # or "bgr"
    mean = 127.5               # (x - mean) / std for x from 0 to 255: one number, or three in the
    std = 127.5                # network's order; or scale and offset: x * scale + offset
    crop = [128, 250]          # 128 of every 250 pixels of the shorter side, or a share such as 0.6
    distance = "cosine"        # or "euclidean", "squared-euclidean", "manhattan"

These are needed (a network that takes uint8 may leave the scaling out). These may be there:

    name = "arcface-r50"       # else the TOML's own
    output = "embedding"       # which output, where the network has several
    normalise = true           # bring embeddings to length one before a distance is taken
    threshold = 0.28           # on the score: accept from there on; distances count negatively
    calibration = { scale = 12.0, offset = -3.4 }  # logistic, score to probability

Nobody can tell whom such a network was trained on. Without a threshold there is no verdict, without
a calibration no probability.
"""

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from facepairs.bundles.calibration import Calibration
from facepairs.bundles.manifest import check_name, read_regular
from facepairs.errors import BadBundle
from facepairs.images.photo import Framing

NEEDED = ("file", "size_px", "layout", "colours", "crop", "distance")
SCALINGS = (("mean", "std"), ("scale", "offset"))
OPTIONAL = ("name", "output", "normalise", "threshold", "calibration")
KNOWN = (*NEEDED, *(key for pair in SCALINGS for key in pair), *OPTIONAL)
DISTANCES = ("cosine", "euclidean", "squared-euclidean", "manhattan")
MAX_TOML_BYTES = 2**20
MAX_NETWORK_BYTES = 2**31  # what protobuf, and so ONNX, can hold in one file
MAX_SIZE_PX = 2048

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class ShareFraming(Framing):
    """A centre square that is `share` of an image's shorter side, resized to crop_px."""

    share: float

    def side_px(self, width: int, height: int) -> int:
        """Give the side of the square cut from an image of that size, at least 1 pixel."""
        return max(1, round(min(width, height) * self.share))


@dataclass(frozen=True, kw_only=True)
class ExternalEmbedder:
    """What a TOML says of a network, checked; it stands where a bundle does.

    `scaling` is (scale, offset), float32[3] each in the network's order of colours. It, `threshold`
    and `calibration` are None where the TOML leaves them out.
    """

    kind: ClassVar[Literal["embedding"]] = "embedding"
    training: ClassVar[Mapping[str, Any]] = {}
    thresholds: ClassVar[Sequence[Mapping[str, Any]]] = ()

    path: Path
    network: Path
    model: str
    framing: ShareFraming
    layout: str
    colours: str
    scaling: tuple[Floats, Floats] | None
    distance: str
    normalise: bool
    output: str | None
    threshold: float | None
    calibration: Calibration | None

    @classmethod
    def open(cls, path: Path | str) -> "ExternalEmbedder":
        """Read and check a TOML; raises BadBundle that names the file, the key and its value."""
        path = Path(path)
        table = _read(path)
        try:
            _check_keys(table)
            return cls(**_fields(path, table))
        except (ValueError, BadBundle) as error:
            raise BadBundle(f"{path}: {error}") from None

    @property
    def folder(self) -> Path:
        """Where TOML and network lie."""
        return self.path.parent

    def knows(self, names: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Say that nobody is known to have been trained on: bool[names], all False."""
        return np.zeros(len(names), np.bool_)

    def read_network(self) -> bytes:
        """Read the network's bytes; raises BadBundle where it is missing, huge or elsewhere."""
        if self.network.resolve().parent != self.folder.resolve():
            raise BadBundle(f"{self.network}: a link that leads out of {self.folder}; copy it")
        data = read_regular(self.network, MAX_NETWORK_BYTES)
        if len(data) > MAX_NETWORK_BYTES:
            raise BadBundle(f"{self.network}: over 2 GB, more than one ONNX file can hold")
        return data


def _read(path: Path) -> dict[str, Any]:
    import tomllib  # only this needs it, and `verify` starts without

    data = read_regular(path, MAX_TOML_BYTES)
    if len(data) > MAX_TOML_BYTES:
        raise BadBundle(f"{path}: over {MAX_TOML_BYTES >> 20} MB; give a TOML of some lines")
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadBundle(f"{path}: not TOML: {error}") from None


def _check_keys(table: dict[str, Any]) -> None:
    for key in table:
        if key not in KNOWN:
            near = difflib.get_close_matches(key, KNOWN, 1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(KNOWN)}"
            raise ValueError(f"{key} is unknown; {hint}")
    missing = [key for key in NEEDED if key not in table]
    if missing:
        raise ValueError(f"no {', '.join(missing)}; say how to feed the network")


def _fields(path: Path, table: dict[str, Any]) -> dict[str, Any]:
    file = _file(table)
    size = table["size_px"]
    if type(size) is not int or not 1 <= size <= MAX_SIZE_PX:
        raise ValueError(f"size_px is {size!r}, not a whole number from 1 to {MAX_SIZE_PX}")
    share = _share(table["crop"])
    distance = _choice(table, "distance", DISTANCES)
    given = table.get("calibration")
    return {
        "path": path,
        "network": path.parent / file,
        "model": _text(table, "name") if "name" in table else path.stem,
        "framing": ShareFraming(max(size, round(size / share)), size, share),
        "layout": _choice(table, "layout", ("nchw", "nhwc")),
        "colours": _choice(table, "colours", ("rgb", "bgr")),
        "scaling": _scaling(table),
        "distance": distance,
        "normalise": _flag(table, "normalise"),
        "output": _text(table, "output") if "output" in table else None,
        "threshold": _threshold(table, distance),
        "calibration": None if given is None else Calibration.from_json(given),
    }


def _file(table: dict[str, Any]) -> str:
    file = _text(table, "file")
    try:
        check_name(file)
    except ValueError:
        raise ValueError(f"file is {file!r}; name a file in the TOML's own folder") from None
    return file


def _text(table: dict[str, Any], key: str) -> str:
    value = table[key]
    if type(value) is not str or not value:
        raise ValueError(f"{key} is {value!r}, not a text")
    return value


def _choice(table: dict[str, Any], key: str, known: tuple[str, ...]) -> str:
    if table[key] not in known:
        raise ValueError(f"{key} is {table[key]!r}, not one of {', '.join(known)}")
    return str(table[key])


def _flag(table: dict[str, Any], key: str) -> bool:
    value = table.get(key, False)
    if type(value) is not bool:
        raise ValueError(f"{key} is {value!r}, not true or false")
    return value


def _number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e30  # false for NaN too


def _share(crop: Any) -> float:
    """Read `crop`: a share of the shorter side, or [pixels, of how many]."""
    if type(crop) is list and len(crop) == 2 and all(_number(v) and v > 0 for v in crop):
        share = crop[0] / crop[1]
    else:
        share = float(crop) if _number(crop) else math.nan
    if not 0.01 <= share <= 1:
        raise ValueError(
            f"crop is {crop!r}, not a share from 0.01 to 1 or [pixels, of how many] such as "
            "[128, 250]"
        )
    return float(share)


def _scaling(table: dict[str, Any]) -> tuple[Floats, Floats] | None:
    """Give scale and offset, float32[3] each, from whichever pair of keys is there."""
    given = [key for pair in SCALINGS for key in pair if key in table]
    if not given:
        return None
    if tuple(given) not in SCALINGS:
        raise ValueError(f"{', '.join(given)}: give mean and std, or scale and offset")
    first, second = (_three(table, key) for key in given)
    scale, offset = (first, second) if given[0] == "scale" else (1 / second, -first / second)
    if not (np.isfinite(scale).all() and np.isfinite(offset).all() and scale.all()):
        raise ValueError(f"{' and '.join(given)} leave nothing of the image; give others")
    return scale.astype(np.float32), offset.astype(np.float32)


def _three(table: dict[str, Any], key: str) -> npt.NDArray[np.float64]:
    value = table[key]
    numbers = value if type(value) is list else [value] * 3
    if len(numbers) != 3 or not all(_number(number) for number in numbers):
        raise ValueError(f"{key} is {value!r}, not one number or three")
    if key == "std" and not all(number > 0 for number in numbers):
        raise ValueError(f"std is {value!r}, not above 0")
    return np.array(numbers, np.float64)


def _threshold(table: dict[str, Any], distance: str) -> float | None:
    if "threshold" not in table:
        return None
    value = table["threshold"]
    if not _number(value):
        raise ValueError(f"threshold is {value!r}, not a finite number")
    if distance == "cosine" and abs(value) > 1:
        raise ValueError(f"threshold is {value}; a cosine lies from -1 to 1")
    if distance != "cosine" and value > 0:
        raise ValueError(
            f"threshold is {value}; it is on the score, a distance with a minus: give {-value}"
        )
    return float(value)
