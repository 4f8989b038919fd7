"""The bundle that comes with the package, and the word that names it."""

from pathlib import Path

from facepairs.errors import BadBundle
from facepairs.support.places import refuse_url

DEFAULT = "default"  # a folder of that name is given as ./default, or as a Path
MANIFEST = "manifest.json"
FOLDER = Path(__file__).parents[1] / "default_model"  # package data: pip unpacks it as a folder


def bundle_folder(path: Path | str | None) -> Path:
    """Return the folder of a bundle.

    Args:
        path: A bundle, or the run folder that holds it as `bundle/`; None or the word `default`
            mean the package's own bundle.

    Raises:
        BadBundle: The package comes without a bundle; the message says how to train one.
        BadData: `path` is a URL.
    """
    if not (path is None or path == DEFAULT):
        refuse_url(path)
        folder = Path(path)
        inner = folder / "bundle"
        is_run = not (folder / MANIFEST).exists() and (inner / MANIFEST).is_file()
        return inner if is_run else folder
    if not (FOLDER / MANIFEST).is_file():
        raise BadBundle(
            "this facepairs comes without a default model; train one on your photos (facepairs "
            "train PHOTOS --out run) and give it with --bundle run/bundle"
        )
    return FOLDER
