"""Write a folder of people: what somebody left there stays where it is, and new faces are added."""

import contextlib
import hashlib
import os
import shutil
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import numpy as np

from facepairs.data.index import APART, UNNAMED
from facepairs.errors import BadData
from facepairs.grouping.collection import NO_FACE
from facepairs.grouping.cut_out import cut_out
from facepairs.grouping.faces_list import FACES, NO_LONGER, NOBODY, FaceRow, write_list
from facepairs.grouping.folder import PAGE, PeopleFolder, folder_state
from facepairs.grouping.groups import Groups
from facepairs.grouping.page import pictures_of, render_page
from facepairs.support import console
from facepairs.support.atomic import atomic_folder
from facepairs.support.parallel import thread_map
from facepairs.support.words import printable

QUALITY = 95


def write_people_folder(
    groups: Groups, out: Path, before: PeopleFolder | None = None, copy: bool = False
) -> None:
    """Write people, the list of faces and the page, whole or not at all.

    Args:
        groups: The people.
        out: What is written; an earlier output is replaced by one that holds all of its files.
        before: The earlier output, as it was when the faces were grouped.
        copy: Copy photos instead of linking them.

    Raises:
        BadData: It cannot be written, or was changed while the photos were grouped.
        BadImage: A photo was changed meanwhile.
    """
    before = before or PeopleFolder()
    plan = _plan(groups, out, before)
    root = groups.collection.root
    with atomic_folder(out) as folder:
        for file, source in plan.links.items():
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            _link(source, target, copy and source.is_relative_to(root))

        def cut(number: int) -> bytes:
            face = groups.faces[number]
            target = folder / plan.rows[number].file
            target.parent.mkdir(parents=True, exist_ok=True)
            picture = cut_out(root / face.photo, face.box, is_searched=not face.doubt)
            picture.save(target, "JPEG", quality=QUALITY)
            return target.read_bytes()

        progress, contents = console.progress("cutting out faces"), thread_map(cut, plan.cuts)
        for done, (number, content) in enumerate(zip(plan.cuts, contents, strict=True), 1):
            sha256 = hashlib.sha256(content).hexdigest()
            plan.rows[number] = plan.rows[number]._replace(file_sha256=sha256)
            progress(done, len(plan.cuts))
        rows = [row for number, row in plan.rows.items() if number not in plan.unlisted]
        write_list(folder / FACES, [*rows, *plan.others])
        files = {number: row.file for number, row in plan.rows.items()}
        page = render_page(groups, out, files, pictures_of(out / PAGE))
        (folder / PAGE).write_text(page, encoding="utf-8", errors="backslashreplace")
        if folder_state(out) != before.state:
            raise BadData(f"{out}: was changed while photos were grouped; group again")


@dataclass(frozen=True)
class _Plan:
    """What is written.

    Attributes:
        rows: The row of each face.
        unlisted: Faces of photos that are in the folder alone.
        others: Further rows: photos without a face, names that are not given again.
        links: Files, and the photo or earlier file that each is a link to.
        cuts: Faces to cut out of their photos.
    """

    rows: dict[int, FaceRow] = field(default_factory=dict)
    unlisted: set[int] = field(default_factory=set)
    others: list[FaceRow] = field(default_factory=list)
    links: dict[str, Path] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)


