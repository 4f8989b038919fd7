"""Writing a bundle: whole or not at all, and never over anything but a bundle."""

import hashlib
import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from facepairs.bundles.bundle import CARD, Bundle
from facepairs.bundles.identities import Identities
from facepairs.bundles.manifest import (
    DIGEST,
    ERRORS,
    IDENTITIES,
    MANIFEST,
    SCHEMA,
    Manifest,
    check_file_name,
    manifest_digest,
    parse_manifest,
    template_points,
)
from facepairs.bundles.rates import ErrorTable
from facepairs.errors import BadBundle
from facepairs.support.atomic import atomic_folder
from facepairs.support.places import check_output_folder
from facepairs.version import __version__

FILLED_IN = ("schema", "created", "versions", "files", "template", DIGEST)
"""Keys that `write_bundle` sets."""


def write_bundle(
    out: Path,
    manifest: Mapping[str, Any],
    files: Mapping[str, bytes | Path],
    identities: Identities | None = None,
    errors: ErrorTable | None = None,
) -> Bundle:
    """Write a bundle whole or not at all, and open it; a bundle at `out` is replaced.

    Args:
        out: The bundle's folder.
        manifest: The fields of the manifest; those in `FILLED_IN` are set here.
        files: File name → content, or a file to copy. A model card is added where there is none.
        identities: The people it knows; None where `manifest` and `files` hold them already.
        errors: Its errors; None where they are not known or `files` holds them already.

    Raises:
        BadBundle: The manifest is unusable, a file is missing, or `out` is something else than a
            bundle.
        BadData: `out` cannot be written.
    """
    check_replaceable(out)
    values, contents = dict(manifest), dict(files)
    if identities is not None:
        values["identities"] = identities.summary()
        contents[IDENTITIES] = identities.to_bytes()
    if errors is not None:
        contents[ERRORS] = msgspec.json.format(msgspec.json.encode(errors), indent=0) + b"\n"
    try:
        data = {name: _content(name, value) for name, value in contents.items()}
        if CARD not in data:
            table = _errors_in(data)
            data[CARD] = model_card(parse_manifest(_complete(values, data)), table).encode()
        checked = _complete(values, data)
        parse_manifest(checked)
    except (ValueError, TypeError, BadBundle) as error:
        raise BadBundle(f"{out}: cannot write this bundle: {error}") from None
    with atomic_folder(out) as temporary:
        for name, content in data.items():
            (temporary / name).write_bytes(content)
        text = json.dumps(checked, indent=2) + "\n"
        (temporary / MANIFEST).write_text(text, encoding="utf-8")
    return Bundle.open(out)


def rewrite_bundle(
    bundle: Bundle,
    out: Path,
    changes: Mapping[str, Any],
    identities: Identities | None = None,
    errors: ErrorTable | None = None,
    more_files: Mapping[str, bytes] = MappingProxyType({}),
) -> Bundle:
    """Write a copy of a bundle with some fields of its manifest changed and a new model card.

    Args:
        bundle: The bundle to copy.
        out: The folder of the copy.
        changes: Fields of the manifest; a value of None removes the field.
        identities: The people that the copy knows; None for those of `bundle`.
        errors: The errors of the copy; None for those of `bundle`.
        more_files: Files that the copy has besides, or instead of those of the same name.

    Raises:
        BadBundle: As `write_bundle` does.
        BadData: As `write_bundle` does.
    """
    values = {name: value for name, value in bundle.raw.items() if name not in FILLED_IN}
    values = {name: value for name, value in {**values, **changes}.items() if value is not None}
    files: dict[str, bytes | Path] = {name: bundle.read(name) for name in bundle.files}
    files.pop(CARD, None)
    files |= more_files
    return write_bundle(out, values, files, identities, errors)


def model_card(manifest: Manifest, errors: ErrorTable | None = None) -> str:
    """Return the model card as Markdown; what neither the manifest nor the errors hold is left out.

    References:
        Mitchell et al., *Model Cards for Model Reporting*, FAT* 2019.
    """
    card: str = _template().render(m=manifest, e=errors)
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


def _complete(values: Mapping[str, Any], data: Mapping[str, bytes]) -> dict[str, Any]:
    """Return a manifest with all fields that are set here, as it reads back from JSON."""
    files = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        for name, content in data.items()
    }
    created = datetime.now(UTC).isoformat(timespec="seconds")
    own = {"schema": SCHEMA, "created": created, "versions": _versions(), "files": files}
    if values.get("alignment") == "landmarks-5":
        own["template"] = template_points()
    whole: dict[str, Any] = json.loads(json.dumps({**values, **own}, allow_nan=False))
    whole[DIGEST] = manifest_digest(whole)
    return whole


def _errors_in(data: Mapping[str, bytes]) -> ErrorTable | None:
    return msgspec.json.decode(data[ERRORS], type=ErrorTable) if ERRORS in data else None


def _content(name: str, value: bytes | Path) -> bytes:
    check_file_name(name)
    if name == MANIFEST:
        raise ValueError(f"{MANIFEST} is written here, not given")
    if isinstance(value, bytes):
        return value
    try:
        return value.read_bytes()
    except OSError as error:
        raise ValueError(f"{value}: {error.strerror}") from None


def _versions() -> dict[str, str]:
    """Return the installed versions of the packages that make and run a bundle."""
    versions = {"facepairs": __version__, "python": platform.python_version()}
    for name in ("keras", "numpy", "onnxruntime", "pillow", "tensorflow"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions
