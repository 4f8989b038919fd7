"""Finds the photos of scored pairs below a folder, and makes the small pictures of the page."""

from pathlib import Path

from facepairs.errors import BadData, BadImage
from facepairs.evaluation.scores import ScoreTable
from facepairs.faces.align import crop_known
from facepairs.faces.inspection import inspect_content
from facepairs.faces.photo_cache import photo_cache
from facepairs.images.crop import CropSpec
from facepairs.images.photo import content_of, open_photo, read_checked
from facepairs.support.html import data_url

WHOLE = CropSpec(frame_px=144, crop_px=144)  # a face's frame, or the centre square of a photo
QUALITY = 80


def find_photos(data: Path | None, scores: ScoreTable) -> dict[str, Path] | None:
    """Find the photos of scored pairs, by name; None without a folder, or without names.

    A name that leads out of the folder is left out: a scores file from elsewhere must not bring
    other files of this machine into a report.

    Raises:
        BadData: The folder, or every photo, is missing.
    """
    if data is None or not scores.has_names:
        return None
    if not data.is_dir():
        raise BadData(f"{data}: no such folder; give the one that the scores' names are below")
    root, names = data.resolve(), sorted({*scores.left, *scores.right})
    found = {name: path for name in names if (path := _find(root, name)) is not None}
    if not found:
        raise BadData(
            f"{data}: holds none of the photos that the scores name, such as {names[0]}; give the "
            "folder that these names are below"
        )
    return found


def _find(root: Path, name: str) -> Path | None:
    """Return the file of a name, or None where there is none below the folder."""
    try:
        path = root / name.replace("\\", "/")
        inside = root in path.parents and ".." not in path.parts
        return path if inside and path.resolve().is_file() else None
    except (OSError, ValueError):
        return None


def photo_url(path: Path, aligned: bool) -> str | None:
    """Return a photo, or its face, as a `data:` URL of a small JPEG; None if it cannot be read.

    Encoded again from its pixels alone, so metadata such as the place of the photo is left out.
    """
    try:
        data = read_checked(path, content_of, str(path))
        record = inspect_content(data, aligned, photo_cache(), str(path))
        pixels = crop_known(open_photo(data, str(path)), record, WHOLE)
    except BadImage:
        return None
    return data_url(pixels, "JPEG", quality=QUALITY, optimize=True)
