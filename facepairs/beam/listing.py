"""The index of a folder of faces that lies elsewhere, from the listing of its files alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

from facepairs.beam.places import Place, Uri, files_below
from facepairs.data.index import READABLE, FaceIndex, Skipped, why_not_readable
from facepairs.errors import BadData


def index_place(root: Place) -> FaceIndex:
    """Index a folder of faces; the same files give the same index wherever they lie.

    Raises BadData when the folder is missing, not readable, or holds no image in a person's
    folder.
    """
    if isinstance(root, Path):
        return FaceIndex.scan(root)
    skipped: set[Skipped] = set()
    # A Uri does all that is asked of an index's root and of the paths below it.
    index = FaceIndex.from_files(_photos(root, skipped), cast(Path, root), skipped)
    if not len(index):
        raise BadData(
            f"{root}: no images; expected {root}/Person_Name/photo.jpg ({', '.join(READABLE)})"
        )
    return index


def _photos(root: Uri, skipped: set[Skipped]) -> Iterator[tuple[str, int]]:
    """Yield path and size of what is a photo by its name, and tell what else there is."""
    try:
        every = files_below(root)
    except OSError as error:
        raise BadData(
            f"{root}: {error.strerror}; give a folder of Person_Name folders with photos"
        ) from None
    used, seen = set(), set()
    for name, size in every:
        parts = name.split("/")
        if any(part.startswith(".") for part in parts):
            continue
        if len(parts) == 1:
            skipped.add(Skipped(name, "stray_file"))
            continue
        seen.add(parts[0])
        reason = "nested_folder" if len(parts) > 2 else why_not_readable(parts[1])
        if reason:
            skipped.add(Skipped("/".join(parts[:2]), reason))
        else:
            used.add(parts[0])
            yield name, size
    skipped.update(Skipped(who, "empty_person") for who in seen - used)
