"""The bundle that comes with the package, and the word that names it."""

from pathlib import Path

from facepairs.errors import BadBundle

DEFAULT = "default"  # a folder of that name is given as ./default, or as a Path
FOLDER = Path(__file__).parents[1] / "default_model"  # package data: pip unpacks it as a folder


def bundle_folder(path: Path | str | None) -> Path:
    """Return the folder of the package's own bundle for None or the word `default`, else `path`.

    Raises:
        BadBundle: The package comes without a bundle; the message says how to train one.
    """
    if not (path is None or path == DEFAULT):
        return Path(path)
    if not (FOLDER / "manifest.json").is_file():
        raise BadBundle(
            "this facepairs comes without a default model; train one on your photos (facepairs "
            "train PHOTOS --out run) and give it with --bundle run/bundle"
        )
    return FOLDER
