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
    people: Annotated[int, Option(min=24, help="Number of people to draw.")] = 320,
    epochs: Annotated[int, Option(min=1, help="Epochs of training.")] = 6,
    seed: Annotated[int, Option(help="Of the faces and of the training.")] = 1,
    json: Json = False,
) -> None:
    """Show the whole workflow on drawn faces: draw, train, measure errors, verify two pairs.

    The people resemble each other like relatives, so some errors remain: expect an AUC of .95 to
    .99 on people that the model has never met, and a report of the errors, which opens in a browser
    (without a terminal or display, its path is printed). Takes two to three minutes on two cores;
    started again, it resumes. Prints every command before it runs; with --json, all commands and
    their results at the end.
    """
    from facepairs.training.demo import run_demo

    report = run_demo(out, people, epochs, seed, json)
    if json:
        print_json(report.to_json())
    raise typer.Exit(ERROR if report.auc is None else OK)
