"""Read a folder of people as somebody left it: where each face is now says whose it is.

    people/
      person_0001/holiday.jpg          a photo on which this person is the most prominent face
      person_0001/party_face2.jpg      cut out of a photo on which somebody else is
      Anna/…                           a person whose folder was renamed
      _apart/one_photo/…               photos of people of whom there is no other photo
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
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from facepairs.data.index import APART, READABLE
from facepairs.errors import BadConfig, BadData
from facepairs.gallery.identity import clean_name
from facepairs.grouping.collection import NO_FACE, Collection, read_photos
from facepairs.grouping.faces_list import (
    FACES,
    NO_LONGER,
    NOBODY,
    SAME_PLACE,
    FaceRow,
    read_list,
)
from facepairs.grouping.groups import Settled
from facepairs.support import console
from facepairs.support.places import ADVICE, files_below, is_leftover
from facepairs.verification.verifier import Verifier

PAGE = "people.html"
OWN_FOLDERS = tuple(f"{APART}/{name}/" for name in ("one_photo", "uncertain", "no_face"))
State = dict[str, tuple[int, int]]
"""Files of a folder by their paths, and when each was changed and its size."""


@dataclass(frozen=True, eq=False)
class PeopleFolder:
    """What a folder of people says about the faces of a collection.

    Attributes:
        state: Its files when it was read.
        digests: The SHA-256 of each, in hexadecimal digits.
        settled: The faces whose person, or that they are nobody's, follows from it.
        place: The file of each of these faces that has one.
        own: Files that `group` put apart, with the face of a cut-out; they may become somebody's.
        dropped: SHA-256 of photos without a face that were moved or deleted by hand.
        gone: Rows of photos that the collection has no longer.
        added: Photos that are in the folder alone.
    """

    state: State = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    settled: Settled = field(default_factory=Settled)
    place: dict[int, str] = field(default_factory=dict)
    own: dict[str, list[int]] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    gone: tuple[FaceRow, ...] = ()
    added: frozenset[str] = frozenset()


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
        raise BadData(f"{out}: exists and is no folder; {ADVICE}")
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


class _Claim(NamedTuple):
    """A file in somebody's folder, and the faces that it may stand for."""

    path: str
    person: str
    faces: list[int]


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
    added = _read_added(out, rows, digests, collection, verifier)
    collection = collection.with_photos(added)
    reading = _Reading(out, collection, rows, digests)
    reading.settle()
    photos = frozenset((added.root / photo).absolute().as_posix() for photo in added.photos)
    strangers = {
        number
        for number, face in enumerate(collection.faces)
        if face.photo in photos and number not in reading.person
    }
    names = {row.person for row in rows} | {person_of(path) for path in state}
    folder = PeopleFolder(
        state=state,
        digests=digests,
        settled=Settled(
            reading.person, frozenset(reading.nobody | strangers), frozenset(names - {""})
        ),
        place=reading.place,
        own=reading.own,
        dropped=frozenset(
            row.sha256 for row in rows if row.note == NO_FACE and row.file not in reading.own
        ),
        gone=tuple(_gone_rows(rows, reading)),
        added=photos,
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


def _read_added(
    out: Path,
    rows: list[FaceRow],
    digests: dict[str, str],
    collection: Collection,
    verifier: Verifier,
) -> Collection:
    """Return the faces of photos in people's folders that the collection does not hold."""
    listed = [row for row in rows if row.sha256 in collection.faces_of]
    cut, edited = ({getattr(row, name) for row in listed} for name in ("file_sha256", "file"))
    names = [
        path
        for path, sha256 in digests.items()
        if person_of(path)
        and PurePosixPath(path).suffix.lower() in READABLE
        and sha256 not in collection.faces_of
        and sha256 not in cut
        and path not in edited
    ]
    if not names:
        return Collection(out, {}, (), collection.embeddings[:0])
    return read_photos(out, names, verifier)


class _Reading:
    """Settles whose each face is, from where files are now."""

    def __init__(
        self, root: Path, collection: Collection, rows: list[FaceRow], digests: dict[str, str]
    ) -> None:
        self.root, self.collection, self.digests = root, collection, digests
        self.present = frozenset(digests.values())
        self.person: dict[int, str] = {}
        self.place: dict[int, str] = {}
        self.nobody: set[int] = set()
        self.own: dict[str, list[int]] = {}
        self.no_face = {row.file for row in rows if row.note == NO_FACE and row.file}
        self.row_of: dict[int, FaceRow] = {}
        for row in rows:
            faces = collection.faces_of.get(row.sha256, [])
            near = [(row.overlap(collection.faces[face].box), -face) for face in faces]
            overlap, face = max(near, default=(0.0, 0))
            if overlap >= SAME_PLACE:
                self.row_of.setdefault(-face, row)
        self.cut = {
            row.file_sha256: face
            for face, row in self.row_of.items()
            if row.file_sha256 != row.sha256
        }
        self.at: dict[str, list[int]] = defaultdict(list)  # the faces of files as they were listed
        for face, row in self.row_of.items():
            if row.file:
                self.at[row.file].append(face)

    def settle(self) -> None:
        """Settle all faces; raises BadData for a face in the folders of two people."""
        certain, others = list[_Claim](), list[_Claim]()
        for path in self.digests:
            faces, is_whole = self._faces_in(path)
            if self._is_own(path, faces):
                self.own[path] = [] if is_whole else faces
                continue
            if not faces:
                continue
            listed = [face for face in faces if path == self.row_of.get(face, FaceRow()).file]
            kept = [face for face in listed if self.row_of[face].person]
            claim = _Claim(path, person_of(path), kept[:1] or faces)
            (others if is_whole and not kept else certain).append(claim)
        for claim in certain:
            self._assign(claim, claim.faces[0])
        for claim in others:
            self._settle_whole(claim)
        self._settle_missing()

    def _faces_in(self, path: str) -> tuple[list[int], bool]:
        """Return the faces that a file may stand for, and whether it is a whole photo."""
        sha256 = self.digests[path]
        if sha256 in self.cut:
            return [self.cut[sha256]], False
        if sha256 in self.collection.faces_of:
            return self.collection.faces_of[sha256], True
        faces = self.at.get(path, [])  # edited in its place
        return faces, not any(face in self.cut.values() for face in faces)

    def _is_own(self, path: str, faces: list[int]) -> bool:
        """Return whether a file is apart since `group` put it there."""
        rows = [self.row_of[face] for face in faces if face in self.row_of]
        is_listed = any(row.file == path and row.note != NOBODY for row in rows)
        return path.startswith(OWN_FOLDERS) and (is_listed or path in self.no_face)

    def _settle_whole(self, claim: _Claim) -> None:
        """Settle which face of a photo a moved or copied file stands for."""
        rows = {face: self.row_of.get(face, FaceRow()) for face in claim.faces}
        free = [face for face in claim.faces if face not in self.place]
        moved = [face for face in free if rows[face].file and rows[face].file not in self.digests]
        whole = [face for face in moved if rows[face].file_sha256 == rows[face].sha256]
        if not claim.person:
            is_new = not any(rows[face].file for face in claim.faces)
            for face in whole or (free if is_new else []):
                self._assign(claim, face)
        elif whole or free:
            self._assign(claim, self._nearest(claim.person, whole or free))
        elif all(self.person.get(face) != claim.person for face in claim.faces):
            self._refuse(claim, claim.faces[0])

    def _assign(self, claim: _Claim, face: int) -> None:
        if face in self.place and self.person.get(face, "") != claim.person:
            self._refuse(claim, face)
        if face not in self.place:
            self.place[face] = claim.path
            if claim.person:
                self.person[face] = claim.person
            else:
                self.nobody.add(face)

    def _refuse(self, claim: _Claim, face: int) -> None:
        raise BadData(
            f"{self.root / claim.path} and {self.root / self.place[face]}: one face in the folders "
            "of two people; delete or move one of the two files"
        )

    def _nearest(self, person: str, faces: list[int]) -> int:
        """Return the face that is most like the others of a person, else the most prominent."""
        others = [face for face, name in self.person.items() if name == person]
        if len(faces) == 1 or not others:
            return faces[0]
        embeddings = self.collection.embeddings
        likeness = embeddings[faces] @ embeddings[others].mean(axis=0)
        return faces[int(likeness.argmax())]

    def _settle_missing(self) -> None:
        """Settle that faces whose files were deleted are nobody's, and stay so."""
        for face, row in self.row_of.items():
            if face in self.place:
                continue
            is_there = row.file in self.digests or row.file_sha256 in self.present
            if row.note == NOBODY or (row.file and not is_there):
                self.nobody.add(face)


def _gone_rows(rows: list[FaceRow], reading: _Reading) -> Iterator[FaceRow]:
    """Yield the rows of photos that the collection has no longer, as their files are now."""
    places = {sha256: path for path, sha256 in reading.digests.items()}
    for row in rows:
        if row.sha256 in reading.collection.faces_of or row.note == NO_LONGER:
            continue
        path = row.file if row.file in reading.digests else places.get(row.file_sha256, "")
        if path and row.box and path not in reading.place.values():
            yield row._replace(person=person_of(path), file=path)
        elif row.note == NOBODY or (row.box and row.file):
            yield row._replace(person="", note=NOBODY, file="", file_sha256="", certainty="")
