"""`group`: a collection of photos, written as a folder of people."""

import contextlib
import hashlib
import os
import shutil
from contextlib import nullcontext
from itertools import count
from pathlib import Path, PurePosixPath

import numpy as np

from facepairs.data.index import UNNAMED
from facepairs.errors import BadBundle, BadConfig, BadData
from facepairs.gallery.gallery import Gallery
from facepairs.grouping.collection import NO_FACE, read_collection
from facepairs.grouping.cut_out import cut_out
from facepairs.grouping.faces_list import FACES, NO_LONGER, NOBODY, RATE, FaceRow, write_list
from facepairs.grouping.folder import (
    ONE_PHOTO,
    PAGE,
    UNCERTAIN,
    WITHOUT_FACE,
    PeopleFolder,
    check_people_folder,
    folder_name,
    folder_state,
    read_people_folder,
)
from facepairs.grouping.groups import PRECISION, Groups, KnownFaces, group_faces
from facepairs.grouping.linkage import unit_rows
from facepairs.grouping.page import pictures_of, render_page
from facepairs.support import console
from facepairs.support.atomic import atomic_folder
from facepairs.support.extras import require_extra
from facepairs.support.parallel import thread_map
from facepairs.support.words import command_line, printable
from facepairs.verification.verifier import Verifier


