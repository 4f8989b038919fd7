"""The schemas of a bundle's manifest.json and identities.json."""

import hashlib
import json
import os
import stat
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from facepairs.bundles.rates import Count, Finite
from facepairs.errors import BadBundle
from facepairs.photos.crop import CropSpec
from facepairs.support.validation import shorten, validate

MANIFEST = "manifest.json"
IDENTITIES = "identities.json"
DIGEST = "manifest_sha256"
MAX_JSON_BYTES = 16_000_000  # as Python objects it takes at most twenty times that
MAX_FILE_BYTES = 512 * 2**20

Kind = Literal["pair", "embedding"]
Alignment = Literal["landmarks-5", "lfw-frame"]
SCHEMA = 4
INPUT_COUNTS: dict[Kind, int] = {"pair": 2, "embedding": 1}


class Float32Entry(msgspec.Struct, frozen=True):
    """The network in float32: its file in the bundle, from which the Keras weights are cut out.

    `weights` has of each piece its place in the file, its place in Keras's file of weights, and
    its length, all in bytes.
    """

    file: str
    weights: tuple[tuple[Count, Count, Count], ...]


class NetworkEntry(msgspec.Struct, frozen=True):
    """The ONNX network: its file in the bundle, the names of its inputs and of its output.

    `image_px` is the side in pixels at which it works inside; crops come at `framing.crop_px`.
    `float32` is what runs in place of a network in 8 bits on devices that do not take it.
    """

    file: str
    inputs: tuple[str, ...]
    output: str
    image_px: int | None = None
    float32: Float32Entry | None = None


class FileEntry(msgspec.Struct, frozen=True):
    """Size and SHA-256 (hex) of a file in the bundle."""

    bytes: Annotated[int, Meta(ge=0, le=MAX_FILE_BYTES)]
    sha256: str


class StartingBundle(msgspec.Struct, frozen=True):
    """The bundle from whose weights training started."""

    created: str = ""
    network_sha256: str = ""
    licence: str | None = None


class TrainingRecord(msgspec.Struct, frozen=True):
    """How the network was trained; `finished` is a time in ISO 8601, UTC.

    `protocol` is "pretrained" for weights that were trained elsewhere; `data` says on what.
    """

    protocol: str | None = None
    data: str = ""
    seed: int | None = None
    images: Count | None = None
    people: Count | None = None
    pairs: Count | None = None
    epochs: Count | None = None
    finished: str = ""
    init: StartingBundle | None = None


class CalibratedRecord(msgspec.Struct, frozen=True):
    """A later calibration on other people by `facepairs calibrate`."""

    people: Count
    finished: str


class View2Result(msgspec.Struct, frozen=True):
    """The accuracy of the network on LFW's View 2, each fold's threshold from the other nine."""

    accuracy: Finite
    accuracy_standard_error: Finite


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a bundle's manifest; unknown keys are ignored.

    Attributes:
        kind: "pair": the network scores two crops; "embedding": it embeds one.
        model: The architecture's name.
        framing: The crop that the network takes of a photo.
        alignment: "landmarks-5": crops are cut out of the canonical frame of `photos.frame`;
            "lfw-frame": out of the whole image.
        network: The ONNX file and its signature.
        files: Size and SHA-256 of every file of the bundle but the manifest.
        training: How the network was trained.
        calibrated: The last calibration by `facepairs calibrate`.
        view2: The result of LFW's View 2, where it was measured.
        versions: Versions of the software that wrote the bundle.
        created: When the bundle was written, ISO 8601 in UTC.
        licence: Of the weights, where it was said.
        note: A free remark.
        failures: Groups of errors, Markdown; only read, for the card of the packaged default.
    """

    kind: Kind
    model: str
    framing: CropSpec
    network: NetworkEntry
    files: dict[str, FileEntry]
    alignment: Alignment = "lfw-frame"
    training: TrainingRecord = TrainingRecord()
    calibrated: CalibratedRecord | None = None
    view2: View2Result | None = None
    versions: dict[str, str] = {}
    created: str = ""
    licence: str | None = None
    note: str = ""
    failures: str = ""

    @property
    def weights_licence(self) -> str | None:
        """The licence of the weights, or of those that training started from; None if unknown."""
        start = self.training.init
        return self.licence or (start and start.licence) or None

    @property
    def aligned(self) -> bool:
        """Whether faces are found and aligned; if not, images are used whole."""
        return self.alignment == "landmarks-5"


def parse_manifest(values: Mapping[str, Any]) -> Manifest:
    """Check a manifest's values and return them typed.

    Raises:
        BadBundle: A field is missing or unusable; the message does not name the file.
    """
    if values.get("schema") != SCHEMA:
        raise BadBundle(
            f"its schema is {shorten(values.get('schema'))}, this version reads {SCHEMA}; recreate "
            "the bundle with this version, or use the version that made it"
        )
    manifest = validate(values, Manifest, error=BadBundle, advice="export the bundle again")
    inputs, count = manifest.network.inputs, INPUT_COUNTS[manifest.kind]
    if len(inputs) != count:
        raise BadBundle(
            f"network.inputs is {shorten(list(inputs))}; a network of kind '{manifest.kind}' has "
            f"{count}; export the bundle again"
        )
    for name, entry in manifest.files.items():
        check_file_name(name)
        if name.endswith(".json") and entry.bytes > MAX_JSON_BYTES:
            raise BadBundle(f"files.{name}.bytes is {entry.bytes}, above {MAX_JSON_BYTES}")
    for name in (manifest.network.file, IDENTITIES):
        if name not in manifest.files:
            raise BadBundle(f"its list of files lacks {shorten(name)}; copy the bundle again")
    return manifest


def manifest_digest(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 (hex) over a manifest's values without the digest itself.

    The order of keys and white space do not matter.
    """
    rest = {name: value for name, value in values.items() if name != DIGEST}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def check_file_name(name: str) -> None:
    """Refuse a file name that could lead out of the bundle's folder.

    Raises:
        BadBundle: The name has a separator, a colon or NUL, or is empty, `.` or `..`.
    """
    if name in ("", ".", "..") or any(mark in name for mark in "/\\:\0"):
        raise BadBundle(f"file name {shorten(name)} could point outside of its folder; rename it")


