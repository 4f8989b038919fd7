"""The index of a folder of faces on remote storage, made from the listing of its files alone.

A FaceIndex has a local root. That of a remote folder is a stand-in, which exists nowhere and only
serves to name the folder; `remote_names` puts the real name into error messages.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from facepairs.beam.paths import BeamPath, Place, files_below
from facepairs.data.index import READABLE, FaceIndex, Skipped, name_problem
from facepairs.errors import BadData, FacepairsError


def index_place(root: Place) -> FaceIndex:
    """Index a folder of faces; the same files give the same index wherever they are stored.

    Raises:
        BadData: The folder is missing, not readable, or has no image in a person's folder.
    """
    if isinstance(root, Path):
        return FaceIndex.scan(root)
    skipped: set[Skipped] = set()
    index = FaceIndex.from_files(_photos(root, skipped), stand_in(root), skipped)
    if not len(index):
        raise BadData(
            f"{root}: no images; expected {root}/Person_Name/photo.jpg ({', '.join(READABLE)})"
        )
    return index


def stand_in(place: Place) -> Path:
    """Return the local path that names a remote one in an index; a local path stays as it is."""
    return place if isinstance(place, Path) else Path(place.text)


@contextmanager
def remote_names(*places: Place) -> Iterator[None]:
    """Replace the stand-ins of these places by their real names in error messages."""
    try:
        yield
    except FacepairsError as error:
        text = str(error)
        for place in places:
            text = text.replace(str(stand_in(place)), str(place))
        raise type(error)(text) from error


def _photos(root: BeamPath, skipped: set[Skipped]) -> Iterator[tuple[str, int]]:
    """Yield path and size of each file that is a photo by its name; add the others to `skipped`."""
    try:
        entries = files_below(root)
    except OSError as error:
        raise BadData(
            f"{root}: {error.strerror}; give a folder of Person_Name folders with photos"
        ) from None
    people, people_with_photos = set(), set()
    for name, size in entries:
        parts = name.split("/")
        if any(part.startswith(".") for part in parts):
            continue
        if len(parts) == 1:
            skipped.add(Skipped(name, "stray_file"))
            continue
        people.add(parts[0])
        problem = "nested_folder" if len(parts) > 2 else name_problem(parts[1])
        if problem:
            skipped.add(Skipped("/".join(parts[:2]), problem))
        else:
            people_with_photos.add(parts[0])
            yield name, size
    skipped.update(Skipped(person, "empty_person") for person in people - people_with_photos)
