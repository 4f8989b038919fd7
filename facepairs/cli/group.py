"""`facepairs group`: a heap of photos, sorted by people."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from facepairs.cli.shared.options import Bundle, Json
from facepairs.cli.shared.output import log, log_first, print_result
from facepairs.support.words import counted

if TYPE_CHECKING:
    from facepairs.gallery.grouping import Groups

EXAMPLE = """\b
Examples:
  facepairs group holidays/ people
  facepairs group holidays/ people --gallery known.gallery
  facepairs group holidays/ people --precision 0.999 --labels labels.csv
"""
SCHEMA = 1


def group(
    heap: Annotated[Path, Argument(help="Folder of photos, in any folders below it.")],
    out: Annotated[
        Path,
        Argument(help="Folder to write: person_0001/photo.jpg."),
    ],
    precision: Annotated[
        float, Option(help="Share of joined pairs of faces that shall show one person.")
    ] = 0.99,
    bundle: Bundle = "default",
    gallery: Annotated[
        str | None, Option(help="Gallery that gives the names of people who are enrolled.")
    ] = None,
    labels: Annotated[
        Path | None,
        Option(help="CSV file photo,person: measure how well the groups agree with it."),
    ] = None,
    copy: Annotated[bool, Option("--copy", help="Copy photos instead of linking them.")] = False,
    json: Json = False,
) -> None:
    """Sort a heap of photos by people, with errors that are known.

    All faces of all photos are found and grouped. The folder that is written is one of
    Person_Name/photo.jpg, which train, calibrate, evaluate and gallery add take; photos are hard
    links where possible, and nothing in the heap changes. Faces that are not the most prominent of
    their photo are cut out. People who are there once and photos without a face lie in _apart,
    faces.csv lists every face, and people.html is a page to look through. How many strangers are
    joined by mistake was measured, so the result says how many pairs and people are expected to be
    wrong.

    Grouping again into the same folder keeps its people, adds new photos to them, and makes the
    corrections of its corrections.csv (correction,person,to: merge, split or name), which the page
    helps to write; they move to corrected.csv. With --labels, the most prominent face of a photo
    counts, and intervals of 95 % over people are printed.
    """
    import msgspec

    from facepairs.evaluation.grouping import agreement, read_labels
    from facepairs.gallery.group import group as group_heap
    from facepairs.gallery.heap import find_photos

    known = read_labels(labels, find_photos(heap)) if labels else {}
    groups = group_heap(heap, out, bundle, precision=precision, gallery=gallery, copy=copy)
    log_first([f"unusable: {why}" for why in groups.unusable.values()])
    values = {**groups.to_json(), "out": str(out), "model": bundle, "schema": SCHEMA}
    rows = _rows(groups)
    if known:
        agreed = agreement(list(known.values()), [groups.of_photo[photo] for photo in known])
        rows += agreed.rows()
        values["agreement"] = msgspec.to_builtins(agreed)
    print_result(json, values, rows)
    log(f"written: {out}")


def _rows(groups: "Groups") -> list[tuple[str, str]]:
    people = groups.people
    faces = counted(sum(map(len, people.values())), "face")
    single = f"{counted(len(groups.single), 'face')} of people who are there once"
    without = f"{counted(len(groups.without_face), 'photo')} without a face"
    return [
        ("people", f"{len(people):,}, with {faces}"),
        ("apart", f"{single}, {without}"),
        ("expected errors", groups.expected.describe()),
    ]
