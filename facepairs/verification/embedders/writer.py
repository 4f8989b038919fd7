"""Writing an external embedder with what was measured of it: whole or not at all."""

import shutil
from pathlib import Path

from facepairs.errors import BadBundle
from facepairs.support.atomic import atomic_folder
from facepairs.support.checksum import file_sha256
from facepairs.support.places import check_output_folder
from facepairs.verification.embedders.embedder import ExternalEmbedder, read_toml
from facepairs.verification.embedders.measured import MEASURED, Measured
from facepairs.verification.embedders.place import EMBEDDER


def write_embedder(model: ExternalEmbedder, out: Path, measured: Measured) -> ExternalEmbedder:
    """Write a folder with the embedder's files, its TOML and `measured.json`, and open it.

    Raises:
        BadBundle: `out` is something else than such a folder.
        BadData: `out` cannot be written.
    """
    import tomli_w

    check_replaceable(out)
    values = read_toml(model.path)
    for key in ("threshold", "calibration"):
        values.pop(key, None)
    values |= {"name": model.model, "align": model.align, "measured": MEASURED}
    values["sha256"] = file_sha256(model.network_path)  # the figures are of this network alone
    with atomic_folder(out) as folder:
        shutil.copyfile(model.network_path, folder / model.file)
        if model.people is not None:
            shutil.copyfile(model.folder / model.people, folder / model.people)
        (folder / EMBEDDER).write_text(tomli_w.dumps(values), encoding="utf-8")
        (folder / MEASURED).write_bytes(measured.to_bytes())
    return ExternalEmbedder.open(out)


def check_replaceable(out: Path) -> None:
    """Raise BadBundle unless `out` is what `write_embedder` wrote, empty, or does not exist."""

    def files_of(folder: Path) -> set[str]:
        model = ExternalEmbedder.open(folder)
        names = {EMBEDDER, MEASURED, model.file, str(model.people)}
        return names if (folder / MEASURED).is_file() else set()

    check_output_folder(out, "an embedder", files_of, error=BadBundle)