def _plan(groups: Groups, out: Path, before: PeopleFolder) -> _Plan:
    """Return what is written; files of an earlier output stay, but for those that were apart."""
    collection, plan = groups.collection, _Plan()
    now = {old: groups.person[face] for face, old in before.settled.person.items()}

    def renamed(path: str) -> str:
        """Return the place of a kept file, whose person a gallery may have named."""
        person, slash, rest = path.partition("/")
        return now.get(person, person) + slash + rest

    kept = {path: renamed(path) for path in before.state if path not in before.own}
    plan.links.update({new: out / old for old, new in kept.items()})
    free_name = _FreeNames(plan.links)
    cut_before = {face: path for path, faces in before.own.items() for face in faces}
    named = zip(collection.faces, groups.person, strict=True)
    in_group = {face.sha256 for face, name in named if name}
    uncertain = frozenset(groups.uncertain)
    for number, (face, name) in enumerate(zip(collection.faces, groups.person, strict=True)):
        row = _row(groups, number)
        is_cut = face.number > 1 and (bool(name) or number in uncertain)
        folder = name or f"{APART}/{'uncertain' if number in uncertain else 'one_photo'}"
        is_written = name or number in uncertain or face.sha256 not in in_group
        if face.photo in before.added:
            plan.unlisted.add(number)
        if number in before.place:
            old = before.place[number]
            row = row._replace(file=renamed(old), file_sha256=before.digests[old])
        elif number in before.settled.nobody:
            row = row._replace(note=NOBODY)
        elif is_written and is_cut:
            file = free_name(folder, face.photo, face.sha256, face.number)
            row = row._replace(file=file)
            if number in cut_before:
                old = cut_before[number]
                plan.links[file] = out / old
                row = row._replace(file_sha256=before.digests[old])
            else:
                plan.cuts.append(number)
        elif is_written:
            file = free_name(folder, face.photo, face.sha256)
            plan.links[file] = collection.root / face.photo
            row = row._replace(file=file, file_sha256=face.sha256)
        plan.rows[number] = row
    for photo, problem in collection.problems.items():
        sha256, file = collection.photos[photo], ""
        if problem == NO_FACE and sha256 not in before.dropped:
            file = free_name(f"{APART}/no_face", photo, sha256)
            plan.links[file] = collection.root / photo
        of_file = sha256 if file else ""
        plan.others.append(
            FaceRow(printable(photo), sha256, note=problem, file=file, file_sha256=of_file)
        )
    for photo, first in collection.copies.items():
        note = f"copy of {printable(first)}"
        plan.others.append(FaceRow(printable(photo), collection.photos[first], note=note))
    plan.others.extend(before.gone)
    given = {name for name in before.settled.names if UNNAMED.fullmatch(name)}
    retired = sorted(given - {*groups.person})
    plan.others.extend(FaceRow(person=name, note=NO_LONGER) for name in retired)
    return plan


def _row(groups: Groups, number: int) -> FaceRow:
    """Return the row of a face, without its file."""
    face, certainty = groups.faces[number], groups.certainty[number]
    note = NOBODY if number in groups.nobody else "" if groups.person[number] else face.doubt
    return FaceRow(
        photo=printable(face.photo),
        sha256=face.sha256,
        box=" ".join(map(str, face.box)),
        person=groups.person[number],
        certainty="" if np.isnan(certainty) else f"{certainty:.3f}",
        note=note and (NOBODY if note == NOBODY else f"uncertain: {note}"),
    )


class _FreeNames:
    """Names of files that no other photo has; capitals do not count."""

    def __init__(self, used: dict[str, Path]) -> None:
        self.used = {file.casefold(): "" for file in used}

    def __call__(self, folder: str, photo: str, sha256: str, face: int = 1) -> str:
        path = Path(printable(photo))
        stem, suffix = (
            (path.stem, path.suffix) if face == 1 else (f"{path.stem}_face{face}", ".jpg")
        )
        content, extra = f"{sha256} {face}", ""
        for number in count(2):
            file = f"{folder}/{stem}{extra}{suffix}"
            if self.used.setdefault(file.casefold(), content) == content:
                break
            extra = f"_{number}"
        return file


def _link(source: Path, target: Path, copy: bool = False) -> None:
    """Link or copy a photo, or a file of the earlier output."""
    if not copy:
        with contextlib.suppress(OSError):  # links are not possible: to another disk, for instance
            os.link(os.path.realpath(source), target)
            return
    shutil.copyfile(source, target)
