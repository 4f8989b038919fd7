"""A bundle: one folder that is all `verify` needs, read with care and written whole or not at all.

    bundle/
      manifest.json    what the network takes and gives, calibration, thresholds, results, checksums
      network.onnx     the network that verification runs
      model.keras      the same network, to go on training
      identities.json  hashes of the people whom training and calibration have seen
      MODEL_CARD.md    all of it for people

Nothing in a bundle is ever executed or unpickled, and no file outside the folder is read.
"""

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from facepairs import __version__
from facepairs.bundles.default import bundle_folder
from facepairs.bundles.manifest import (
    DIGEST,
    IDENTITIES,
    MANIFEST,
    MAX_MANIFEST_BYTES,
    SCHEMA,
    Manifest,
    check_digest,
    check_name,
    json_object,
    manifest_digest,
    parse_manifest,
    read_regular,
    take,
)
from facepairs.errors import BadBundle
from facepairs.support.atomic import atomic_folder

NETWORK = "network.onnx"
MODEL = "model.keras"
CARD = "MODEL_CARD.md"


def identity_hash(name: str) -> str:
    """Give 16 hex digits for a person's name: BLAKE2b (RFC 7693) of 8 bytes over NFC and UTF-8.

    It keeps names out of a shared bundle's text, no more: whoever guesses a name can check it.
    """
    text = unicodedata.normalize("NFC", name)  # macOS hands out names decomposed
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def identity_lists(
    training: Iterable[str],
    calibration: Iterable[str],
    *,
    known: tuple[Iterable[str], Iterable[str]] = ((), ()),
) -> tuple[bytes, dict[str, Any]]:
    """Give the bytes of `identities.json` and the manifest's `identities` for two lists of names.

    `known` are hashes, of another bundle, that join the two lists. `digest` is the SHA-256 of these
    bytes, the same for the same people in any order.
    """
    lists = {
        "training": sorted({identity_hash(name) for name in training}.union(known[0])),
        "calibration": sorted({identity_hash(name) for name in calibration}.union(known[1])),
    }
    data = (json.dumps({"hash": "blake2b-8", **lists}, indent=0) + "\n").encode()
    counts = {name: len(hashes) for name, hashes in lists.items()}
    return data, {"digest": hashlib.sha256(data).hexdigest(), **counts}


