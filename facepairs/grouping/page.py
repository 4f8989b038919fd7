"""The page on which a person looks through the groups of a collection; offline."""

import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from facepairs.grouping.cut_out import face_picture
from facepairs.grouping.groups import Groups
from facepairs.support import console
from facepairs.support.html import data_url, render_template
from facepairs.support.parallel import thread_map
from facepairs.support.words import counted

TEMPLATE = "page.html.jinja"
SCRIPT = "page.js"
FACE_PX = 96
PICTURES = 20_000  # on one page, some 60 MB
COMPARED = 4  # faces of a person beside another one
DOUBTED = 100  # faces at the top
SURE = 0.25  # certainty of faces that are not shown there
QUALITY = 75
SHOWN = re.compile(r'data-face="([^"]+)" src="(data:image/jpeg;base64,[^"]+)"')

Pictures = dict[str, str]
"""Pictures of faces as `data:` URLs, by photo and place."""


def pictures_of(page: Path) -> Pictures:
    """Return the pictures of an earlier page, so that its photos need not be read again."""
    if not page.is_file():
        return {}
    return dict(SHOWN.findall(page.read_text(encoding="utf-8", errors="replace")))


def render_page(groups: Groups, out: Path, files: Sequence[str], pictures: Pictures) -> str:
    """Return the page of all people, the least certain first.

    It loads nothing; a small script copies paths.

    Args:
        groups: The people.
        out: The folder of the page, for links and paths.
        files: The file of each face in that folder; "" for a face without one.
        pictures: Pictures of faces that are known; photos of the others are read again.
    """
    people = sorted(groups.people.items(), key=lambda one: groups.certainty[one[1][-1]])
    apart = min(len(groups.single), PICTURES // 10)  # they have room on a full page, too
    limit = _limit([len(faces) for _, faces in people], PICTURES - apart)
    shown = {name: faces[::-1][:limit] for name, faces in people}  # the least certain first
    order = np.argsort(groups.certainty, kind="stable")[:DOUBTED].tolist()
    single = groups.single[: max(0, PICTURES - sum(map(len, shown.values())))]
    wanted = [number for name, faces in people for number in (*faces[:COMPARED], *shown[name])]
    found = _pictures(groups, dict.fromkeys([*wanted, *single]), pictures)

    def face(number: int) -> dict[str, Any]:
        """Return the page's entry for a face."""
        one = groups.faces[number]
        return {
            "key": _key(groups, number),
            "photo": one.photo,
            "link": _link(groups.collection.root / one.photo, out),
            "picture": found[number],
            "person": groups.person[number],
            "path": str(out.absolute() / files[number]) if files[number] else "",
        }

    return render_template(
        Path(__file__).parent,
        TEMPLATE,
        SCRIPT,
        groups=groups,
        out=out.absolute(),
        summary=_summary(groups),
        shown=shown,
        doubted=[number for number in order if groups.certainty[number] < SURE],
        single=single,
        compared=COMPARED,
        face=face,
    )


def _limit(counts: list[int], room: int) -> int:
    """Return how many faces of each person fit on the page, which has room for so many."""
    fit = bisect_right(range(room + 1), room, key=lambda n: np.minimum(counts, n).sum()) - 1
    return max(fit, COMPARED)


def _pictures(groups: Groups, wanted: Iterable[int], known: Pictures) -> dict[int, str]:
    """Return the pictures of faces; they are encoded again, without metadata."""
    found = {number: known.get(_key(groups, number), "") for number in wanted}
    new = [number for number, picture in found.items() if not picture]

    def make(number: int) -> str:
        face = groups.faces[number]
        picture = face_picture(groups.collection.root / face.photo, face.box, FACE_PX)
        return data_url(np.asarray(picture), "JPEG", quality=QUALITY)

    progress = console.progress("writing the page")
    for done, (number, picture) in enumerate(zip(new, thread_map(make, new), strict=True), 1):
        found[number] = picture
        progress(done, len(new))
    return found


def _key(groups: Groups, number: int) -> str:
    """Return a key of a face, by its content."""
    face = groups.faces[number]
    return f"{face.sha256} {' '.join(map(str, face.box))}"


def _link(photo: Path, out: Path) -> str:
    """Return a link from the page to a photo."""
    try:
        return quote(os.fsencode(Path(os.path.relpath(photo, out.resolve())).as_posix()))
    except ValueError:  # on another drive
        return photo.absolute().as_uri()


def _summary(groups: Groups) -> str:
    """Return the people, photos and faces in words."""
    people = counted(len(groups.people), "person", "people")
    photos = counted(len(groups.collection.photos), "photo")
    faces = counted(len(groups.faces), "face")
    alone = f"{len(groups.single):,} are there once, {len(groups.uncertain):,} are too unclear"
    return f"{people} on {photos} with {faces}, of which {alone} to be grouped"
