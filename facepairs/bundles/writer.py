"""Writing a bundle: whole or not at all, and never over anything but a bundle."""

import hashlib
import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from facepairs.bundles.bundle import CARD, Bundle
from facepairs.bundles.identities import Identities
from facepairs.bundles.manifest import (
    DIGEST,
    IDENTITIES,
    MANIFEST,
    SCHEMA,
    Manifest,
    check_file_name,
    manifest_digest,
    parse_manifest,
)
from facepairs.bundles.measured import MEASURED, Measured, parse_measured
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
    measured: Measured | None = None,
) -> Bundle:
    """Write a bundle whole or not at all, and open it; a bundle at `out` is replaced.

    Args:
        out: The bundle's folder.
        manifest: The fields of the manifest. Schema, checksums, versions and time are set here.
        files: File name → content. The model card is written here.
        identities: The people it knows; None where `files` holds them already.
        measured: What was measured of it; None for nothing, or where `files` holds it already.

    Raises:
        BadBundle: The manifest is unusable, a file is missing, or `out` is something else than a
            bundle.
        BadData: `out` cannot be written.
    """
    check_replaceable(out)
    contents = dict(files)
    if identities is not None:
        contents[IDENTITIES] = identities.to_bytes()
    if measured is not None:
        contents[MEASURED] = measured.to_bytes()
    try:
        fields = parse_manifest(_complete(manifest, contents))
        found = contents.get(MEASURED)
        figures = parse_measured(found, Path(MEASURED)) if found else None
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
    measured: Measured | None = None,
    more_files: Mapping[str, bytes] | None = None,
) -> Bundle:
    """Write a copy of a bundle with some fields of its manifest changed and a new model card.

    Args:
        bundle: The bundle to copy.
        out: The folder of the copy.
        changes: Fields of the manifest; a value of None removes the field.
        identities: The people that the copy knows; None for those of `bundle`.
        measured: What was measured of the copy; None for that of `bundle`.
        more_files: Files that the copy has besides, or instead of those of the same name.

    Raises:
        BadBundle: As `write_bundle` does.
        BadData: As `write_bundle` does.
    """
    merged = {**bundle.raw, **changes}
    values = {name: value for name, value in merged.items() if value is not None}
    files = {name: bundle.read(name) for name in bundle.files}
    return write_bundle(out, values, {**files, **(more_files or {})}, identities, measured)


def model_card(manifest: Manifest, measured: Measured | None = None) -> str:
    """Return the model card as Markdown; what is not known is left out.

    References:
        Mitchell et al., *Model Cards for Model Reporting*, FAT* 2019.
    """
    card: str = _template().render(m=manifest, d=measured)
    return card


@cache  # compiling it takes a tenth of a second, and a training writes two cards
def _template() -> Any:
    import jinja2  # only those who write bundles need it

    text = Path(__file__).with_name("model_card.md.jinja").read_text(encoding="utf-8")
    return jinja2.Template(text, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)


def check_replaceable(out: Path) -> None:
    """Raise BadBundle unless `out` is a bundle and nothing else, empty, or does not exist."""

    def files_of(folder: Path) -> set[str]:
        return {MANIFEST, *Bundle.open(folder, verify_files=False).files}

    check_output_folder(out, "a bundle", files_of, error=BadBundle)


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
