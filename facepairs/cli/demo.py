"""`facepairs demo`."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from facepairs.cli.output import ERROR

EXAMPLE = "Example: facepairs demo --out demo"


def demo(
    out: Annotated[Path, Option(help="Folder to write.")] = Path("demo"),
    people: Annotated[int, Option(min=24, help="Number of people to draw.")] = 400,
    epochs: Annotated[int, Option(min=1, help="Epochs of training.")] = 6,
) -> None:
    """Show the whole workflow on drawn faces: draw, train, measure errors, verify two pairs.

    Prints every command before it runs. Takes two to four minutes on two cores; started again, it
    resumes.
    """
    from facepairs.training.demo import run_demo

    code = run_demo(out, people, epochs)
    raise typer.Exit(ERROR if code else 0)