def write_people_folder(
    groups: Groups, out: Path, before: PeopleFolder, copy: bool = False
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


def _plan(groups: Groups, out: Path, before: PeopleFolder) -> tuple[list[FaceRow], dict[str, Path]]:
    """Return the rows of the list, and by file the photo or earlier file that it links to.

    Earlier files stay, except those that were put apart. Rows of faces come first; a face whose row
    has a file without its SHA-256 is still to be cut out.
    """
    root, rows = groups.collection.root, [_row(groups, face) for face in range(len(groups.faces))]
    kept = _kept_files(groups, before)
    links = {new: out / old for old, new in kept.items()}
    used = {PurePosixPath(file).name.casefold() for file in links}  # so files can be moved
    uncertain = frozenset(groups.uncertain)
    # Those that have a file first, so they keep its name.
    for number in sorted(range(len(rows)), key=lambda number: number not in before.rows):
        row, face, old = rows[number], groups.faces[number], before.rows.get(number, FaceRow())
        if old.file in kept or number in groups.nobody:
            rows[number] = row._replace(file=kept.get(old.file, ""), file_sha256=old.file_sha256)
            continue
        photo = PurePosixPath(row.photo)
        new_name = photo.name if face.number == 1 else f"{photo.stem}_face{face.number}.jpg"
        name = _free_name(PurePosixPath(old.file).name or new_name, used)
        folder = row.person or (UNCERTAIN if number in uncertain else ONE_PHOTO)
        sha256 = old.file_sha256 or (face.sha256 if face.number == 1 else "")
        rows[number] = row = row._replace(file=f"{folder}/{name}", file_sha256=sha256)
        if sha256:
            links[row.file] = out / old.file if old.file else root / face.photo
    for name, problem in groups.collection.problems.items():
        row = FaceRow(printable(name), groups.collection.photos[name], note=problem)
        if problem == NO_FACE and row.sha256 not in before.dropped:
            file = f"{WITHOUT_FACE}/{_free_name(PurePosixPath(row.photo).name, used)}"
            row = row._replace(file=file, file_sha256=row.sha256)
            links[file] = root / name
        rows.append(row)
    for name, first in groups.collection.copies.items():
        note, sha256 = f"copy of {printable(first)}", groups.collection.photos[first]
        rows.append(FaceRow(printable(name), sha256, note=note))
    retired = sorted(name for name in before.names - {*groups.person} if UNNAMED.fullmatch(name))
    rows += [*before.gone, *(FaceRow(person=name, note=NO_LONGER) for name in retired)]
    return [*rows, FaceRow(certainty=str(groups.expected.rate), note=RATE)], links


def _free_name(name: str, used: set[str]) -> str:
    """Return a name that no file has, with a number if needed, and take it."""
    free, numbers = name, count(2)
    while free.casefold() in used:
        free = str(PurePosixPath(name).with_stem(f"{PurePosixPath(name).stem}_{next(numbers)}"))
    used.add(free.casefold())
    return free


def _kept_files(groups: Groups, before: PeopleFolder) -> dict[str, str]:
    """Return the new place of each file that stays; a gallery may have named its person."""
    now = {name: groups.person[face] for face, name in before.settled.items() if name}
    kept = {}
    for path in before.state:
        folder, _, rest = path.partition("/")
        if path not in before.own:
            kept[path] = f"{now.get(folder, folder)}/{rest}" if rest else path
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


def _link(source: Path, target: Path, copy: bool) -> None:
    """Link or copy a photo, or a file of the earlier output."""
    if not copy:
        with contextlib.suppress(OSError):  # links are not possible: to another disk, for instance
            os.link(os.path.realpath(source), target)
            return
    shutil.copyfile(source, target)


def group(
    photos: Path | str,
    out: Path | str | None = None,
    bundle: Path | str | None = None,
    *,
    precision: float = PRECISION,
    gallery: Path | str | None = None,
    copy: bool = False,
) -> Groups:
    """Find all faces of all photos below a folder, and group them by people.

    Where `out` holds the people of an earlier call, it is read first: folders that were renamed or
    joined, and photos that were moved, copied or deleted by hand, stay as they are. New faces join
    these people, or make new ones.

    Examples:
        >>> groups = facepairs.group("holidays", out="people")
        >>> print(groups.expected.describe())

    Args:
        photos: The folder of photos. Nothing in it is changed.
        out: Folder to write, see `grouping.folder`; None for none.
        bundle: A bundle or external embedder whose grouping was measured; None for the included
            model.
        precision: Share of joined pairs of faces that should show one person, in (0, 1).
        gallery: Gallery that gives the names of people that are enrolled.
        copy: Write copies of photos instead of hard links.

    Raises:
        BadData: The folder holds no photo; or `out` cannot be written, is something else, or has
            one face in the folders of two people.
        BadConfig: The precision is outside (0, 1), or a name of the gallery cannot name a
            folder.
        BadBundle: The model does not serve, or its grouping was not measured.
        NotEnough: The model was measured on too few pairs for this precision.
        MissingExtra: The extra `measure` is not installed.
    """
    require_extra("measure", "facepairs.group")
    if not 0 < precision < 1:
        raise BadConfig(
            f"precision is {precision:g}; give the share of joined pairs that should be right, "
            "such as 0.99"
        )
    root, target = Path(photos), None if out is None else Path(out)
    if target is not None:
        check_people_folder(target, root)
    verifier = Verifier.load(bundle, threads=1)
    model = verifier.model
    tables = (model.profile.errors, model.profile.own_errors)
    errors = next((table for table in tables if table and table.grouping), None)
    if errors is None:
        calibrate = command_line("calibrate", model.place, "people/", "--out", "mine")
        raise BadBundle(
            f"{model.place}: how well it groups faces was not measured; run: {calibrate}"
        )
    with nullcontext() if gallery is None else Gallery(gallery, verifier) as opened:
        known = None if opened is None else known_faces(opened)
        collection, before = read_collection(root, verifier), PeopleFolder()
        if target is not None and (target / FACES).exists():
            collection, before = read_people_folder(target, collection, verifier)
        cohort, settled = model.profile.cohort, before.settled
        groups = group_faces(
            collection, errors, precision, settled, before.names, cohort, known, before.rate
        )
    if target is not None:
        write_people_folder(groups, target, before, copy)
    return groups


def known_faces(gallery: Gallery) -> KnownFaces | None:
    """Return the faces of a gallery's people; raises BadConfig if no folder can have a name."""
    embeddings, people = gallery.vectors().rows()
    if not people:
        return None
    names = {name: folder_name(name) for name in set(people)}
    return KnownFaces(unit_rows(embeddings), tuple(names[name] for name in people))
