"""`facepairs verify`."""

from pathlib import Path
from typing import Annotated

import typer

from facepairs.cli.output import NEGATIVE, OK, print_json, print_rows

EXAMPLE = "Example: facepairs verify a.jpg b.jpg"


def verify(
    left: Annotated[Path, typer.Argument(metavar="A", help="One photo.")],
    right: Annotated[Path, typer.Argument(metavar="B", help="The other photo.")],
    model: Annotated[
        str,
        typer.Option(
            help="Bundle made by `facepairs train`; the word default is the one of the package.",
            envvar="FACEPAIRS_MODEL",
        ),
    ] = "default",
    json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")] = False,
) -> None:
    """Tell whether two photos show one person.

    Exit code 0: the same person, 1: different people, 2: an error.
    """
    from facepairs.verification.verifier import Verifier

    verdict = Verifier.load(model).verify(left, right)
    if json:
        print_json(
            {
                "same": verdict.same,
                "probability": verdict.probability,
                "score": verdict.score,
                "threshold": verdict.threshold,
                "left": str(left),
                "right": str(right),
                "model": model,
                "schema": 1,
            }
        )
    else:
        print_rows(
            [
                ("verdict", "same person" if verdict.same else "different people"),
                ("probability", f"{verdict.probability:.3f} (calibrated, at equal priors)"),
                ("score", f"{verdict.score:.4f} (threshold {verdict.threshold:.4f})"),
            ]
        )
    raise typer.Exit(OK if verdict.same else NEGATIVE)
