"""`facepairs group`: a collection of photos, sorted by people."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from facepairs.cli.shared.options import Bundle, Json
from facepairs.cli.shared.output import log, log_first, print_result
from facepairs.support.words import counted

if TYPE_CHECKING:
    from facepairs.grouping.groups import Groups

EXAMPLE = """\b
Examples:
  facepairs group holidays/ --out people
  facepairs group holidays/ --out people --gallery known.gallery
  facepairs group holidays/ --out people --precision 0.999 --labels labels.csv
"""


def group(
    photos: Annotated[Path, Argument(help="Folder of photos, in any folders below it.")],
    out: Annotated[
        Path,
        Option(help="Folder to write: person_0001/photo.jpg."),
    ],
    precision: Annotated[
        float, Option(help="Share of joined pairs of faces that should show one person.")
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
    """Sort photos by people, with known errors.

    All faces of all photos are found and grouped. The folder that is written is one of
    Person_Name/photo.jpg, which train, calibrate, evaluate and gallery add take; photos are hard
    links where possible, and nothing among the photos changes. Faces that are not the most
    prominent of their photo are cut out. People who are there once, faces that are too unclear and
    photos without a face lie in _apart, faces.csv lists every face, and people.html is a page to
    look through. How many strangers are joined by mistake was measured, so the result says how many
    pairs and people are expected to be wrong.

    Correct mistakes in a file manager: rename a folder to give a name, move photos to the
    person whom they show, to a new folder or to _apart, join folders, delete what you do not want.
    Then run the same command again, with more photos or not: it reads the folder, and keeps what
    you did. With --labels, the most prominent face of a photo counts, and intervals of 95 % over
    people are printed.
    """
    import msgspec

    from facepairs.evaluation.grouping import agreement, read_labels
    from facepairs.grouping.collection import find_photos
    from facepairs.grouping.group import group as group_photos

    known = read_labels(labels, find_photos(photos)[0]) if labels else {}
    try:
        groups = group_photos(photos, out, bundle, precision=precision, gallery=gallery, copy=copy)
    except KeyboardInterrupt:
        log("run the same command again to continue")
        raise
    log_first(_unusable(groups))
    values = {**groups.to_json(), "out": str(out), "model": bundle}
    rows = _rows(groups)
    if known:
        agreed = agreement(list(known.values()), [groups.of_photo[photo] for photo in known])
        rows += agreed.rows()
        values["agreement"] = msgspec.to_builtins(agreed)
    if groups.expected.precision < precision:
        log(
            "people of the earlier run stay, with its lower precision; to group all photos again, "
            "give a new --out"
        )
    print_result(json, values, rows)
    log(f"written: {out}; look at {out / 'people.html'}")


def _unusable(groups: "Groups") -> list[str]:
    """Return a line for each reason why photos cannot be used, and for each file in the folder."""
    files = {photo: why for photo, why in groups.unusable.items() if Path(photo).is_absolute()}
    photos = {photo: why for photo, why in groups.unusable.items() if photo not in files}
    reasons = Counter(photos.values()).most_common()
    first = {reason: photo for photo, reason in reversed(photos.items())}
    return [f"not used: {file}: {reason}, or delete it" for file, reason in files.items()] + [
        f"not used: {counted(number, 'photo')}: {reason}; the first one is {first[reason]}"
        for reason, number in reasons
    ]


def _rows(groups: "Groups") -> list[tuple[str, str]]:
    people = groups.people
    faces = counted(sum(map(len, people.values())), "face")
    apart = [
        f"{counted(len(groups.single), 'face')} of people who are there once",
        f"{len(groups.uncertain):,} too small, blurred, turned or cut off to be sure",
        f"{counted(len(groups.without_face), 'photo')} without a face",
    ]
    if groups.put_apart:
        apart.append(f"{counted(groups.put_apart, 'face')} put apart, deleted or edited by hand")
    rows = [("people", f"{len(people):,}, with {faces}"), ("apart", ", ".join(apart))]
    others = [counted(number, kind) for kind, number in groups.collection.passed_over.items()]
    if groups.collection.copies:
        others.append(counted(len(groups.collection.copies), "copy", "copies") + " of photos")
    if groups.unusable:
        others.append(f"{counted(len(groups.unusable), 'photo')} that cannot be used")
    if others:
        rows.append(("passed over", ", ".join(others)))
    return [*rows, ("expected errors", groups.expected.describe())]
