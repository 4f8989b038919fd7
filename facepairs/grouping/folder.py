"""Read a folder of people as the user left it: the folder of each face names its person.

    people/
      person_0001/holiday.jpg          a photo on which this person is the most prominent face
      person_0001/party_face2.jpg      cut out of a photo on which another person is
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
from functools import cached_property
from pathlib import Path, PurePosixPath

from facepairs.data.index import APART, READABLE, UNNAMED
from facepairs.errors import BadConfig, BadData
from facepairs.gallery.identity import clean_name
from facepairs.grouping.collection import NO_FACE, Collection, read_photos
from facepairs.grouping.faces_list import (
    FACES,
    NOBODY,
    RATE,
    FaceRow,
    person_at,
    read_list,
    rows_of_faces,
)
from facepairs.support import console
from facepairs.support.places import ADVICE, files_below, is_foreign, is_leftover
from facepairs.support.words import command_line, counted, printable
from facepairs.verification.verifier import Verifier

ONE_PHOTO, UNCERTAIN, WITHOUT_FACE = f"{APART}/one_photo", f"{APART}/uncertain", f"{APART}/no_face"
PAGE = "people.html"

State = dict[str, tuple[int, int]]
"""Files of a folder by their paths, and when each was changed and its size."""


@dataclass(frozen=True, eq=False)
class PeopleFolder:
    """A folder of people, as it is now.

    Attributes:
        state: Its files when it was read.
        rows: The rows of faces of the collection that have a file there, or had one.
        own: Files that `group` put apart; their faces may join a person.
        names: Names of its folders, and numbers that were given before.
        dropped: SHA-256 of photos without a face that were moved or deleted by hand.
        gone: Rows of photos that the collection no longer has.
        rate: Share of strangers' pairs that the loosest run joined, see `expect_errors`.
    """

    state: State = field(default_factory=dict)
    rows: Mapping[int, FaceRow] = field(default_factory=dict)
    own: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    gone: tuple[FaceRow, ...] = ()
    rate: float = 0

    @cached_property
    def settled(self) -> dict[int, str]:
        """Whose a face is, by its number; "" for no person; others may be anyone's."""
        return {face: row.person for face, row in self.rows.items() if row.file not in self.own}


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
            f"{out}: holds files, but no {FACES}, the list of facepairs group; if it is an earlier "
            f"output, put {FACES} back from the trash or a backup, else choose another place"
        )


def folder_state(out: Path) -> State:
    """Return the files of a folder, without the list, the page, and what systems make again."""
    state: State = {}
    for path in files_below(out):
        if is_hidden(path):
            is_kept = is_foreign(path) and (out / path).is_file()
        else:
            is_kept = path not in (FACES, PAGE)
        if is_kept:
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
        rename = command_line("gallery", "rename", "GALLERY", name, "NEW_NAME")
        raise BadConfig(f"{name!r}: cannot be the name of a folder; give another: {rename}")
    return clean


def is_hidden(path: str) -> bool:
    """Return whether a file is hidden or in a hidden folder: kept, but not read as a photo."""
    return any(map(is_leftover, path.split("/")))


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
    _tell_other_contents(rows, collection)
    digests = _digests(out, [path for path in state if not is_hidden(path)], collection)
    faces = len(collection.faces)
    if added := list(_added_photos(rows, digests, collection)):
        collection = collection.with_photos(read_photos(out, added, verifier))
    damaged = _damaged_files(digests, collection)
    at_home = [row for row in rows if row.file and digests.get(row.file) == row.file_sha256]
    own = frozenset(
        row.file
        for row in at_home
        if PurePosixPath(row.file).parent.as_posix() in (ONE_PHOTO, UNCERTAIN, WITHOUT_FACE)
        and row.sha256 in collection.faces_of
    )
    reading = _Reading(out, collection, rows_of_faces(rows, collection), digests)
    reading.settle(own, damaged)
    _tell_changes(reading.listed, reading.rows)
    for face in range(faces, len(collection.faces)):  # another person on a photo that was added
        reading.rows.setdefault(face, FaceRow(note=NOBODY))
    numbers = {row.person for row in rows if UNNAMED.fullmatch(row.person)}
    faceless = {row.sha256 for row in rows if row.note == NO_FACE}
    folder = PeopleFolder(
        state=state,
        rows=reading.rows,
        own=own,
        names=frozenset((numbers | set(map(person_at, digests))) - {""}),
        dropped=frozenset(faceless - {row.sha256 for row in at_home}),
        gone=tuple(_gone_rows(rows, collection, digests, damaged)),
        rate=max((float(row.certainty) for row in rows if row.note == RATE), default=0),
    )
    return collection, folder


