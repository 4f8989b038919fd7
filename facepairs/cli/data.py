"""`facepairs data check | frame | synth | fetch`."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from facepairs.cli.output import NEGATIVE, print_json, print_rows, say, ticker
from facepairs.cli.runner import BeamOptions, Runner
from facepairs.cli.runner import path as as_typed

if TYPE_CHECKING:
    from facepairs.data.doctor import DatasetReport

app = typer.Typer(
    help="Check, frame, draw or fetch folders of faces.",
    epilog="Example: facepairs data check photos/",
    no_args_is_help=True,
)
MOST_SHOWN = 20  # findings of one kind; --json has them all


class Images(StrEnum):
    """The versions of Labeled Faces in the Wild."""

    DEEPFUNNELED = "deepfunneled"
    FUNNELED = "funneled"
    ORIGINAL = "original"


@app.command(epilog="Example: facepairs data check photos/")
def check(
    data: Annotated[str, typer.Argument(parser=as_typed, help="Folder of Person_Name/photo.jpg.")],
    runner: Runner = None,
    beam: BeamOptions = None,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Examine a folder of faces before training on it.

    Finds unreadable, misplaced and doubled photos. Exit code 1 where something is wrong. With
    facepairs[beam] DATA may be a gs://, s3:// or hdfs:// place.
    """
    from facepairs.beam.places import place
    from facepairs.beam.runner import choose_run
    from facepairs.data.doctor import check_dataset

    run = choose_run(runner, beam or [])
    report = check_dataset(place(data), ticker("checking images"), run)
    if json:
        print_json(report.to_json())
    else:
        _print_report(report)
    raise typer.Exit(0 if report.ok else NEGATIVE)


def _print_report(report: "DatasetReport") -> None:
    counts = report.counts
    sizes = ", ".join(f"{s.width_px}x{s.height_px} ({s.images:,})" for s in counts.sizes[:3])
    per_person = (
        f"{counts.images_per_person_min} to {counts.images_per_person_max} a person, "
        f"median {counts.images_per_person_median:g}"
    )
    print_rows(
        [
            ("people", f"{counts.people:,}, {counts.people_with_one_image:,} with one photo"),
            ("images", f"{counts.images:,} ({counts.megabytes:,.1f} MB), {per_person}"),
            ("sizes", sizes),
            ("genuine pairs", f"{counts.genuine_pairs:,} possible"),
        ]
    )
    shown: dict[str, int] = {}
    for finding in report.findings:
        shown[finding.kind] = shown.get(finding.kind, 0) + 1
        if shown[finding.kind] <= MOST_SHOWN:
            print_rows([(f"{finding.severity:<7}", finding.text)])
    for kind, number in shown.items():
        if number > MOST_SHOWN:
            print(f"         … and {number - MOST_SHOWN:,} more of kind {kind}: use --json")
    print("ok" if report.ok else "something is wrong: see the lines that begin with error")


@app.command(epilog="Example: facepairs data frame photos/ framed/ && facepairs train framed/")
def frame(
    photos: Annotated[Path, typer.Argument(help="Folder of Person_Name/photo.jpg.")],
    out: Annotated[Path, typer.Argument(help="Folder to write; must not exist or be empty.")],
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Find the largest face of every photo and frame it as LFW is, for training.

    Writes JPEGs of 250x250 pixels. Photos without a face are listed and left out, and the exit code
    is 1 then.
    """
    from facepairs.faces.frame_folder import frame_folder

    done = frame_folder(photos, out, ticker("framing photos"))
    for path, error in done.left_out[:MOST_SHOWN]:
        say(f"left out: {error if path in error else f'{path}: {error}'}")
    if len(done.left_out) > MOST_SHOWN:
        say(f"… and {len(done.left_out) - MOST_SHOWN:,} more: use --json")
    if json:
        print_json(done.to_json())
    else:
        print_rows(
            [
                ("framed", f"{done.framed:,} photos in {out}"),
                ("as they came", f"{done.as_they_came:,}, framed already"),
                ("several faces", f"{len(done.several_faces):,}: the largest was taken"),
                ("left out", f"{len(done.left_out):,}"),
            ]
        )
    raise typer.Exit(NEGATIVE if done.left_out else 0)


@app.command(epilog="Example: facepairs data synth faces/ --people 200 --images 8 --seed 1")
def synth(
    out: Annotated[Path, typer.Argument(help="Folder to write; must not exist or be empty.")],
    people: Annotated[int, typer.Option(help="How many people.")] = 200,
    images: Annotated[int, typer.Option(help="Photos of each.")] = 8,
    seed: Annotated[int, typer.Option(help="The same seed draws the same faces.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Draw synthetic faces of people who do not exist, in LFW layout."""
    from facepairs.data.synth.generate import synth_faces

    synth_faces(out, people, images, seed, progress=ticker("drawing faces"))
    if json:
        print_json({"out": str(out), "people": people, "images": people * images, "schema": 1})
    else:
        print_rows([("drawn", f"{people * images:,} photos of {people:,} people in {out}")])


@app.command(epilog="Example: facepairs data fetch lfw data/lfw --images deepfunneled")
def fetch(
    name: Annotated[str, typer.Argument(help="The data set: lfw.")],
    out: Annotated[Path, typer.Argument(help="Folder for images and lists.")],
    images: Annotated[
        Images, typer.Option(help="Which version of the images.")
    ] = Images.DEEPFUNNELED,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Download Labeled Faces in the Wild with its official lists; broken downloads go on.

    The photos show real people and were published for research on face recognition.
    """
    from facepairs.data.lfw.fetch import fetch_lfw

    if name != "lfw":
        raise typer.BadParameter(f"unknown data set {name!r}; only lfw can be fetched")
    folder = fetch_lfw(out, images.value, ticker("downloading"))
    say("LFW shows real people; its authors published it for research on face recognition")
    if json:
        print_json({"images": str(folder), "lists": str(out), "schema": 1})
    else:
        print_rows([("images", str(folder)), ("lists", str(out))])
