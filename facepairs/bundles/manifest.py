"""A bundle's `manifest.json`: its fields, checked one by one, so that nothing later can stumble."""

import hashlib
import json
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar, cast

from facepairs.bundles.calibration import Calibration
from facepairs.errors import BadBundle
from facepairs.images.photo import Framing

SCHEMA = 1
MANIFEST = "manifest.json"
IDENTITIES = "identities.json"
DIGEST = "manifest_sha256"
MAX_MANIFEST_BYTES = 16 * 2**20  # Python's objects take twenty times that at worst
MAX_IDENTITIES_BYTES = 32 * 2**20  # 1.6 million people
MAX_FILE_BYTES = 512 * 2**20

Kind = Literal["pair", "embedding"]
INPUTS = {"pair": 2, "embedding": 1}
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a bundle says of itself.

    `threshold` is on the network's score: accept when score >= threshold. `raw` is the whole dict
    as it stands in the file, with keys of later versions too.
    """

    kind: Kind
    model: str
    framing: Framing
    network_file: str
    inputs: tuple[str, ...]
    output: str
    calibration: Calibration
    threshold: float
    raw: Mapping[str, Any]

    @property
    def ece(self) -> float | None:
        """The calibration's expected calibration error on held-out people, if it was measured."""
        value = self.raw["calibration"].get("ece")
        return None if value is None else float(value)

    @property
    def threshold_source(self) -> str:
        """Where `threshold` comes from, in words."""
        return str(self.raw.get("threshold_source", ""))

    @property
    def thresholds(self) -> list[dict[str, Any]]:
        """Thresholds by target FMR, as the evaluation on held-out people wrote them."""
        return list(self.raw.get("thresholds", []))

    @property
    def training(self) -> dict[str, Any]:
        """Protocol, seed, counts and configuration of the training."""
        return dict(self.raw.get("training", {}))

    @property
    def results(self) -> dict[str, Any]:
        """Protocol results."""
        return dict(self.raw.get("results", {}))

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the software that wrote the bundle."""
        return dict(self.raw.get("versions", {}))

    @property
    def note(self) -> str:
        """A free remark."""
        return str(self.raw.get("note", ""))

    @property
    def created(self) -> str:
        """When the bundle was written, ISO 8601 in UTC."""
        return str(self.raw.get("created", ""))


def read_regular(path: Path, limit_bytes: int) -> bytes:
    """Read at most limit_bytes + 1 bytes; nothing but a regular file is opened."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise BadBundle(f"{path}: not a regular file; copy the bundle again")
        with path.open("rb") as handle:
            size = min(limit_bytes, os.fstat(handle.fileno()).st_size)
            return handle.read(size + 1)
    except FileNotFoundError:
        raise BadBundle(f"{path}: missing; give a complete bundle") from None
    except OSError as error:
        raise BadBundle(f"{path}: {error.strerror}; make it readable") from None


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")


def json_object(data: bytes, path: Path) -> dict[str, Any]:
    """Read a JSON object strictly (UTF-8, no NaN); raises BadBundle that names the file."""
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadBundle(f"{path}: not JSON ({error}); copy the bundle again") from None
    if not isinstance(value, dict):
        raise BadBundle(f"{path}: a JSON object is expected; copy the bundle again")
    return value


def take(data: Mapping[str, Any], name: str, kind: type[T], where: str = "") -> T:
    """Give a field of exactly that type; a whole number serves as float."""
    if name not in data:
        raise ValueError(f"no {where}{name}; export the bundle again")
    value = data[name]
    if kind is float and type(value) is int and abs(value) < 2**53:
        value = float(value)
    if type(value) is not kind:
        raise ValueError(f"{where}{name} is {_short(value)}, not {_JSON_NAMES[kind]}")
    return value


