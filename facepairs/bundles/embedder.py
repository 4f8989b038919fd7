"""External embedders: a network and a small TOML beside it that describes its input.

    file = "w600k_r50.onnx"    # in the folder of this TOML
    size_px = 112              # side of the square that the network takes
    layout = "nchw"            # or "nhwc"
    colours = "rgb"            # or "bgr"
    mean = 127.5               # (x - mean) / std for x from 0 to 255: one number, or three in the
    std = 127.5                # network's order
    align = "arcface-112"      # see below

These keys are required (a network that takes uint8 needs neither mean nor std). How a face comes
into the square:

    align = "arcface-112"      # five landmarks onto those of ArcFace, InsightFace and SFace
    align = "landmarks-5"      # five landmarks onto `points`, five [x, y] in pixels of the square:
    points = [[38, 52], [74, 52], [56, 72], [42, 92], [71, 92]]    # eyes, nose, mouth corners
    align = "landmarks"        # the centre of the canonical frame of `photos.frame`
    crop = 0.512               # its share of the frame's side, such as 128 of 250 pixels
    align = "none"             # the same of the whole image, with `crop`; no face is looked for

Optional keys:

    name = "arcface-r50"       # default: the name of the TOML
    sha256 = "4c06341c…"       # of the network's file, which is checked
    output = "embedding"       # which output, when the network has several
    measured = "measured.json" # probability, thresholds and errors, from `facepairs calibrate`
    people = "identities.json" # hashes of the people of the training, from `facepairs export`
    licence = "Apache-2.0"     # of the weights, and on what they were trained: for reports
    training_data = "MS1MV3: 5.2 million photos from the web"

Without `people` it is unknown which people the network was trained on. Without `measured` there is
no probability, and a verdict only at a threshold that is given. The score is the cosine.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from facepairs.bundles.error_profile import ErrorProfile, parse_measured
from facepairs.bundles.manifest import (
    NOBODY,
    Identities,
    check_file_name,
    parse_identities,
    read_regular_file,
)
from facepairs.errors import BadBundle
from facepairs.photos.crop import CropSpec
from facepairs.support.validation import parse_toml, validate
from facepairs.support.words import command_line

EMBEDDER = "embedder.toml"  # in a folder that `facepairs calibrate` or `fetch` wrote
NETWORKS = "FACEPAIRS_NETWORKS"  # the variable that names the folder of fetched networks
MAX_NETWORK_BYTES = 2_147_483_648  # the most that protobuf, and so one ONNX file, can hold
ARCFACE_PX = 112
ARCFACE_POINTS = (
    (38.2946, 51.6963), (73.5318, 51.5014), (56.0252, 71.7366), (41.5493, 92.3655),
    (70.7299, 92.2041),
)  # fmt: skip
"""Landmarks in the square of 112 pixels on which ArcFace and many others were trained.

References:
    Deng et al.: ArcFace: Additive Angular Margin Loss for Deep Face Recognition. CVPR, 2019.
"""

LARGEST = 1e30
Number = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
Positive = Annotated[float, Meta(gt=0, le=LARGEST)]
# Lists of fixed length: msgspec 0.22 crashes on unions of a bounded number and a tuple.
Numbers = Annotated[
    Number | Annotated[list[Number], Meta(min_length=3, max_length=3)],
    Meta(description="one number or three"),
]
PositiveNumbers = Annotated[
    Positive | Annotated[list[Positive], Meta(min_length=3, max_length=3)],
    Meta(description="one number or three, all above 0"),
]
PointList = Annotated[
    list[Annotated[list[Number], Meta(min_length=2, max_length=2)]],
    Meta(min_length=5, max_length=5, description="five [x, y]: eyes, nose tip, mouth corners"),
]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", description="64 hexadecimal digits")]
EmbedderAlign = Literal["landmarks", "none", "arcface-112", "landmarks-5"]
Layout = Literal["nchw", "nhwc"]
Colours = Literal["rgb", "bgr"]
Text = Annotated[str, Meta(min_length=1)]
Floats = npt.NDArray[np.float32]
Scaling = tuple[Floats, Floats]
"""(scale, offset), float32[3] each in the network's order of colours."""
NOT_IN_EMBEDDINGS = {
    *("file", "name", "sha256", "measured_file", "people", "licence", "training_data")
}


