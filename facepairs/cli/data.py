"""`facepairs data check | import | synth | fetch`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Argument, Option

from facepairs.cli.app import App
from facepairs.cli.shared.options import Data, Json
from facepairs.cli.shared.output import (
    MAX_SHOWN,
    NEGATIVE,
    OK,
    log,
    log_first,
    percent,
    print_json,
    print_result,
    print_rows,
)
from facepairs.support.words import command_line, counted

if TYPE_CHECKING:
    from facepairs.data.findings import DatasetReport, ShownRates
    from facepairs.data.importing import ImportReport

app = App(
    help="Check, import, draw or fetch folders of faces.",
    epilog="Example: facepairs data check photos/",
    no_args_is_help=True,
)
NewFolder = Annotated[Path, Option(help="Folder to write; must not exist or be empty.")]


@app.command(epilog="Example: facepairs data check photos/")
def check(data: Data, json: Json = False) -> None:
    """Check a folder of faces before training on it.

    Finds unreadable, misplaced and duplicate photos, photos without a face, and photos that
    probably show another person than the rest of their folder. Exit code 1 if it finds an error, 0
    for warnings only.
    """
    from facepairs.evaluation.dataset_check import check_dataset

    report = check_dataset(data)
    if json:
        print_json(report)
    else:
        _print_report(report)
    raise typer.Exit(OK if report.ok else NEGATIVE)


def _print_report(report: "DatasetReport") -> None:
    counts = report.counts
    sizes = "not known: no photo can be used"
    if counts.sizes_px:
        smallest, most, largest = (f"{w} x {h}" for w, h in counts.sizes_px)
        several = f"{smallest} to {largest} pixels, most have {most}"
        sizes = f"{most} pixels" if smallest == largest else several
    low, high = counts.images_per_person_min, counts.images_per_person_max
    median = f"median {counts.images_per_person_median:g}"
    per_person = f"{low} per person" if low == high else f"{low} to {high} per person, {median}"
    print_rows(
        [
            ("people", f"{counts.people:,}, {counts.people_with_one_image:,} with one photo"),
            ("images", f"{counts.images:,} ({counts.megabytes:,.1f} MB), {per_person}"),
            ("sizes", sizes),
            ("genuine pairs", f"{counts.genuine_pairs:,} possible"),
            ("rates shown", _shown(report.shown_rates)),
        ]
    )
    shown: dict[str, int] = {}
    for finding in report.findings:
        shown[finding.kind] = shown.get(finding.kind, 0) + 1
        if shown[finding.kind] <= MAX_SHOWN:
            print_rows([(f"{finding.severity:<7}", finding.text)])
    for kind, number in shown.items():
        if number > MAX_SHOWN:
            print(f"         … and {number - MAX_SHOWN:,} more of kind {kind}: use --json")
    print(_conclusion(report))


def _shown(rates: "ShownRates | None") -> str:
    """Return in words which error rates a study of the folder can show."""
    if rates is None:
        return "unknown without the measure extra"
    best, half = (
        " and ".join(f"{name} {percent(rate)}" for name, rate in pairs if rate is not None)
        for pairs in (
            (("FMR", rates.fmr_without_errors), ("FNMR", rates.fnmr_without_errors)),
            (("FMR", rates.fmr), ("FNMR", rates.fnmr)),
        )
    )
    return f"{best or 'none'} without errors" + (f"; {half} if half of it is true" if half else "")


def _conclusion(report: "DatasetReport") -> str:
    if not report.ok:
        return "not ready for training: fix the lines that begin with error"
    warnings = sum(finding.severity == "warning" for finding in report.findings)
    return f"no errors, {counted(warnings, 'warning')}" if warnings else "ok"


@app.command("import", epilog="Example: facepairs data import archive.zip photos")
def import_(
    source: Annotated[Path, Argument(help="Folder, zip, tar or CSV file.")],
    out: Annotated[Path, Argument(help="Folder to write; must not exist or be empty.")],
    json: Json = False,
) -> None:
    """Import photos of people from another layout, as OUT/Person_Name/photo.jpg.

    Reads folders and archives (zip, tar) with Person_Name/photo.jpg at any depth, such as Kaggle's
    LFW or scikit-learn's lfw_home, and CSV files with the columns path and person. Makes hard links
    where possible, otherwise copies.
    """
    from facepairs.data.importing import import_photos

    report = import_photos(source, out)
    log_first([f"left out: {part.name}: {part.reason}" for part in report.left_out])
    print_result(json, report, _import_rows(report, out))


def _import_rows(report: "ImportReport", out: Path) -> Iterator[tuple[str, str]]:
    people = counted(report.people, "person", "people")
    yield "photos", f"{counted(report.images, 'photo')} of {people} in {out}"
    if report.left_out:
        yield "left out", f"{len(report.left_out):,}"
    yield "next", command_line("data", "check", out)


@app.command(epilog="Example: facepairs data synth --out faces/ --people 200 --photos 8 --seed 1")
def synth(
    out: NewFolder,
    people: Annotated[int, Option(help="Number of people.")] = 200,
    photos: Annotated[int, Option(help="Photos per person.")] = 8,
    seed: Annotated[int, Option(help="The same seed draws the same faces.")] = 0,
    difficulty: Annotated[
        float,
        Option(help="Difficulty of telling people apart, 0 to 1: likeness, age, pose, light."),
    ] = 0.0,
    families: Annotated[
        int,
        Option(help="Number of families of similar people, listed in OUT/families.csv."),
    ] = 0,
    json: Json = False,
) -> None:
    """Draw synthetic faces of invented people, in LFW's layout.

    People are unrelated unless --families asks for relatives.
    """
    from facepairs.data.synth.folder import write_synthetic_faces

    write_synthetic_faces(out, people, photos, seed, difficulty=difficulty, families=families)
    count = people * photos
    values = {"out": str(out), "people": people, "photos": count}
    drawn = f"{counted(count, 'photo')} of {counted(people, 'person', 'people')} in {out}"
    print_result(json, values, [("written", drawn)])


@app.command(epilog="Example: facepairs data fetch lfw --out data/lfw")
def fetch(
    name: Annotated[Literal["lfw"], Argument(help="Data set to download.")],
    out: Annotated[Path, Option(help="Folder for images and lists.")],
    lists_only: Annotated[
        bool, Option("--lists-only", help="Download the official lists without images.")
    ] = False,
    json: Json = False,
) -> None:
    """Download Labeled Faces in the Wild with its official lists.

    The photos show real people and were published for face recognition research.
    """
    from facepairs.data.lfw.fetch import fetch_lfw, fetch_lists

    if lists_only:
        fetch_lists(out)
        print_result(json, {"lists": str(out)}, [("lists", str(out))])
        return
    faces = fetch_lfw(out)
    log("LFW shows real people; its authors published it for face recognition research")
    values = {"images": str(faces), "lists": str(out)}
    print_result(json, values, values.items())
