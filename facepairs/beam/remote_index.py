"""The index of a folder of faces on remote storage, made from the listing of its files alone.

A FaceIndex has a local root. That of a remote folder is a stand-in, which exists nowhere and only
serves to name the folder; `remote_errors` puts the real name into error messages.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from facepairs.beam.paths import BeamPath, Place, files_below
from facepairs.data.index import FaceIndex, Skipped, name_problem, no_images
from facepairs.errors import SHORTAGES, BadData, FacepairsError
from facepairs.support.places import is_leftover


def index_place(root: Place) -> FaceIndex:
    """Index a folder of faces; the same files give the same index wherever they are stored.

    Raises:
        BadData: The folder has no image in a person's folder, or a local one cannot be read.
        OSError: A remote folder cannot be read.
    """
    if isinstance(root, Path):
        return FaceIndex.scan(root)
    skipped: set[Skipped] = set()
    index = FaceIndex.from_files(_photos(root, skipped), stand_in(root), skipped)
    if not len(index):
        raise no_images(str(root), skipped)
    return index


def stand_in(place: Place) -> Path:
    """Return the local path that names a remote one in an index; a local path stays as it is."""
    return place if isinstance(place, Path) else Path(place.text)


@contextmanager
def remote_errors(*places: Place) -> Iterator[None]:
    """Raise OSError as BadData; name these places, not their stand-ins, in error messages.

    A shortage of this machine and a closed standard output stay OSErrors.
    """
    try:
        yield
    except OSError as error:
        # EIO is no shortage here: file systems of Beam raise it for any failure, see `paths`.
        shortage = error.errno in SHORTAGES and error.errno != errno.EIO
        if shortage or (isinstance(error, BrokenPipeError) and not error.filename):
            raise
        place = error.filename or " or ".join(map(str, places))
        raise BadData(f"{place}: {error.strerror}; check the place and its access") from None
    except FacepairsError as error:
        text = str(error)
        for place in places:
            text = text.replace(str(stand_in(place)), str(place))
        raise type(error)(text) from error


def _photos(root: BeamPath, skipped: set[Skipped]) -> Iterator[tuple[str, int]]:
    """Yield path and size of each file that is a photo by its name; add the others to `skipped`."""
    people, people_with_photos = set(), set()
    for name, size in files_below(root):
        parts = name.split("/")
        if any(map(is_leftover, parts)):
            skipped.add(Skipped(name, "leftover"))
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
