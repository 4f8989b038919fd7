"""The folder that `group` writes, the list of faces in it, and corrections of them.

    people/
      person_0001/holiday.jpg          a photo on which this person is the most prominent face
      person_0001/party_face2.jpg      cut out of a photo on which somebody else is
      _apart/one_photo/…               photos of people of whom there is no other photo
      _apart/no_face/…                 photos without a face
      faces.csv                        every face: photo, box, person, certainty
      people.html                      a page to look through
      corrections.csv                  what somebody has corrected since; read once
      corrected.csv                    all corrections that were made

Commands that take a folder of people use the most prominent face of a photo, and leave `_apart`
out.
"""

import contextlib
import csv
import os
import shutil
from collections.abc import Collection
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np

from facepairs.data.index import APART
from facepairs.data.pairs import csv_rows
from facepairs.errors import BadConfig, BadData
from facepairs.gallery.grouping import Earlier, FaceKey, Groups
from facepairs.gallery.heap import HeapFace, cut_out
from facepairs.gallery.heap_page import render_page
from facepairs.gallery.identity import clean_name
from facepairs.support import console
from facepairs.support.atomic import atomic_folder
from facepairs.support.places import check_output_folder, is_leftover
from facepairs.support.words import printable

FACES, PAGE = "faces.csv", "people.html"
CORRECTIONS, CORRECTED = "corrections.csv", "corrected.csv"
COLUMNS = ("photo", "box", "person", "certainty", "not", "problem", "file")
CORRECTION = ("correction", "person", "to")
WORDS = ("merge", "split", "name")
BETWEEN = "|"  # names of a cell
QUALITY = 95


class FaceRow(NamedTuple):
    """A row of the list; one without a box is a photo without a usable face.

    `refused` are the people whom the face does not show, `file` is its place in the folder.
    """

    photo: str
    box: str = ""
    person: str = ""
    certainty: str = ""
    refused: str = ""
    problem: str = ""
    file: str = ""


def check_people_folder(out: Path, heap: Path) -> None:
    """Refuse an output that is something else than an earlier one, before any work.

    Raises:
        BadData: It is.
    """
    check_output_folder(out, "a folder of facepairs group", _files_of, heap)


def _files_of(folder: Path) -> set[str]:
    files = (row.file for row in _read_rows(folder / FACES) if row.file)
    return {FACES, PAGE, CORRECTIONS, CORRECTED, *files}


def _read_rows(path: Path) -> list[FaceRow]:
    return [FaceRow(*(row[name] for name in COLUMNS)) for _, row in csv_rows(path, COLUMNS)]


def read_earlier(out: Path | None, photos: Collection[str]) -> Earlier:
    """Read the people of an earlier output, and correct them.

    A folder may hold `corrections.csv` with the columns correction, person and to. `merge,A,B`
    makes A and B one person A; `split,A,PHOTO` takes a photo from A; `name,A,NAME` renames A. A
    name that an earlier line has changed still means the same person.

    Args:
        out: The earlier output; None or missing for none.
        photos: The photos of the heap.

    Raises:
        BadData: A file cannot be read; or has a photo that the heap lacks: what is written now
            would drop it; or a correction names a person or a photo that there is not.
        BadConfig: A name is no name for a folder.
    """
    if out is None or not (out / FACES).exists():
        return Earlier()
    place = out / FACES
    person: dict[FaceKey, str] = {}
    refused: dict[FaceKey, frozenset[str]] = {}
    there = set(map(printable, photos))
    for row in _read_rows(place):
        if row.photo not in there and (row.file or row.person):
            raise BadData(
                f"{place}: has {row.photo}, which is not among the photos now; to keep its people "
                "and files, choose another output"
            )
        key = (row.photo, _parse_box(row.box, place))
        if row.person:
            person[key] = row.person
        if row.refused:
            refused[key] = frozenset(row.refused.split(BETWEEN))
    corrections = _corrections(out)
    if corrections is not None:
        _correct(person, refused, out / CORRECTIONS)
    return Earlier(person, refused, corrections)


def _corrections(folder: Path) -> bytes | None:
    file = folder / CORRECTIONS
    return file.read_bytes() if file.exists() else None


def _parse_box(text: str, place: Path) -> tuple[int, int, int]:
    """Return the box of a cell; of a photo without a face, zeros."""
    try:
        left, top, side = map(int, text.split()) if text else (0, 0, 0)
    except ValueError:
        raise BadData(f"{place}: box {text!r} is not left, top and side; group again") from None
    return left, top, side


