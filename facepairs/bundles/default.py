"""The bundle that comes with the package, and the word that names it."""

from pathlib import Path

from facepairs.errors import BadBundle

DEFAULT = "default"  # a folder of that name is given as ./default, or as a Path
FOLDER = Path(__file__).parents[1] / "default_model"  # package data: pip unpacks it as a folder


def bundle_folder(path: Path | str | None) -> Path:
    """Give a bundle's folder: the package's own for None and the word `default`, else `path`.

    Raises BadBundle, with how to train one, where the package's own is asked for and not there.
    """
    if not (path is None or path == DEFAULT):
        return Path(path)
    if not (FOLDER / "manifest.json").is_file():
        raise BadBundle(
            "this facepairs comes without a default model; train one on your photos (facepairs "
            "train PHOTOS --out run) and give it with --model run/bundle"
        )
    return FOLDER
