"""`facepairs demo`."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from facepairs.cli.shared.options import Json
from facepairs.cli.shared.output import ERROR, OK, print_json

EXAMPLE = "Example: facepairs demo --out demo"


def demo(
    out: Annotated[Path, Option(help="Folder to write.")] = Path("demo"),
    people: Annotated[int, Option(min=24, help="Number of people to draw.")] = 400,
    epochs: Annotated[int, Option(min=1, help="Epochs of training.")] = 6,
    json: Json = False,
) -> None:
    """Show the whole workflow on drawn faces: draw, train, measure errors, verify two pairs.

    Prints every command before it runs; with --json, all commands and their results at the end.
    Takes two to four minutes on two cores; started again, it resumes.
    """
    from facepairs.training.demo import run_demo

    report = run_demo(out, people, epochs, json)
    if json:
        print_json(report.to_json())
    raise typer.Exit(ERROR if report.auc is None else OK)