def _digests(out: Path, files: list[str], collection: Collection) -> dict[str, str]:
    """Return the SHA-256 of files of a folder; links to photos are not read again."""
    known: dict[tuple[int, int], str] = {}
    for photo, sha256 in collection.photos.items():
        with contextlib.suppress(OSError):  # a photo that cannot be read is among the problems
            found = (collection.root / photo).stat()
            known[found.st_dev, found.st_ino] = sha256
    digests, progress = dict[str, str](), console.progress("reading the folder of people")
    for done, path in enumerate(files, 1):
        try:
            found = (out / path).stat()
            linked = known.get((found.st_dev, found.st_ino)) if found.st_ino else None
            digests[path] = linked or hashlib.sha256((out / path).read_bytes()).hexdigest()
        except OSError as error:
            raise BadData(f"{out / path}: {error.strerror}; repair or remove it") from None
        progress(done, len(files))
    return digests


def _tell_other_contents(rows: list[FaceRow], collection: Collection) -> None:
    """Report how many listed photos have changed."""
    listed = {row.sha256 for row in rows}
    gone = {row.photo for row in rows if row.box and row.sha256 not in collection.faces_of}
    new = (photo for photo, sha256 in collection.photos.items() if sha256 not in listed)
    if changed := len(gone.intersection(map(printable, new))):
        console.log(
            f"{counted(changed, 'photo')} in {collection.root} changed since the last run, perhaps "
            "only in metadata, and count as new; their earlier files stay. To drop these, choose "
            "another output"
        )


def _tell_changes(listed: Mapping[int, FaceRow], now: Mapping[int, FaceRow]) -> None:
    """Report how many faces were moved or renamed by hand."""
    people, before = [
        {face: (row.person, row.note == NOBODY) for face, row in rows.items()}
        for rows in (now, listed)
    ]
    if changed := sum(one != before.get(face, ("", False)) for face, one in people.items()):
        console.log(
            f"kept your changes in the folder: {counted(changed, 'face')} moved, renamed or removed"
        )


def _added_photos(
    rows: list[FaceRow], digests: Mapping[str, str], collection: Collection
) -> Iterator[str]:
    """Yield photos in people's folders that are neither in the collection nor cut out of it."""
    cut = {row.file_sha256 for row in rows if row.sha256 in collection.faces_of}
    for path, sha256 in digests.items():
        is_photo = PurePosixPath(path).suffix.lower() in READABLE
        if person_at(path) and is_photo and sha256 not in cut and sha256 not in collection.faces_of:
            yield path


def _damaged_files(digests: Mapping[str, str], collection: Collection) -> dict[str, str]:
    """Return the place of each photo in a person's folder that cannot be read, by its name."""
    problems = collection.problems.items()
    unusable = {collection.photos[photo] for photo, why in problems if why != NO_FACE}
    found = (path for path, sha256 in digests.items() if sha256 in unusable)
    return {PurePosixPath(path).name: path for path in found if person_at(path)}


