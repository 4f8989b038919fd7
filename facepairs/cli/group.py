"""`facepairs group`: a heap of photos, sorted by people."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from facepairs.cli.shared.options import Bundle, Json
from facepairs.cli.shared.output import log, log_first, print_result, progress_display
from facepairs.support.words import counted

if TYPE_CHECKING:
    from facepairs.evaluation.grouping import Agreement
    from facepairs.gallery.grouping import Groups

EXAMPLE = """\b
Examples:
  facepairs group holidays/ --out people --report people.html
  facepairs group holidays/ --out people --corrections corrections.csv
  facepairs group holidays/ --out faces.csv --precision 0.999
"""
SCHEMA = 1


def group(
    heap: Annotated[Path, Argument(help="Folder of photos, in any folders below it.")],
    out: Annotated[
        Path, Option(help="Folder to write: person_0001/photo.jpg; or a .csv file, the list alone.")
    ],
    precision: Annotated[
        float, Option(help="Share of joined pairs of faces that shall show one person.")
    ] = 0.99,
    corrections: Annotated[
        Path | None, Option(help="CSV file correction,person,to: merge, split or name.")
    ] = None,
    gallery: Annotated[Path | None, Option(help="Gallery that names people it knows.")] = None,
    labels: Annotated[
        bool,
        Option("--labels", help="Compare with the folders of the heap, one of each person."),
    ] = False,
    report: Annotated[Path | None, Option(help="HTML page of all people to look through.")] = None,
    copy: Annotated[bool, Option("--copy", help="Copy photos instead of linking them.")] = False,
    bundle: Bundle = "default",
    json: Json = False,
) -> None:
    """Find all faces of a heap of photos and group them by people, with errors that are known.

    The folder that is written is one of Person_Name/photo.jpg, which train, calibrate, evaluate and
    gallery add-folder take; photos are hard links where possible, and nothing in the heap changes.
    Faces that are not the most prominent of their photo are cut out. People with one photo and
    photos without a face lie in _apart, and faces.csv lists every face. How many strangers are
    joined by mistake was measured, so the result says how many pairs and people are expected to be
    wrong. Grouping again into the same folder keeps its people and adds new photos to them.
    """
    from facepairs.gallery.group import group as group_heap
    from facepairs.gallery.heap_page import check_page, write_page

    if report is not None:
        check_page(report)
    progress = progress_display(json)
    groups = group_heap(
        heap,
        out,
        bundle,
        precision=precision,
        corrections=corrections,
        gallery=gallery,
        copy=copy,
        progress=progress,
    )
    if report is not None:
        write_page(groups, report, progress("writing the page"))
    measured = _compare(groups) if labels else None
    log_first([f"warning: {note}" for note in groups.notes])
    log_first([f"unusable: {why}" for why in groups.unusable.values()])
    values = {**groups.to_json(), "out": str(out), "model": bundle, "schema": SCHEMA}
    if measured:
        values["agreement"] = measured.to_json()
    print_result(json, values, _rows(groups, measured))
    for place in filter(None, (out, report)):
        log(f"written: {place}")


def _rows(groups: "Groups", measured: "Agreement | None") -> list[tuple[str, str]]:
    people = groups.people
    in_groups = sum(map(len, people.values()))
    rows = [
        ("people", f"{len(people):,}, with {counted(in_groups, 'face')}"),
        (
            "apart",
            counted(len(groups.single), "face")
            + " of people with one photo, "
            + counted(len(groups.without_face), "photo")
            + " without a face",
        ),
        ("expected errors", groups.expected.describe()),
    ]
    if measured:
        for name, rate in measured.figures.items():
            text = (
                "not measurable"
                if rate is None
                else (f"{rate.value:.4f} ({rate.interval[0]:.4f} to {rate.interval[1]:.4f})")
            )
            rows.append((name.replace("_", " "), text))
        rows.append(("mixed people", f"{measured.mixed_groups:,}"))
    return rows


def _compare(groups: "Groups") -> "Agreement":
    """Compare the most prominent face of each photo with the folder of the photo."""
    from facepairs.evaluation.grouping import agreement

    faces = [at for at, face in enumerate(groups.faces) if face.number == 1 and "/" in face.photo]
    own = [groups.person[at] or f"/{at}" for at in faces]
    return agreement([groups.faces[at].photo.rpartition("/")[0] for at in faces], own)
