"""Read a folder of people as the user left it: the folder of each face names its person.

    people/
      person_0001/holiday.jpg          a photo on which this person is the most prominent face
      person_0001/party_face2.jpg      cut out of a photo on which somebody else is
      Anna/…                           a person whose folder was renamed
      _apart/one_photo/…               photos and faces of people of whom there is no other one
      _apart/uncertain/…               faces that are too unclear to be grouped
      _apart/no_face/…                 photos without a face
      faces.csv                        every face: photo, box, person, file
      people.html                      a page to look through

A face is recognised by the content of its photo and its place in it; a file by its content. So
folders may be renamed and joined, files moved, renamed, copied and deleted. Commands that take a
folder of people leave `_apart` out.
"""

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from facepairs.data.index import APART, READABLE, UNNAMED
from facepairs.errors import BadConfig, BadData
from facepairs.gallery.identity import clean_name
from facepairs.grouping.collection import NO_FACE, Collection, read_photos
from facepairs.grouping.faces_list import FACES, NOBODY, SAME_PLACE, FaceRow, read_list
from facepairs.support import console
from facepairs.support.places import ADVICE, files_below, is_leftover
from facepairs.verification.verifier import Verifier

PAGE = "people.html"
ONE_PHOTO, UNCERTAIN, WITHOUT_FACE = f"{APART}/one_photo", f"{APART}/uncertain", f"{APART}/no_face"
State = dict[str, tuple[int, int]]
"""Files of a folder by their paths, and when each was changed and its size."""


@dataclass(frozen=True, eq=False)
class PeopleFolder:
    """What a folder of people says about the faces of a collection.

    Attributes:
        state: Its files when it was read.
        digests: The SHA-256 of each, in hexadecimal digits.
        settled: Whose a face is, by its number, and "" for nobody's; other faces may be anybody's.
        place: The file of each face that has one.
        own: Files that `group` put apart; their faces may become somebody's.
        names: Names that `group` has given; none is given again.
        dropped: SHA-256 of photos without a face that were moved or deleted by hand.
        gone: Rows of photos that the collection has no longer.
    """

    state: State = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    settled: Mapping[int, str] = field(default_factory=dict)
    place: Mapping[int, str] = field(default_factory=dict)
    own: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    gone: tuple[FaceRow, ...] = ()


def check_people_folder(out: Path, photos: Path) -> None:
    """Refuse an output that is something else than an earlier one, before any work.

    Raises:
        BadData: It is; or one of the folders lies within the other.
    """
    place, root = out.resolve(), photos.resolve()
    if place.is_relative_to(root) or root.is_relative_to(place):
        raise BadData(
            f"{out}: lies within the photos {photos}, or they in it; choose another place"
        )
    if out.exists() and not out.is_dir():
        raise BadData(f"{out}: exists and is not a folder; {ADVICE}")
    if (out / FACES).exists():
        read_list(out)
    elif out.is_dir() and any(out.iterdir()):
        raise BadData(
            f"{out}: exists and is neither a folder of facepairs group, which holds {FACES}, nor "
            f"empty; {ADVICE}"
        )


def folder_state(out: Path) -> State:
    """Return the files of a folder, without the list, the page, and what systems leave there."""
    state: State = {}
    for path in files_below(out):
        if path not in (FACES, PAGE) and not any(map(is_leftover, path.split("/"))):
            found = (out / path).lstat()
            state[path] = (found.st_mtime_ns, found.st_size)
    return state


def folder_name(name: str) -> str:
    """Return the name of a person who gets a folder.

    Raises:
        BadConfig: No folder can have it.
    """
    clean = clean_name(name)
    if clean == APART or is_leftover(clean) or any(mark in clean for mark in "/\\:"):
        raise BadConfig(f"{name!r}: no folder of a person can have this name; choose another")
    return clean


def person_of(path: str) -> str:
    """Return the person in whose folder a file is; "" for a file apart from all people."""
    first, *rest = path.split("/")
    return first if rest and first != APART else ""