def read_regular_file(path: Path, limit_bytes: int = MAX_JSON_BYTES) -> bytes:
    """Read a whole regular file; nothing else is opened.

    Raises:
        BadBundle: The file is missing, larger than `limit_bytes`, not a regular file, or cannot be
            read.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise BadBundle(f"{path}: not a regular file; copy the bundle again")
        with path.open("rb") as handle:
            if os.fstat(handle.fileno()).st_size > limit_bytes:
                raise BadBundle(f"{path}: larger than {limit_bytes:,} bytes; copy it again")
            return handle.read(limit_bytes)
    except FileNotFoundError:
        raise BadBundle(
            f"{path}: missing; give the folder of a run or of its bundle, "
            "the TOML file of an embedder, or the word default"
        ) from None
    except OSError as error:
        raise BadBundle(f"{path}: {error.strerror}; make it readable") from None


def parse_json_object(data: bytes, path: Path) -> dict[str, Any]:
    """Parse a JSON object strictly (UTF-8, no NaN).

    Raises:
        BadBundle: The data is something else; the message names `path`.
    """
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadBundle(f"{path}: not JSON ({error}); copy the bundle again") from None
    if not isinstance(value, dict):
        raise BadBundle(f"{path}: not a JSON object; copy the bundle again")
    return value


def identity_hash(name: str) -> str:
    """Return 16 hex digits for a person's name: BLAKE2b of 8 bytes over its NFC form in UTF-8.

    It only keeps names out of a shared bundle's text: anyone who guesses a name can check it.

    References:
        RFC 7693 (BLAKE2).
    """
    text = unicodedata.normalize("NFC", name)  # macOS returns names decomposed
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class Identities(msgspec.Struct, frozen=True):
    """Hashes of the people used in training and of those used in calibration."""

    training: frozenset[str]
    calibration: frozenset[str]

    @classmethod
    def of(cls, training: Iterable[str], calibration: Iterable[str]) -> "Identities":
        """Hash the names of the people used in training and in calibration."""
        return cls(
            frozenset(map(identity_hash, training)), frozenset(map(identity_hash, calibration))
        )

    def knows(self, names: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return for each name whether training or calibration used that person: bool[N]."""
        return hashed_in(names, self.training | self.calibration)

    def trained_with(self, names: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return for each name whether training is known to have used that person: bool[N]."""
        return hashed_in(names, self.training)

    def union(self, other: "Identities") -> "Identities":
        """Return the people of both."""
        return Identities(self.training | other.training, self.calibration | other.calibration)

    def to_bytes(self) -> bytes:
        """Return the content of `identities.json`: the same bytes for the same people."""
        lists = {"training": sorted(self.training), "calibration": sorted(self.calibration)}
        return (json.dumps({"hash": "blake2b-8", **lists}, indent=0) + "\n").encode()


NOBODY = Identities(frozenset(), frozenset())


def parse_identities(data: bytes, path: Path, advice: str) -> Identities:
    """Parse the content of `identities.json`.

    Args:
        data: The content.
        path: The file, for messages.
        advice: What to do if it is damaged.

    Raises:
        BadBundle: It is damaged.
    """
    return validate(parse_json_object(data, path), Identities, str(path), BadBundle, advice)


def hashed_in(names: Sequence[str], hashes: frozenset[str]) -> npt.NDArray[np.bool_]:
    """Return for each name whether its hash is among `hashes`: bool[len(names)].

    `Ann Example` and `Ann_Example` are the same person.
    """
    spellings = ((name, name.replace(" ", "_"), name.replace("_", " ")) for name in names)
    found = (any(identity_hash(name) in hashes for name in dict.fromkeys(s)) for s in spellings)
    return np.fromiter(found, np.bool_, len(names))
