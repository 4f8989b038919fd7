"""Writing a model: whole or not at all, and never over anything but a model."""

import hashlib
import json
import platform
import shutil
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from facepairs.bundles.bundle import CARD, Bundle
from facepairs.bundles.embedder import EMBEDDER, Embedder, is_embedder
from facepairs.bundles.error_profile import MEASURED, ErrorProfile, parse_measured
from facepairs.bundles.manifest import (
    DIGEST,
    IDENTITIES,
    MANIFEST,
    SCHEMA,
    Identities,
    Manifest,
    check_file_name,
    manifest_digest,
    parse_manifest,
)
from facepairs.bundles.model import Model
from facepairs.errors import BadBundle
from facepairs.support.atomic import atomic_folder
from facepairs.support.machine import package_versions
from facepairs.support.places import check_output_folder
from facepairs.version import __version__


def write_bundle(
    out: Path,
    manifest: Mapping[str, Any],
    files: Mapping[str, bytes],
    identities: Identities | None = None,
    profile: ErrorProfile | None = None,
) -> Bundle:
    """Write a bundle whole or not at all, and open it; a bundle at `out` is replaced.

    Args:
        out: The bundle's folder.
        manifest: The fields of the manifest. Schema, checksums, versions and time are set here.
        files: File name → content. The model card is written here.
        identities: The people it knows; None where `files` holds them already.
        profile: What was measured of it; None for nothing, or where `files` holds it already.

    Raises:
        BadBundle: The manifest is unusable, a file is missing, or `out` is something else than a
            bundle.
        BadData: `out` cannot be written.
    """
    check_replaceable(out)
    contents = dict(files)
    if identities is not None:
        contents[IDENTITIES] = identities.to_bytes()
    if profile is not None:
        contents[MEASURED] = profile.to_bytes()
    try:
        fields = parse_manifest(_complete(manifest, contents))
        found = contents.get(MEASURED)
        figures = parse_measured(found, Path(MEASURED)) if found else ErrorProfile()
        contents[CARD] = model_card(fields, figures).encode()
        values = _complete(manifest, contents)
    except (ValueError, TypeError, BadBundle) as error:
        raise BadBundle(f"{out}: cannot write this bundle: {error}") from None
    with atomic_folder(out) as temporary:
        for name, content in contents.items():
            (temporary / name).write_bytes(content)
        text = json.dumps(values, indent=2) + "\n"
        (temporary / MANIFEST).write_text(text, encoding="utf-8")
    return Bundle.open(out)


def rewrite_bundle(
    bundle: Bundle,
    out: Path,
    changes: Mapping[str, Any],
    identities: Identities | None = None,
    profile: ErrorProfile | None = None,
) -> Bundle:
    """Write a copy of a bundle with some fields of its manifest changed and a new model card.

    Args:
        bundle: The bundle to copy.
        out: The folder of the copy.
        changes: Fields of the manifest; a value of None removes the field.
        identities: The people that the copy knows; None for those of `bundle`.
        profile: What was measured of the copy; None for that of `bundle`.

    Raises:
        BadBundle: As `write_bundle` does.
        BadData: As `write_bundle` does.
    """
    merged = {**bundle.raw, **changes}
    values = {name: value for name, value in merged.items() if value is not None}
    files = {name: bundle.read(name) for name in bundle.manifest.files}
    return write_bundle(out, values, files, identities, profile)


def write_calibrated(model: Model, out: Path, profile: ErrorProfile, names: list[str]) -> None:
    """Write a model with another profile, whole or not at all.

    Args:
        model: The model.
        out: Folder to write; a model there is replaced.
        profile: What was measured of it.
        names: The people that it was calibrated on just now; none where the former calibration is
            kept.

    Raises:
        BadBundle: `out` is something else, or a file of the model is damaged by now.
        BadData: `out` cannot be written.
    """
    files, identities = model.files, Identities.of((), names).union(model.origin.identities)
    if isinstance(files, Embedder):
        profile = msgspec.structs.replace(profile, people=identities.calibration)
        _write_embedder(files, out, model.network.content, profile)
    elif not names:
        rewrite_bundle(files, out, {}, profile=profile)
    else:
        finished = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        calibrated = {"people": len(names), "finished": finished}
        changes: dict[str, Any] = {"failures": None, "calibrated": calibrated}
        rewrite_bundle(files, out, changes, identities, profile)


def _write_embedder(embedder: Embedder, out: Path, network: bytes, profile: ErrorProfile) -> None:
    """Write a folder with an embedder's files, its TOML and `measured.json`."""
    import tomli_w

    check_replaceable(out)
    toml = embedder.toml
    values = embedder.raw | {"name": embedder.name, "align": toml.align, "measured": MEASURED}
    values["sha256"] = hashlib.sha256(network).hexdigest()
    with atomic_folder(out) as folder:
        (folder / toml.file).write_bytes(network)
        if toml.people is not None:
            shutil.copyfile(embedder.folder / toml.people, folder / toml.people)
        (folder / EMBEDDER).write_text(tomli_w.dumps(values), encoding="utf-8")
        (folder / MEASURED).write_bytes(profile.to_bytes())


def model_card(manifest: Manifest, profile: ErrorProfile) -> str:
    """Return the model card as Markdown; what is not known is left out.

    References:
        Mitchell et al., *Model Cards for Model Reporting*, FAT* 2019.
    """
    card: str = _template().render(m=manifest, d=profile)
    return card


@cache  # compiling it takes a tenth of a second, and a training writes two cards
def _template() -> Any:
    import jinja2  # only those who write bundles need it

    text = Path(__file__).with_name("model_card.md.jinja").read_text(encoding="utf-8")
    return jinja2.Template(text, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)


def check_replaceable(out: Path) -> None:
    """Raise BadBundle unless `out` is a model and nothing else, empty, or does not exist."""

    def files_of(folder: Path) -> set[str]:
        if not is_embedder(folder):
            return {MANIFEST, *Bundle.open(folder).manifest.files}
        toml = Embedder.open(folder).toml
        names = {EMBEDDER, MEASURED, toml.file, str(toml.people)}
        return names if (folder / MEASURED).is_file() else set()

    check_output_folder(out, "a model", files_of, error=BadBundle)


def _complete(manifest: Mapping[str, Any], contents: Mapping[str, bytes]) -> dict[str, Any]:
    """Return a manifest with all fields that are set here, as it reads back from JSON."""
    for name in contents:
        check_file_name(name)
        if name == MANIFEST:
            raise ValueError(f"{MANIFEST} is written here, not given")
    own = {
        "schema": SCHEMA,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "facepairs": __version__,
            "python": platform.python_version(),
            **package_versions(),
        },
        "files": {
            name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
            for name, content in contents.items()
        },
    }
    whole: dict[str, Any] = json.loads(json.dumps({**manifest, **own}, allow_nan=False))
    return {**whole, DIGEST: manifest_digest(whole)}
