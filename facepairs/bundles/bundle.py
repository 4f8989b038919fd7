"""Opening a bundle: one folder with everything that verification needs.

    bundle/
      manifest.json    what the network takes and returns, how it was made, checksums
      network.onnx     the network that verification runs
      model.keras      the same network, to continue training
      float32.cut      the network in float32, less the weights, which model.keras has; only beside
                       a network in 8 bits, for devices that do not take that
      identities.json  hashes of the people used in training and calibration
      measured.json    calibration, thresholds, and the errors at every threshold
      MODEL_CARD.md    the manifest for people to read

Nothing in a bundle is ever executed or unpickled, and no file outside the folder is read.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from facepairs.bundles.error_profile import MEASURED, ErrorProfile, parse_measured
from facepairs.bundles.manifest import (
    DIGEST,
    IDENTITIES,
    MANIFEST,
    MAX_FILE_BYTES,
    Identities,
    Manifest,
    manifest_digest,
    parse_identities,
    parse_json_object,
    parse_manifest,
    read_regular_file,
)
from facepairs.errors import BadBundle
from facepairs.support.places import refuse_url

NETWORK = "network.onnx"
MODEL = "model.keras"
KERAS_WEIGHTS = "model.weights.h5"  # in it
FLOAT32 = "float32.cut"
CARD = "MODEL_CARD.md"
DEFAULT = "default"  # a folder of that name is given as ./default, or as a Path
FOLDER = Path(__file__).parents[1] / "default_model"  # package data: pip unpacks it as a folder


def bundle_folder(path: Path | str | None) -> Path:
    """Return the folder of a bundle.

    Args:
        path: A bundle, or the run folder that holds it as `bundle/`; None or the word `default`
            mean the package's own bundle.

    Raises:
        BadData: `path` is a URL.
    """
    if path is None or path == DEFAULT:
        return FOLDER
    refuse_url(path)
    folder = Path(path)
    inner = folder / "bundle"
    is_run = (inner / MANIFEST).is_file() and not (folder / MANIFEST).exists()
    return inner if is_run else folder


@dataclass(frozen=True)
class Bundle:
    """A bundle's folder and its checked manifest.

    Files are checked against their SHA-256 when they are read.

    Attributes:
        folder: The bundle's folder.
        manifest: What it says.
        raw: The manifest's values as they stand in the file, unknown keys included.
    """

    folder: Path
    manifest: Manifest
    raw: dict[str, Any]

    @classmethod
    def open(cls, path: Path | str | None) -> "Bundle":
        """Read and check a bundle's manifest.

        Args:
            path: A bundle's folder; None or the word `default` (a str) means the bundle that comes
                with the package.

        Raises:
            BadBundle: The folder is missing, incomplete, damaged or of another schema.
        """
        folder = bundle_folder(path)
        path = folder / MANIFEST
        raw = parse_json_object(read_regular_file(path), path)
        try:
            manifest = parse_manifest(raw)
        except BadBundle as error:
            raise BadBundle(f"{path}: {error}") from None
        if raw.get(DIGEST) != manifest_digest(raw):
            raise BadBundle(
                f"{path}: damaged or edited (its content does not match its SHA-256); copy the "
                "bundle again"
            )
        return cls(folder, manifest, raw)

    def read(self, name: str) -> bytes:
        """Read a file that the manifest lists.

        Raises:
            BadBundle: It is not listed or missing, or its size or SHA-256 differs.
        """
        entry = self.manifest.files.get(name)
        if entry is None:
            raise BadBundle(f"{self.folder}: {MANIFEST} lacks {name}; export the bundle again")
        path = self.folder / name
        data = read_regular_file(path, entry.bytes)
        if hashlib.sha256(data).hexdigest() != entry.sha256:
            raise BadBundle(
                f"{path}: its size or SHA-256 differs from {MANIFEST}; copy the bundle again"
            )
        return data

    @property
    def network_path(self) -> Path:
        """The ONNX file."""
        return self.folder / self.manifest.network.file

    def read_network(self) -> bytes:
        """Read the network's bytes; raises BadBundle."""
        return self.read(self.manifest.network.file)

    def read_float32(self) -> bytes:
        """Return the network in float32, for devices that do not take 8 bits; raises BadBundle."""
        import io
        import zipfile  # some 10 ms, which the CPU does not need
        import zlib

        entry = self.manifest.network.float32
        if entry is None:
            raise BadBundle(f"{self.folder}: has no network in float32")
        rest, at, pieces = self.read(entry.file), 0, list[bytes]()
        try:
            with zipfile.ZipFile(io.BytesIO(self.read(MODEL))) as archive:
                weights = archive.open(KERAS_WEIGHTS).read(MAX_FILE_BYTES)
        except (zipfile.BadZipFile, KeyError, RuntimeError, EOFError, zlib.error) as error:
            raise BadBundle(f"{self.folder / MODEL}: {error}; copy the bundle again") from None
        for place, start, size in entry.weights:
            pieces += [rest[at:place], weights[start : start + size]]
            at = place
        return b"".join([*pieces, rest[at:]])

    def check_all(self) -> bool:
        """Check every file that the manifest lists; raises BadBundle.

        Returns:
            True: all files have checksums.
        """
        for name in self.manifest.files:
            self.read(name)
        return True

    @cached_property
    def identities(self) -> Identities:
        """Hashes of the people used in training and in calibration; raises BadBundle."""
        data, path = self.read(IDENTITIES), self.folder / IDENTITIES
        return parse_identities(data, path, "export the bundle again")

    @cached_property
    def profile(self) -> ErrorProfile:
        """Calibration, thresholds and errors; empty before it is calibrated. Raises BadBundle."""
        if MEASURED not in self.manifest.files:
            return ErrorProfile()
        return parse_measured(self.read(MEASURED), self.folder / MEASURED)
