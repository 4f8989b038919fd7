"""The folder that `group` writes, the list of faces in it, and corrections of them.

    people/
      person_0001/holiday.jpg          a photo on which this person is the most prominent face
      person_0001/party_face2.jpg      cut out of a photo on which somebody else is
      _apart/one_photo/…               photos of people of whom there is no other photo
      _apart/no_face/…                 photos without a face
      faces.csv                        every face: photo, box, person, certainty
      people.html                      a page to look through
      corrections.csv                  what somebody has corrected; read, never written

Commands that take a folder of people use the most prominent face of a photo, and leave `_apart`
out: folders within a person's folder do not count.
"""

import csv
import os
import shutil
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from facepairs.data.pairs import csv_rows
from facepairs.errors import BadConfig, BadData, BadImage
from facepairs.gallery.grouping import Earlier, FaceKey, Groups
from facepairs.gallery.heap import HeapFace, cut_out
from facepairs.gallery.heap_page import render_page
from facepairs.gallery.identity import clean_name
from facepairs.support import console
from facepairs.support.atomic import atomic_folder, temporary_beside
from facepairs.support.places import check_output_file, check_output_folder, is_leftover
from facepairs.verification.pairs_file import printable

FACES, PAGE, CORRECTED = "faces.csv", "people.html", "corrections.csv"
APART = "_apart"
COLUMNS = ("photo", "box", "person", "certainty", "not", "problem", "file")
CORRECTIONS = ("correction", "person", "to")
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


class Correction(NamedTuple):
    """A line of corrections; `place` is where it stands, for messages."""

    place: str
    what: str
    person: str
    to: str


def is_list(out: Path) -> bool:
    """Return whether an output is the list of faces alone."""
    return out.suffix.lower() == ".csv"


def check_people_folder(out: Path, heap: Path) -> None:
    """Refuse an output that is something else than an earlier one, before any work.

    Raises:
        BadData: It is.
    """
    if is_list(out):
        check_output_file(out, ",".join(COLUMNS).encode())
    else:
        check_output_folder(out, "a folder of facepairs group", _files_of, heap)


def _files_of(folder: Path) -> set[str]:
    return {FACES, PAGE, CORRECTED, *(row.file for row in _read_rows(folder / FACES) if row.file)}


def _read_rows(path: Path) -> list[FaceRow]:
    return [FaceRow(*(row[name] for name in COLUMNS)) for _, row in csv_rows(path, COLUMNS)]


def read_earlier(out: Path | None, photos: Collection[str]) -> Earlier:
    """Read the people of an earlier output, and correct them.

    A folder may hold `corrections.csv` with the columns correction, person and to. `merge,A,B`
    makes A and B one person A; `split,A,PHOTO` takes a photo from A; `name,A,NAME` renames A. What
    is done already is left out, so that the file can grow.

    Args:
        out: The earlier output; None or missing for none.
        photos: The photos of the heap.

    Raises:
        BadData: A file cannot be read, or has a photo that the heap lacks: what is written now
            would drop it.
        BadConfig: A name is no name for a folder.
    """
    place = None if out is None else out if is_list(out) else out / FACES
    if place is None or not place.exists():
        return Earlier()
    person: dict[FaceKey, str] = {}
    refused: dict[FaceKey, frozenset[str]] = {}
    there = set(map(printable, photos))
    for row in _read_rows(place):
        if row.photo not in there and (row.file or (row.person and not row.problem)):
            raise BadData(
                f"{place}: has {row.photo}, which is not among the photos now; to keep its people "
                "and files, choose another output"
            )
        key = (row.photo, _parse_box(row.box, place))
        if row.person:
            person[key] = row.person
        if row.refused:
            refused[key] = frozenset(row.refused.split(BETWEEN))
    corrections = place.with_name(CORRECTED)
    has_some = place.name == FACES and corrections.exists()
    lines = _read_corrections(corrections) if has_some else []
    taken = {*person.values(), *chain(*refused.values())}
    taken |= {name for one in lines for name in (one.person, one.to)}
    notes = tuple(_correct(person, refused, lines))
    return Earlier(person, refused, frozenset(taken), notes)


def _parse_box(text: str, place: Path) -> tuple[int, int, int]:
    """Return the box of a cell; of a photo without a face, zeros."""
    try:
        left, top, side = map(int, text.split()) if text else (0, 0, 0)
    except ValueError:
        raise BadData(f"{place}: box {text!r} is not left, top and side; group again") from None
    return left, top, side


def _read_corrections(path: Path) -> list[Correction]:
    found = []
    for line, row in csv_rows(path, CORRECTIONS):
        what, name, to = (row[column].strip() for column in CORRECTIONS)
        if what not in ("merge", "split", "name"):
            raise BadData(f"{path}: line {line}: correction {what!r}; use merge, split or name")
        to = folder_name(to) if what == "name" else to
        found.append(Correction(f"{path}: line {line}", what, name, to))
    return found