def _correct(
    person: dict[FaceKey, str], refused: dict[FaceKey, frozenset[str]], path: Path
) -> None:
    """Make the corrections of a file in place."""
    names = {name: name for name in person.values()}  # what people are called by now
    for line, row in csv_rows(path, CORRECTION):
        place = f"{path}: line {line}"
        what, name, to = (row[column].strip() for column in CORRECTION)
        if what not in WORDS:
            raise BadData(f"{place}: correction {what!r}; use merge, split or name")
        for one in (name, to) if what == "merge" else (name,):
            if one not in names:
                raise BadData(f"{place}: nobody is called {one!r}; give a name of {FACES}")
        name = names[name]
        if what == "split":
            on_photo = [key for key in (*person, *refused) if key[0] == to]
            faces = [key for key in on_photo if person.get(key) == name]
            if not faces and not any(name in refused.get(key, ()) for key in on_photo):
                raise BadData(f"{place}: {to!r} is no photo of {name}; see {FACES}")
            for key in faces:
                del person[key]
                refused[key] = refused.get(key, frozenset()) | {name}
            continue
        old, new = (names[to], name) if what == "merge" else (name, folder_name(to))
        names |= {one: new for one, now in names.items() if now == old} | {new: new}
        person |= {key: new for key, owner in person.items() if owner == old}
        for key, others in refused.items():
            refused[key] = frozenset(new if one == old else one for one in others)


def folder_name(name: str) -> str:
    """Return the name of a person who gets a folder.

    Raises:
        BadConfig: No folder can have it.
    """
    clean = clean_name(name)
    if clean == APART or is_leftover(clean) or any(mark in clean for mark in f"/\\:{BETWEEN}"):
        raise BadConfig(f"{name!r}: no folder of a person can have this name; choose another")
    return clean


def write_people_folder(
    groups: Groups, out: Path, made: bytes | None = None, copy: bool = False
) -> None:
    """Write people and the list of faces.

    Args:
        groups: The people.
        out: What is written, whole or not at all; an earlier output is replaced.
        made: The content of the file of corrections that the groups follow.
        copy: Copy photos instead of linking them.

    Raises:
        BadData: It cannot be written, or corrections were added while the photos were grouped.
        BadImage: A photo was changed meanwhile.
    """
    with atomic_folder(out) as folder:
        plan, progress = _plan(groups), console.progress("writing faces")
        written: set[str] = set()
        for done, (row, face) in enumerate(plan, 1):
            if row.file and row.file not in written:
                written.add(row.file)
                target = folder / row.file
                target.parent.mkdir(parents=True, exist_ok=True)
                _write_photo(groups.heap.root / row.photo, face, target, copy)
            progress(done, len(plan))
        _write_list(folder / FACES, [row for row, _ in plan])
        page = render_page(groups)
        (folder / PAGE).write_text(page, encoding="utf-8", errors="backslashreplace")
        before = out / CORRECTED
        corrected = [before.read_bytes()] if before.exists() else []
        if made is not None:
            corrected.append(made)
        if corrected:
            (folder / CORRECTED).write_bytes(b"\n".join(corrected))
        if _corrections(out) != made:
            raise BadData(
                f"{out / CORRECTIONS}: was changed while photos were grouped; group again"
            )


def _plan(groups: Groups) -> list[tuple[FaceRow, HeapFace | None]]:
    """Return the rows of the list, each with the face that is to be cut out for it."""
    used: dict[str, str] = {}  # each file, without regard to capitals, and what it is of
    rows: list[tuple[FaceRow, HeapFace | None]] = []
    sorted_photos = {
        face.photo for face, name in zip(groups.faces, groups.person, strict=True) if name
    }
    values = zip(groups.faces, groups.person, groups.certainty.tolist(), strict=True)
    for number, (face, name, certainty) in enumerate(values):
        is_cut = bool(name) and face.number > 1
        file = ""
        if name or face.photo not in sorted_photos:
            folder = name or f"{APART}/one_photo"
            file = _free_name(used, folder, face.photo, face.number if is_cut else 1)
        row = FaceRow(
            photo=face.photo,
            box=" ".join(map(str, face.box)),
            person=name,
            certainty="" if np.isnan(certainty) else f"{certainty:.3f}",
            refused=BETWEEN.join(sorted(groups.refused[number])) if groups.refused else "",
            file=file,
        )
        rows.append((row, face if is_cut else None))
    for photo in groups.without_face:
        file = _free_name(used, f"{APART}/no_face", photo)
        rows.append((FaceRow(photo, problem="no face", file=file), None))
    rows += [(FaceRow(photo, problem=why), None) for photo, why in groups.unusable.items()]
    return rows


def _free_name(used: dict[str, str], folder: str, photo: str, face: int = 1) -> str:
    """Return a file in a folder that no other photo has."""
    path = Path(printable(photo))
    stem, suffix = (path.stem, path.suffix) if face == 1 else (f"{path.stem}_face{face}", ".jpg")
    content, extra = f"{photo}\0{face}", ""
    for number in count(2):
        file = f"{folder}/{stem}{extra}{suffix}"
        if used.setdefault(file.casefold(), content) == content:
            break
        extra = f"_{number}"
    return file


def _write_photo(source: Path, face: HeapFace | None, target: Path, copy: bool) -> None:
    """Link or copy a photo, or cut a face out of it; raises BadImage if it was changed."""
    if face is not None:
        cut_out(source, face.box).save(target, "JPEG", quality=QUALITY)
        return
    if not copy:
        with contextlib.suppress(OSError):  # links are not possible: to another disk, for instance
            os.link(os.path.realpath(source), target)
            return
    shutil.copyfile(source, target)


def _write_list(path: Path, rows: list[FaceRow]) -> None:
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(COLUMNS)
        writer.writerows(rows)