@dataclass(frozen=True, kw_only=True)
class Bundle(Manifest):
    """A folder and its checked manifest; files are checked against their SHA-256 when read."""

    folder: Path

    @classmethod
    def open(cls, path: Path | str | None, verify_files: bool = True) -> "Bundle":
        """Read and check a bundle's manifest and, unless told not to, network and identities.

        None and the word `default` (a str) name the bundle that comes with the package. Raises
        BadBundle for a folder that is missing, incomplete, damaged or of another schema.
        """
        folder = bundle_folder(path)
        _check_folder(folder)
        manifest = _read_manifest(folder / MANIFEST)
        try:
            bundle = cls(folder=folder, **vars(parse_manifest(manifest)))
            check_digest(manifest)
        except (ValueError, BadBundle) as error:
            raise BadBundle(f"{folder / MANIFEST}: {error}") from None
        if verify_files:
            bundle.read(bundle.network_file)
            bundle.read(IDENTITIES)
        return bundle

    def read(self, name: str) -> bytes:
        """Read a file that the manifest lists; raises BadBundle unless size and SHA-256 match."""
        entry = self.raw["files"].get(name)
        if entry is None:
            raise BadBundle(f"{self.folder}: {MANIFEST} lists no {name}; export the bundle again")
        path = self.folder / name
        data = read_regular(path, entry["bytes"])
        if len(data) != entry["bytes"]:
            raise BadBundle(
                f"{path}: its size is not the {entry['bytes']} bytes that {MANIFEST} promises; "
                f"copy the bundle again"
            )
        if hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise BadBundle(
                f"{path}: its content is not what {MANIFEST} promises (SHA-256); "
                f"copy the bundle again"
            )
        return data

    def check_all(self) -> None:
        """Check every file that the manifest lists; raises BadBundle."""
        for name in self.raw["files"]:
            self.read(name)

    @cached_property
    def identities(self) -> tuple[frozenset[str], frozenset[str]]:
        """The hashes of the people whom training and whom calibration have seen."""
        path = self.folder / IDENTITIES
        data = json_object(self.read(IDENTITIES), path)
        try:
            lists = [take(data, name, list) for name in ("training", "calibration")]
            if not all(type(item) is str for hashes in lists for item in hashes):
                raise ValueError("it holds something else than hashes; export the bundle again")
        except ValueError as error:
            raise BadBundle(f"{path}: {error}") from None
        return frozenset(lists[0]), frozenset(lists[1])

    def knows(self, names: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Say for each person's name whether training or calibration has seen it: bool[names]."""
        training, calibration = self.identities
        return _among(names, training | calibration)

    def trained_on(self, names: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Say for each person's name whether the network was trained on it: bool[names]."""
        return _among(names, self.identities[0])


def _among(names: Sequence[str], hashes: frozenset[str]) -> npt.NDArray[np.bool_]:
    return np.fromiter((identity_hash(name) in hashes for name in names), np.bool_, len(names))


def _check_folder(folder: Path) -> None:
    try:
        what = "" if folder.is_dir() else "not a folder" if folder.exists() else "no such folder"
    except OSError as error:
        what = error.strerror or str(error)
    if what:
        raise BadBundle(f"{folder}: {what}; give a bundle's folder, which holds {MANIFEST}")


def _read_manifest(path: Path) -> dict[str, Any]:
    data = read_regular(path, MAX_MANIFEST_BYTES)
    if len(data) > MAX_MANIFEST_BYTES:
        raise BadBundle(f"{path}: over {MAX_MANIFEST_BYTES >> 20} MB; give a facepairs bundle")
    return json_object(data, path)


def write_bundle(
    out: Path, manifest: Mapping[str, Any], files: Mapping[str, bytes | Path]
) -> Bundle:
    """Write a bundle whole or not at all, and open it.

    `manifest` holds every field of the format but `schema`, `created`, `versions`, `files` and
    `manifest_sha256`, which are filled in here; `files` are file name → content or file to copy. A
    bundle that stood at `out` is replaced. Raises BadBundle for an unusable manifest, a missing
    file or an `out` that is anything else than a bundle, BadData where the place cannot be written.
    """
    check_replaceable(out)
    try:
        contents = {name: _content(name, value) for name, value in files.items()}
        whole = dict(manifest) | {
            "schema": SCHEMA,
            "created": _now(),
            "versions": _versions(),
            "files": {
                name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
                for name, data in contents.items()
            },
        }
        whole = json.loads(json.dumps(whole, allow_nan=False))
        whole[DIGEST] = manifest_digest(whole)
        parse_manifest(whole)
        text = json.dumps(whole, indent=2) + "\n"
    except (ValueError, TypeError, BadBundle) as error:
        raise BadBundle(f"{out}: cannot write this bundle: {error}") from None
    with atomic_folder(out) as temporary:
        for name, data in contents.items():
            (temporary / name).write_bytes(data)
        (temporary / MANIFEST).write_text(text, encoding="utf-8")
    return Bundle.open(out)


def check_replaceable(out: Path) -> None:
    """Refuse to put a bundle in the place of somebody's photos."""
    try:
        free = not out.exists() or (out / MANIFEST).is_file()
        free = free or (out.is_dir() and not any(out.iterdir()))
    except OSError as error:
        raise BadBundle(f"{out}: {error.strerror}; choose another place") from None
    if not free:
        raise BadBundle(f"{out}: exists and is no bundle; choose another place or remove it")


def _content(name: str, value: bytes | Path) -> bytes:
    check_name(name)
    if name == MANIFEST:
        raise ValueError(f"{MANIFEST} is written here, not given")
    if isinstance(value, bytes):
        return value
    try:
        return value.read_bytes()
    except OSError as error:
        raise ValueError(f"{value}: {error.strerror}") from None


def _now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
    """Give the versions of what makes and runs a bundle, as far as installed."""
    import platform
    from importlib import metadata

    found = {"facepairs": __version__, "python": platform.python_version()}
    for name in ("keras", "numpy", "onnxruntime", "pillow", "tensorflow"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