def _correct(
    person: dict[FaceKey, str], refused: dict[FaceKey, frozenset[str]], lines: list[Correction]
) -> Iterator[str]:
    """Correct people in place; yield what could not be corrected, unless it is done already."""
    gone = {one.to if one.what == "merge" else one.person for one in lines if one.what != "split"}
    for place, what, name, to in lines:
        faces = [key for key, owner in person.items() if owner == name]
        if what == "split":
            faces = [key for key in faces if key[0] == to and name not in refused.get(key, ())]
            for key in faces:  # not those that were split before, and merged since
                del person[key]
                refused[key] = refused.get(key, frozenset()) | {name}
            is_done = any(key[0] == to and names for key, names in refused.items())
        else:
            old, new = (to, name) if what == "merge" else (name, to)
            faces = _rename(person, refused, old, new) if faces else []
            is_done = new in gone or new in person.values()
        if not faces and not is_done:
            yield f"{place}: {what},{name},{to}: nothing to correct"


def _rename(
    person: dict[FaceKey, str], refused: dict[FaceKey, frozenset[str]], name: str, to: str
) -> list[FaceKey]:
    """Give all faces of a person to another, or to a new one; return them."""
    faces = [key for key, owner in person.items() if owner == name]
    person.update(dict.fromkeys(faces, to))
    for key, names in refused.items():
        refused[key] = frozenset(to if one == name else one for one in names)
    return faces


def folder_name(name: str) -> str:
    """Return the name of a person who gets a folder.

    Raises:
        BadConfig: No folder can have it.
    """
    clean = clean_name(name)
    if clean == APART or is_leftover(clean) or any(mark in clean for mark in f"/\\:{BETWEEN}"):
        raise BadConfig(f"{name!r}: no folder of a person can have this name; choose another")
    return clean


def write_people_folder(groups: Groups, out: Path) -> None:
    """Write people and the list of faces, or the list alone where `out` ends in .csv.

    Args:
        groups: The people.
        out: What is written, whole or not at all; an earlier output is replaced.

    Raises:
        BadData: It cannot be written.
    """
    if is_list(out):
        with temporary_beside(out) as place:
            _write_list(place, [row._replace(file="") for row, _ in _plan(groups)])
        return
    with atomic_folder(out) as folder:
        plan, progress = _plan(groups), console.progress("writing faces")
        lost: dict[str, str] = {}  # what is wrong with a photo that changed, by its file
        written: set[str] = set()
        for done, (row, face) in enumerate(plan, 1):
            if row.file and row.file not in written:
                written.add(row.file)
                target = folder / row.file
                target.parent.mkdir(parents=True, exist_ok=True)
                problem = _write_photo(groups.heap.root / row.photo, face, target)
                if problem:
                    lost[row.file] = problem
            progress(done, len(plan))
        _write_list(
            folder / FACES,
            [
                row._replace(file="", problem=lost[row.file]) if row.file in lost else row
                for row, _ in plan
            ],
        )
        page = render_page(groups)
        (folder / PAGE).write_text(page, encoding="utf-8", errors="backslashreplace")
        if (out / CORRECTED).exists():
            shutil.copyfile(out / CORRECTED, folder / CORRECTED)


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
    long = "_".join(path.parent.parts)
    content = f"{photo}\0{face}"
    for name in _candidates(stem, suffix, long):
        file = f"{folder}/{name}"
        if used.setdefault(file.casefold(), content) == content:
            return file
    raise AssertionError


def _candidates(stem: str, suffix: str, folder: str) -> Iterator[str]:
    yield f"{stem}{suffix}"
    number = 1
    while True:
        extra = f"_{number}" if number > 1 else ""
        yield f"{folder}_{stem}{extra}{suffix}"
        number += 1


def _write_photo(source: Path, face: HeapFace | None, target: Path) -> str:
    """Link a photo, or cut a face out of it; return why it cannot be read any more, or ""."""
    try:
        if face is None:
            _link(source, target)
        else:
            cut_out(source, face.box).save(target, "JPEG", quality=QUALITY)
    except BadImage as error:
        return str(error)
    except OSError as error:
        if os.access(source, os.R_OK):
            raise
        target.unlink(missing_ok=True)
        return f"{source}: {error.strerror}"
    return ""


def _link(source: Path, target: Path) -> None:
    """Link a photo, or copy it where links are not possible: to another disk, for instance."""
    try:
        os.link(os.path.realpath(source), target)
    except OSError:
        shutil.copyfile(source, target)


def _write_list(path: Path, rows: list[FaceRow]) -> None:
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(COLUMNS)
        writer.writerows(rows)