_JSON_NAMES = {str: "a text", int: "a whole number", float: "a number", list: "a list"} | {
    dict: "an object"
}


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def parse_manifest(manifest: dict[str, Any]) -> Manifest:
    """Check a manifest; raises ValueError or BadBundle without the file's name."""
    schema = take(manifest, "schema", int)
    if schema != SCHEMA:
        raise ValueError(_other_schema(schema, manifest))
    kind = take(manifest, "kind", str)
    if kind not in INPUTS:
        raise ValueError(f"kind is {_short(kind)}, not 'pair' or 'embedding'")
    frame = take(manifest, "framing", dict)
    network = take(manifest, "network", dict)
    inputs = take(network, "inputs", list, "network.")
    if len(inputs) != INPUTS[kind] or not all(type(name) is str for name in inputs):
        raise ValueError(
            f"network.inputs is {_short(inputs)}, not {INPUTS[kind]} name(s), as '{kind}' has"
        )
    threshold = take(manifest, "threshold", float)
    if not math.isfinite(threshold):
        raise ValueError(f"threshold is {threshold}, not a finite number")
    network_file = take(network, "file", str, "network.")
    calibration = Calibration.from_json(take(manifest, "calibration", dict))
    _check_files(take(manifest, "files", dict), network_file)
    _check_optional(manifest)
    return Manifest(
        kind=cast("Kind", kind),
        model=take(manifest, "model", str),
        framing=Framing(*(take(frame, name, int, "framing.") for name in ("frame_px", "crop_px"))),
        network_file=network_file,
        inputs=tuple(inputs),
        output=take(network, "output", str, "network."),
        calibration=calibration,
        threshold=threshold,
        raw=manifest,
    )


def _other_schema(schema: int, manifest: Mapping[str, Any]) -> str:
    """Say who made a bundle of another schema, as far as it tells, and what to do."""
    versions = manifest.get("versions")
    maker = versions.get("facepairs") if isinstance(versions, dict) else None
    told = f" {maker}" if isinstance(maker, str) and maker.isprintable() and len(maker) < 30 else ""
    age, remedy = (
        ("a newer", "upgrade facepairs")
        if schema > SCHEMA
        else ("an older", "train or export it again with this version, or install that one")
    )
    return f"made by {age} facepairs{told} (schema {schema}, this one reads {SCHEMA}); {remedy}"


def manifest_digest(manifest: Mapping[str, Any]) -> str:
    """Give the SHA-256 (hex) over a manifest's values, however they are spelled, but for itself."""
    values = {name: value for name, value in manifest.items() if name != DIGEST}
    return hashlib.sha256(
        json.dumps(values, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


def check_digest(manifest: Mapping[str, Any]) -> None:
    """Compare a manifest with its own sum; older bundles have none. Raises ValueError."""
    if DIGEST in manifest and manifest[DIGEST] != manifest_digest(manifest):
        raise ValueError("damaged or edited (its own SHA-256 does not fit); copy the bundle again")


def check_name(name: str) -> None:
    """Refuse a file name that is not that of a file right in the bundle; raises ValueError."""
    if name in ("", ".", "..") or any(mark in name for mark in "/\\:\0"):
        raise ValueError(f"file name {_short(name)} could point outside the bundle")


def _check_files(files: dict[str, Any], network_file: str) -> None:
    for name, entry in files.items():
        check_name(name)
        if type(entry) is not dict:
            raise ValueError(f"files.{name} is {_short(entry)}, not an object")
        size = take(entry, "bytes", int, f"files.{name}.")
        most = MAX_IDENTITIES_BYTES if name == IDENTITIES else MAX_FILE_BYTES
        if not 0 <= size <= most:
            raise ValueError(f"files.{name}.bytes is {size}, not from 0 to {most}")
        take(entry, "sha256", str, f"files.{name}.")
    for name in (network_file, IDENTITIES):
        if name not in files:
            raise ValueError(f"files lists no {_short(name)}; export the bundle again")


def _check_optional(manifest: dict[str, Any]) -> None:
    """Check the type of what may be absent."""
    kinds: dict[str, type] = dict.fromkeys(("training", "results", "versions", "identities"), dict)
    kinds |= dict.fromkeys(("threshold_source", "note", "created"), str) | {"thresholds": list}
    for name, kind in kinds.items():
        if name in manifest:
            take(manifest, name, kind)
    if not all(type(item) is dict for item in manifest.get("thresholds", [])):
        raise ValueError("thresholds holds something else than objects")
    calibration, identities = manifest["calibration"], manifest.get("identities", {})
    for where, fields, names in (
        ("calibration.", calibration, ("genuine_pairs", "impostor_pairs")),
        ("identities.", identities, ("training", "calibration")),
    ):
        for name in names:
            if name in fields and take(fields, name, int, where) < 0:
                raise ValueError(f"{where}{name} is {fields[name]}, below 0")
    ece = calibration.get("ece")
    if ece is not None and not 0 <= take(calibration, "ece", float, "calibration.") <= 1:
        raise ValueError(f"calibration.ece is {ece}, outside 0 to 1")
