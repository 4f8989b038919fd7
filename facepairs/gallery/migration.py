"""Enrol the people of a gallery again, with another model: from their photos, found by content."""

from collections import Counter, defaultdict
from collections.abc import Collection
from pathlib import Path

from facepairs.bundles.model import Model
from facepairs.data.index import FaceIndex, photos_below
from facepairs.errors import BadConfig, BadData, NotEnrolled
from facepairs.gallery.enrol import Refused
from facepairs.gallery.gallery import Gallery
from facepairs.gallery.stores.base import DAY_S, now_s
from facepairs.support import console
from facepairs.support.parallel import thread_map
from facepairs.support.places import file_sha256
from facepairs.support.results import Result


class Migration(Result, frozen=True, kw_only=True):
    """The result of enrolling the people of a gallery again.

    Attributes:
        enrolled: Number of photos that were added to the new gallery.
        known: Number of photos that were there already, from an earlier call.
        without_photo: Number of photos that were not found, by person.
        refused: Photos that were found and cannot be used, such as those without a face.
        lost: People of the old gallery who have no photo in the new one.
        people: Number of people in the new gallery.
        photos: Number of their photos.
    """

    enrolled: int
    known: int
    without_photo: dict[str, int]
    refused: list[Refused]
    lost: list[str]
    people: int
    photos: int


def migrate_gallery(old: Gallery, new: Gallery, folder: Path | str) -> Migration:
    """Enrol the people of a gallery in another one, whose model is another.

    Each photo is told by its content, whatever its name or place. It keeps its person and the date
    on which it expires. Of several faces, the one that fits the person's other photos is enrolled.
    Each batch of photos is on disk before the next one, so it goes on when it is called again.

    Examples:
        >>> new = Verifier.load("mine")
        >>> with Gallery("old.db") as old, Gallery("new.db", new, write=True) as gallery:
        ...     migrate_gallery(old, gallery, "photos").lost

    Args:
        old: The gallery; nothing is changed there.
        new: A new gallery, or one that an earlier call has begun.
        folder: The photos, at any depth.

    Raises:
        BadConfig: Both galleries are of the same model.
        NotEnrolled: The old gallery is empty.
        BadData: The folder cannot be read, or the new gallery cannot be written.
    """
    check_migration(old, new.verifier.model, folder)
    faces = {face.digest: face for face in old.store.faces()}
    found = _find_photos(Path(folder), faces)
    by_expiry = defaultdict[int | None, dict[str, str]](dict)
    for digest, place in found.items():
        face = faces[digest]
        by_expiry[face.expires][f"{face.person}/{digest.hex()}"] = place
    enrolments = []
    for expires, places in by_expiry.items():
        days = None if expires is None else max(1, expires - now_s()) / DAY_S
        index = FaceIndex.from_places(places, Path(folder))
        enrolments.append(new.add_folder(index, days, any_quality=True, unnamed=True))
    people = new.people()
    missing = Counter(face.person for digest, face in faces.items() if digest not in found)
    return Migration(
        enrolled=sum(enrolment.enrolled for enrolment in enrolments),
        known=sum(enrolment.known for enrolment in enrolments),
        without_photo=dict(sorted(missing.items())),
        refused=[photo for enrolment in enrolments for photo in enrolment.refused],
        lost=sorted({face.person for face in faces.values()} - {one.name for one in people}),
        people=len(people),
        photos=sum(one.photos for one in people),
    )


def check_migration(old: Gallery, model: Model, folder: Path | str) -> None:
    """Raise the errors of `migrate_gallery` that can be known before there is a new gallery."""
    if not old.people():
        raise NotEnrolled(f"{old.place}: holds no people")
    if old.model and old.model.sha256 == model.network.embedder_sha256:
        raise BadConfig(f"{old.place}: is of this model already; give another one", "bundle")
    if not Path(folder).is_dir():
        raise BadData(f"{folder}: no such folder; give the one of the photos")


def _find_photos(folder: Path, wanted: Collection[bytes]) -> dict[bytes, str]:
    """Return SHA-256 → path below the folder of the photos that are wanted."""
    names, found = list(photos_below(folder)), dict[bytes, str]()
    progress = console.progress("looking for the photos")
    hashed = thread_map(lambda name: file_sha256(folder / name), names)
    for done, (name, sha256) in enumerate(zip(names, hashed, strict=True), 1):
        digest = bytes.fromhex(sha256)
        if digest in wanted:
            found.setdefault(digest, name)
        progress(done, len(names))
    return found
