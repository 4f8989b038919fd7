"""Write a folder of people: files that the user left stay in place, and new faces are added."""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterable
from itertools import count
from pathlib import Path, PurePosixPath

import numpy as np

from facepairs.errors import BadData
from facepairs.grouping.collection import NO_FACE
from facepairs.grouping.cut_out import cut_out
from facepairs.grouping.faces_list import FACES, NO_LONGER, NOBODY, FaceRow, write_list
from facepairs.grouping.folder import (
    ONE_PHOTO,
    PAGE,
    UNCERTAIN,
    WITHOUT_FACE,
    PeopleFolder,
    folder_state,
    person_of,
)
from facepairs.grouping.groups import Groups
from facepairs.grouping.page import pictures_of, render_page
from facepairs.support import console
from facepairs.support.atomic import atomic_folder
from facepairs.support.parallel import thread_map
from facepairs.support.words import printable


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
    rows, links = _plan(groups, out, before)
    cuts = [number for number, row in enumerate(rows) if row.file and not row.file_sha256]
    root = groups.collection.root
    with atomic_folder(out) as folder:
        for file in (*links, *(rows[number].file for number in cuts)):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
        for file, source in links.items():
            _link(source, folder / file, copy and source.is_relative_to(root))

        def cut(number: int) -> str:
            face = groups.faces[number]
            content = cut_out(root / face.photo, face.box)
            (folder / rows[number].file).write_bytes(content)
            return hashlib.sha256(content).hexdigest()

        progress, digests = console.progress("cutting out faces"), thread_map(cut, cuts)
        for done, (number, sha256) in enumerate(zip(cuts, digests, strict=True), 1):
            rows[number] = rows[number]._replace(file_sha256=sha256)
            progress(done, len(cuts))
        write_list(folder / FACES, rows)
        files = [row.file for row in rows[: len(groups.faces)]]
        page = render_page(groups, out, files, pictures_of(out / PAGE))
        (folder / PAGE).write_text(page, encoding="utf-8", errors="backslashreplace")
        if folder_state(out) != before.state:
            raise BadData(f"{out}: was changed while photos were grouped; group again")


class _FreeNames:
    """Names or paths of files that no other file has; capitals do not count."""

    def __init__(self, used: Iterable[str]) -> None:
        self.used = {file.casefold() for file in used}

    def __call__(self, file: str) -> str:
        """Return a name, with a number if another file has it."""
        free, numbers = PurePosixPath(file), count(2)
        while str(free).casefold() in self.used:
            free = PurePosixPath(file).with_stem(f"{PurePosixPath(file).stem}_{next(numbers)}")
        self.used.add(str(free).casefold())
        return str(free)


def _plan(groups: Groups, out: Path, before: PeopleFolder) -> tuple[list[FaceRow], dict[str, Path]]:
    """Return the rows of the list, and by file the photo or earlier file that it links to.

    Earlier files stay, except those that were put apart. Rows of faces come first; a face whose row
    has a file without its SHA-256 is still to be cut out.
    """
    root, kept = groups.collection.root, _kept_files(groups, before)
    links = {new: out / old for old, new in kept.items()}
    free_name = _FreeNames(PurePosixPath(file).name for file in links)  # so files can be moved
    uncertain, rows = frozenset(groups.uncertain), []
    for number, (face, name) in enumerate(zip(groups.faces, groups.person, strict=True)):
        row, old = _row(groups, number), before.place.get(number, "")
        folder = name or (UNCERTAIN if number in uncertain else ONE_PHOTO)
        photo = PurePosixPath(row.photo)
        if old in kept:
            row = row._replace(file=kept[old], file_sha256=before.digests[old])
        elif number in groups.nobody:
            pass  # without a file
        elif face.number == 1:
            row = row._replace(file=f"{folder}/{free_name(photo.name)}", file_sha256=face.sha256)
            links[row.file] = root / face.photo
        else:
            cut = free_name(f"{photo.stem}_face{face.number}.jpg")
            row = row._replace(file=f"{folder}/{cut}")
            if old and before.digests[old] != face.sha256:  # it was cut out before
                row = row._replace(file_sha256=before.digests[old])
                links[row.file] = out / old
        rows.append(row)
    for name, problem in groups.collection.problems.items():
        row = FaceRow(printable(name), groups.collection.photos[name], note=problem)
        if problem == NO_FACE and row.sha256 not in before.dropped:
            file = f"{WITHOUT_FACE}/{free_name(PurePosixPath(row.photo).name)}"
            row = row._replace(file=file, file_sha256=row.sha256)
            links[file] = root / name
        rows.append(row)
    for name, first in groups.collection.copies.items():
        note, sha256 = f"copy of {printable(first)}", groups.collection.photos[first]
        rows.append(FaceRow(printable(name), sha256, note=note))
    retired = sorted(before.names.difference(groups.person))
    return [*rows, *before.gone, *(FaceRow(person=name, note=NO_LONGER) for name in retired)], links


def _kept_files(groups: Groups, before: PeopleFolder) -> dict[str, str]:
    """Return the new place of each file that stays; a gallery may have named its person."""
    now = {old: groups.person[face] for face, old in before.settled.items() if old}
    kept = {path: path for path in before.state if path not in before.own}
    renamed = [
        path for path in kept if now.get(person_of(path), person_of(path)) != person_of(path)
    ]
    free_name = _FreeNames(kept.keys() - renamed)
    for path in renamed:
        person, _, rest = path.partition("/")
        kept[path] = free_name(f"{now[person]}/{rest}")
    return kept


def _row(groups: Groups, number: int) -> FaceRow:
    """Return the row of a face, without its file."""
    face, certainty = groups.faces[number], groups.certainty[number]
    note = f"uncertain: {face.doubt}" if face.doubt and not groups.person[number] else ""
    return FaceRow(
        photo=printable(face.photo),
        sha256=face.sha256,
        box=" ".join(map(str, face.box)),
        person=groups.person[number],
        certainty="" if np.isnan(certainty) else f"{certainty:.3f}",
        note=NOBODY if number in groups.nobody else note,
    )


def _link(source: Path, target: Path, copy: bool = False) -> None:
    """Link or copy a photo, or a file of the earlier output."""
    if not copy:
        with contextlib.suppress(OSError):  # links are not possible: to another disk, for instance
            os.link(os.path.realpath(source), target)
            return
    shutil.copyfile(source, target)