class EmbedderToml(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of the TOML; the module's docstring explains them."""

    file: Text
    size_px: Annotated[int, Meta(ge=1, le=2048)]
    layout: Layout
    colours: Colours
    align: EmbedderAlign
    mean: Numbers | None = None
    std: PositiveNumbers | None = None
    name: Text | None = None
    crop: Annotated[float, Meta(gt=0, le=1)] | None = None
    points: PointList | None = None
    sha256: Sha256 | None = None
    output: Text | None = None
    measured_file: Text | None = msgspec.field(name="measured", default=None)
    people: Text | None = None
    licence: Text | None = None
    training_data: Text | None = None


@dataclass(frozen=True)
class Embedder:
    """The TOML of an external embedder, checked, and the small files that it names.

    Attributes:
        path: The TOML file.
        toml: Its keys.
        raw: Its values as they stand in the file.
        framing: The crop that the network takes of a photo.
        scaling: How its colours are scaled; None for a network that takes uint8.
        profile: What the file of the key `measured` holds; empty without one.
        identities: The people of the training, where `people` lists them, and those on whom the
            errors were measured.
    """

    path: Path
    toml: EmbedderToml
    raw: dict[str, Any]
    framing: CropSpec
    scaling: Scaling | None
    profile: ErrorProfile
    identities: Identities

    @classmethod
    def open(cls, path: Path | str) -> "Embedder":
        """Read and check a TOML.

        Args:
            path: The TOML, a folder in which it is called `embedder.toml`, or the name of a
                fetched network.

        Raises:
            BadBundle: It cannot be used; the message names the file, the key and its value.
        """
        path = _located(path)
        if path.is_dir():
            path = path / EMBEDDER
        try:
            raw = read_toml(path)
            toml = validate(raw, EmbedderToml, error=BadBundle)
            framing, scaling = check_keys(toml)
            people, profile = NOBODY, ErrorProfile()
            if toml.measured_file is not None:
                check_file_name(toml.measured_file)
                file = path.parent / toml.measured_file
                profile = parse_measured(read_regular_file(file), file)
                people = Identities(frozenset(), profile.people)
            if toml.people is not None:
                people = people.union(_read_people(toml.people, path))
            return cls(path, toml, raw, framing, scaling, profile, people)
        except (ValueError, BadBundle) as error:
            raise BadBundle(f"{path}: {error}") from None

    @property
    def folder(self) -> Path:
        """The folder of the TOML."""
        return self.path.parent

    @property
    def network_path(self) -> Path:
        """The network's file."""
        return self.folder / self.toml.file

    @property
    def name(self) -> str:
        """The embedder's name."""
        return self.toml.name or (
            self.folder.name if self.path.name == EMBEDDER else self.path.stem
        )

    def embedding_settings(self) -> str:
        """Return the keys, as JSON, that decide what the embedding of a photo is."""
        values = msgspec.structs.asdict(self.toml)
        return json.dumps([values[name] for name in values if name not in NOT_IN_EMBEDDINGS])

    def read_network(self) -> bytes:
        """Read the network's bytes.

        Raises:
            BadBundle: The file is missing, too large, a link out of its folder, or not the one
                that `sha256` names.
        """
        path, sha256 = self.network_path, self.toml.sha256
        is_fetched = self.folder.parent == networks_folder()
        fetch = f"run: {command_line('fetch', self.folder.name)}" if is_fetched else ""
        if path.resolve().parent != self.folder.resolve():
            raise BadBundle(f"{path}: links outside of {self.folder}; copy the file")
        if not path.exists():
            advice = fetch or "put the network beside its TOML file"
            raise BadBundle(f"{path}: missing; {advice}")
        network = read_regular_file(path, MAX_NETWORK_BYTES)
        if sha256 and hashlib.sha256(network).hexdigest() != sha256:
            advice = fetch or "download the file that this TOML describes"
            raise BadBundle(f"{path}: its SHA-256 differs from {self.path.name}; {advice}")
        return network

    def check_all(self) -> bool:
        """Check the network, and return whether it has a checksum; raises BadBundle."""
        self.read_network()
        return self.toml.sha256 is not None


def check_keys(toml: EmbedderToml) -> tuple[CropSpec, Scaling | None]:
    """Return crop and scaling; raise BadBundle for keys that do not fit together."""
    check_file_name(toml.file)
    return _framing(toml), _scaling(toml)


def read_toml(path: Path) -> dict[str, Any]:
    """Return the keys of a TOML; raise BadBundle if it cannot be read."""
    return parse_toml(read_regular_file(path), path, BadBundle)


def is_embedder(path: Path | str) -> bool:
    """Return whether a path is a TOML, or a folder or fetched network with `embedder.toml`."""
    return str(path).lower().endswith(".toml") or Path(_located(path), EMBEDDER).is_file()


def networks_folder() -> Path:
    """Return the folder of fetched networks, each in a folder of its name."""
    if folder := os.environ.get(NETWORKS):
        return Path(folder)
    import platformdirs  # not needed by every command

    return Path(platformdirs.user_data_dir("facepairs", appauthor=False), "networks")


def is_name(path: Path | str) -> bool:
    """Return whether this can only be the name of a network: no path, and nothing has it."""
    return isinstance(path, str) and Path(path).name == path and not os.path.lexists(path)


def _located(path: Path | str) -> Path:
    """Return the path of a model; of a network's name, the folder into which it is fetched."""
    return networks_folder() / path if is_name(path) else Path(path)


def _read_people(name: str, path: Path) -> Identities:
    """Read the file of the key `people`."""
    check_file_name(name)
    file = path.parent / name
    return parse_identities(read_regular_file(file), file, "export the network again")


def _framing(toml: EmbedderToml) -> CropSpec:
    """Return the crop that the network takes."""
    size = toml.size_px
    if toml.align in ("landmarks", "none"):
        if toml.points is not None:
            raise BadBundle('points need align = "landmarks-5"; leave one of them out')
        if toml.crop is None:
            raise BadBundle(f'crop is missing: align = "{toml.align}" needs the share of the frame')
        return CropSpec(round(size / toml.crop), size)
    if toml.crop is not None:
        raise BadBundle(f'crop cannot be used with align = "{toml.align}"; leave one of them out')
    if toml.align == "landmarks-5":
        if toml.points is None:
            raise BadBundle('points is missing: align = "landmarks-5" needs landmark positions')
        return CropSpec(size, size, tuple((x, y) for x, y in toml.points))
    if size != ARCFACE_PX or toml.points is not None:
        raise BadBundle(
            f'align = "arcface-112" needs size_px {ARCFACE_PX} and has its own points; otherwise '
            'give align = "landmarks-5" and points'
        )
    return CropSpec(size, size, ARCFACE_POINTS)


def _scaling(toml: EmbedderToml) -> Scaling | None:
    """Return scale and offset, float32[3] each, by which (x - mean) / std is computed."""
    if toml.mean is None and toml.std is None:
        return None
    if toml.mean is None or toml.std is None:
        raise BadBundle("give both mean and std, or neither")
    mean, std = (np.asarray(value, np.float64) for value in (toml.mean, toml.std))
    with np.errstate(over="ignore"):
        scale, offset = (
            np.broadcast_to(row, 3).astype(np.float32) for row in (1 / std, -mean / std)
        )
    if not np.isfinite([scale, offset]).all():
        raise BadBundle("mean and std turn every image into a constant; give other values")
    return scale, offset