def read_people_folder(
    out: Path, collection: Collection, verifier: Verifier
) -> tuple[Collection, PeopleFolder]:
    """Read the people of an earlier output as the folder has them now.

    Args:
        out: The folder.
        collection: The faces of the photos.
        verifier: Embeds photos that are in the folder alone.

    Returns:
        The collection, with the faces of photos that are in the folder alone; and the folder.

    Raises:
        BadData: A file cannot be read, or one face is in the folders of two people.
    """
    rows, state = read_list(out), folder_state(out)
    digests = _digests(out, state, collection)
    faces = len(collection.faces)
    if added := list(_added_photos(rows, digests, collection)):
        collection = collection.with_photos(read_photos(out, added, verifier))
    reading = _Reading(out, collection, rows, digests)
    reading.settle()
    for face in range(faces, len(collection.faces)):  # somebody else on a photo that was added
        reading.settled.setdefault(face, "")
    names = {row.person for row in rows} | {person_of(path) for path in state}
    folder = PeopleFolder(
        state=state,
        digests=digests,
        settled=reading.settled,
        place=reading.place,
        own=reading.own,
        names=frozenset(name for name in names if UNNAMED.fullmatch(name)),
        dropped=frozenset(
            row.sha256 for row in rows if row.note == NO_FACE and row.file not in reading.own
        ),
        gone=tuple(_gone_rows(rows, collection, digests)),
    )
    return collection, folder


def _digests(out: Path, state: State, collection: Collection) -> dict[str, str]:
    """Return the SHA-256 of each file of a folder; links to photos are not read again."""
    known: dict[tuple[int, int], str] = {}
    for photo, sha256 in collection.photos.items():
        with contextlib.suppress(OSError):  # a photo that cannot be read is among the problems
            found = (collection.root / photo).stat()
            known[found.st_dev, found.st_ino] = sha256
    digests, progress = dict[str, str](), console.progress("reading the folder of people")
    for done, path in enumerate(state, 1):
        try:
            found = (out / path).stat()
            linked = known.get((found.st_dev, found.st_ino)) if found.st_ino else None
            digests[path] = linked or hashlib.sha256((out / path).read_bytes()).hexdigest()
        except OSError as error:
            raise BadData(f"{out / path}: {error.strerror}; mend or remove it") from None
        progress(done, len(state))
    return digests


def _added_photos(
    rows: list[FaceRow], digests: dict[str, str], collection: Collection
) -> Iterator[str]:
    """Yield photos in people's folders that are neither in the collection nor cut out of it."""
    cut = {row.file_sha256 for row in rows if row.sha256 in collection.faces_of}
    for path, sha256 in digests.items():
        is_photo = PurePosixPath(path).suffix.lower() in READABLE
        if person_of(path) and is_photo and sha256 not in cut and sha256 not in collection.faces_of:
            yield path