class _Reading:
    """Settles whose each face is, from where files are now.

    Attributes:
        listed: The row of each face that was listed.
        rows: As in `PeopleFolder`.
    """

    def __init__(
        self,
        out: Path,
        collection: Collection,
        listed: Mapping[int, FaceRow],
        digests: Mapping[str, str],
    ) -> None:
        self.out, self.collection, self.listed, self.digests = out, collection, listed, digests
        self.rows: dict[int, FaceRow] = {}

    def settle(self, own: frozenset[str], damaged: Mapping[str, str]) -> None:
        """Settle all faces.

        Args:
            own: As in `PeopleFolder`.
            damaged: See `_damaged_files`; their faces stay where they are.

        Raises:
            BadData: One face is in the folders of two people.
        """
        cut = {row.file_sha256: [face] for face, row in self.listed.items() if row.is_cut}
        faces_of = {**self.collection.faces_of, **cut}
        home = {row.file for row in self.listed.values()}
        several = []
        for path in sorted(filter(person_at, self.digests), key=lambda path: path not in home):
            faces = faces_of.get(self.digests[path], [])
            known = [face for face in faces if self._listed(face).file == path or len(faces) == 1]
            for face in known:
                self._place(face, path)
            if not known and faces:
                several.append((path, faces))
        for path, faces in several:
            self._place_one(path, faces)
        for face, row in self.listed.items():
            if row.file in own:
                self.rows.setdefault(face, row)
            elif place := damaged.get(PurePosixPath(row.file).name):
                self.rows.setdefault(face, row.at(place))
            elif row.file or row.note == NOBODY:  # it was put apart or deleted
                self.rows.setdefault(face, row.at(""))
        for path in self.digests.keys() - own:
            if not person_at(path):  # perhaps a new photo, which was put apart
                for face in faces_of.get(self.digests[path], []):
                    self.rows.setdefault(face, FaceRow(note=NOBODY))

    def _listed(self, face: int) -> FaceRow:
        return self.listed.get(face, FaceRow())

    def _place_one(self, path: str, faces: list[int]) -> None:
        """Place the face for which a moved or copied photo of several faces stands."""
        person, sha256 = person_at(path), self.digests[path]
        if any(face in self.rows and self.rows[face].person == person for face in faces):
            return  # a copy
        free = [face for face in faces if face not in self.rows]
        rows = {face: self._listed(face) for face in free}
        moved = [
            face
            for face, row in rows.items()
            if row.file_sha256 == sha256 != self.digests.get(row.file)
        ]
        nearest = self._nearest(person, moved or free)
        self._place(faces[0] if nearest is None else nearest, path)  # the first one is refused

    def _place(self, face: int, path: str) -> None:
        """Place a face in the folder of a person."""
        new = self._listed(face).at(path)._replace(file_sha256=self.digests[path])
        row = self.rows.setdefault(face, new)
        if row.person != new.person:
            raise BadData(
                f"{self.out / path} and {self.out / row.file}: one face in the folders of two "
                "people; delete or move one of the two files"
            )

    def _nearest(self, person: str, faces: list[int]) -> int | None:
        """Return the face that is most like the others of a person, else the most prominent."""
        others = [face for face, row in self.rows.items() if row.person == person]
        if len(faces) < 2 or not others:
            return next(iter(faces), None)
        embeddings = self.collection.embeddings
        likeness = embeddings[faces] @ embeddings[others].mean(axis=0)
        return faces[int(likeness.argmax())]


def _gone_rows(
    rows: list[FaceRow],
    collection: Collection,
    digests: Mapping[str, str],
    damaged: Mapping[str, str],
) -> Iterator[FaceRow]:
    """Yield the rows of photos that the collection has no longer, as their files are now."""
    places = {sha256: path for path, sha256 in digests.items() if person_at(path)}
    there = {row.file_sha256 for row in rows if row.sha256 in collection.faces_of}
    there |= collection.faces_of.keys()
    for row in rows:
        if row.sha256 not in there and (row.box or row.note == NO_FACE):
            at_home = row.file and digests.get(row.file) == row.file_sha256
            place = places.get(row.file_sha256) or damaged.get(PurePosixPath(row.file).name, "")
            yield row if at_home else row.at(place)
