"""The page on which a person looks through the groups of a heap and corrects them; offline."""

from pathlib import Path
from typing import Any

import numpy as np

from facepairs.gallery.grouping import Groups
from facepairs.gallery.heap import cut_out
from facepairs.support import console
from facepairs.support.html import data_url, render_template

TEMPLATE = "heap_page.html.jinja"
SCRIPT = "heap_page.js"
FACE_PX = 72
SHOWN = 8  # faces of a person, to read few photos again
DOUBTED = 60  # faces at the top
SURE = 0.25  # certainty of faces that are not shown there
QUALITY = 75


def render_page(groups: Groups) -> str:
    """Return the page of all people, the least certain faces first.

    It loads nothing; a small script collects corrections.

    Args:
        groups: The people; some of their photos are read again.
    """
    people: list[dict[str, Any]] = []
    progress = console.progress("writing the page")
    for done, (name, faces) in enumerate(groups.people.items(), 1):
        shown = [*faces[1:][::-1][: SHOWN - 1], faces[0]]  # the surest one last
        people.append(
            {"name": name, "count": len(faces), "faces": [_face(groups, face) for face in shown]}
        )
        progress(done, len(groups.people))
    order = np.argsort(groups.certainty, kind="stable")
    doubted = [face for face in order[:DOUBTED].tolist() if groups.certainty[face] < SURE]
    first = {one["name"]: one["faces"][-1]["picture"] for one in people}
    return render_template(
        Path(__file__).parent,
        TEMPLATE,
        SCRIPT,
        groups=groups,
        people=people,
        similar=[(one.one, one.other, first[one.one], first[one.other]) for one in groups.similar],
        doubted=[_face(groups, face) for face in doubted],
    )


def _face(groups: Groups, face: int) -> dict[str, Any]:
    """Return a face's photo, person, certainty and picture; encoded again, without metadata."""
    one = groups.faces[face]
    image = cut_out(groups.heap.root / one.photo, one.box).resize((FACE_PX, FACE_PX))
    return {
        "photo": one.photo,
        "person": groups.person[face],
        "picture": data_url(np.asarray(image), "JPEG", quality=QUALITY),
        "certainty": float(groups.certainty[face]),
    }