class _Reading:
    """Settles whose each face is, from where files are now.

    Attributes:
        row_of: The row of each face that was listed.
        own: Files that are where `group` put them, apart.
        settled: As in `PeopleFolder`.
        place: As in `PeopleFolder`.
    """

    def __init__(
        self, out: Path, collection: Collection, rows: list[FaceRow], digests: dict[str, str]
    ) -> None:
        self.out, self.collection, self.digests = out, collection, digests
        self.row_of = _rows_of_faces(rows, collection)
        self.own = frozenset(
            row.file
            for row in rows
            if row.file.startswith((f"{ONE_PHOTO}/", f"{UNCERTAIN}/", f"{WITHOUT_FACE}/"))
            and row.note != NOBODY
            and row.sha256 in collection.faces_of
            and self._is_there(row)
        )
        self.settled: dict[int, str] = {}
        self.place: dict[int, str] = {}

    def settle(self) -> None:
        """Settle all faces.

        Raises:
            BadData: One face is in the folders of two people.
        """
        cut = {row.file_sha256: face for face, row in self.row_of.items() if row.is_cut}
        copies = []
        for path, sha256 in self.digests.items():
            if path in self.own:
                continue
            faces = self.collection.faces_of.get(sha256, [])
            known = [face for face in faces if self._row(face).file == path]
            if sha256 in cut:
                known = [cut[sha256]]
            for face in known:
                self._assign(face, path)
            if faces and not known:
                copies.append((path, faces))
        for path, faces in copies:
            self._settle_copy(path, faces)
        present = {*self.digests.values()}
        for face, row in self.row_of.items():
            if face not in self.place and row.file in self.own:
                self.place[face] = row.file
            elif face not in self.place and (
                row.note == NOBODY or (row.file and row.file_sha256 not in present)
            ):  # it was deleted, and does not come back
                self.settled[face] = ""

    def _settle_copy(self, path: str, faces: list[int]) -> None:
        """Settle which face of a whole photo a moved or copied file stands for."""
        person, rows = person_of(path), {face: self._row(face) for face in faces}
        free = [face for face in faces if face not in self.place]
        moved = [
            face
            for face in free
            if rows[face].file and not rows[face].is_cut and not self._is_there(rows[face])
        ]
        if not person:  # all of them are nobody's
            is_new = not any(row.file for row in rows.values())
            for face in moved or (free if is_new else []):
                self._assign(face, path)
        elif free:
            self._assign(self._nearest(person, moved or free), path)
        elif all(self.settled[face] != person for face in faces):
            self._assign(faces[0], path)  # which is refused

    def _row(self, face: int) -> FaceRow:
        return self.row_of.get(face, FaceRow())

    def _is_there(self, row: FaceRow) -> bool:
        """Return whether a listed file is unchanged in its place."""
        return self.digests.get(row.file) == row.file_sha256

    def _assign(self, face: int, path: str) -> None:
        person = person_of(path)
        if self.settled.setdefault(face, person) != person:
            raise BadData(
                f"{self.out / path} and {self.out / self.place[face]}: one face in the folders of "
                "two people; delete or move one of the two files"
            )
        self.place.setdefault(face, path)

    def _nearest(self, person: str, faces: list[int]) -> int:
        """Return the face that is most like the others of a person, else the most prominent."""
        if len(faces) == 1:
            return faces[0]
        others = [face for face, name in self.settled.items() if name == person]
        if not others:
            return faces[0]
        embeddings = self.collection.embeddings
        likeness = embeddings[faces] @ embeddings[others].mean(axis=0)
        return faces[int(likeness.argmax())]


def _rows_of_faces(rows: list[FaceRow], collection: Collection) -> dict[int, FaceRow]:
    """Return the row of each face: of the same photo, and at the same place in it."""
    found: dict[int, FaceRow] = {}
    for row in rows:
        faces = collection.faces_of.get(row.sha256, [])
        overlap = {face: row.overlap(collection.faces[face].box) for face in faces}
        nearest = max(faces, key=overlap.__getitem__, default=None)
        if nearest is not None and overlap[nearest] >= SAME_PLACE:
            found.setdefault(nearest, row)
    return found


def _gone_rows(
    rows: list[FaceRow], collection: Collection, digests: dict[str, str]
) -> Iterator[FaceRow]:
    """Yield the rows of photos that the collection has no longer, as their files are now."""
    places = {sha256: path for path, sha256 in digests.items()}
    there = {row.file_sha256 for row in rows if row.sha256 in collection.faces_of}
    there |= collection.faces_of.keys()
    for row in rows:
        if row.sha256 in there or not (row.box or row.note == NO_FACE):
            continue
        is_there = digests.get(row.file) == row.file_sha256
        path = row.file if is_there else places.get(row.file_sha256, "")
        if path:
            yield row._replace(person=person_of(path), file=path)
        elif row.note == NOBODY or row.file:
            note = NOBODY if row.box else NO_FACE
            yield row._replace(person="", note=note, file="", file_sha256="", certainty="")
