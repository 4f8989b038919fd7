"""`facepairs verify`: do two photos show the same person?"""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from facepairs.cli.shared.options import Bundle, Json, MaxFmr, Prior, Threshold
from facepairs.cli.shared.output import VERDICT_CODES, log, print_result, warn_of_known

EXAMPLE = """\b
Examples:
  facepairs verify a.jpg b.jpg
  facepairs verify a.jpg b.jpg --max-fmr 0.001 --json
  facepairs verify group.jpg b.jpg --face 2
"""


def verify(
    left: Annotated[Path, Argument(metavar="A", help="One photo.")],
    right: Annotated[Path, Argument(metavar="B", help="The other photo.")],
    bundle: Bundle = "default",
    threshold: Threshold = None,
    max_fmr: MaxFmr = None,
    prior: Prior = 0.5,
    face: Annotated[
        list[int] | None,
        Option(
            min=1,
            show_default=False,
            metavar="N",
            help="Number of the face to compare, if a photo shows several: once for A, twice for A "
            "and B. [default: 1, the most prominent]",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Decide whether two photos show the same person.

    Finds and aligns the most prominent face of each photo, by size and position, and warns of
    photos that are hard to judge. The verdict includes the error rates at the threshold. In JSON,
    `left` and `right` have the face's box [left, top, side] in pixels, its landmarks, score and
    rotation in degrees, the number of faces, and hints.

    Exit codes: 0 the same person, 1 different people or not confirmed, 2 an error such as no face,
    3 no verdict (a face of less than 24 pixels, or a model without a threshold).
    """
    from facepairs.verification.verdict import SEVERAL_FACES, verdict_rows
    from facepairs.verification.verifier import Verifier

    if len(face or ()) > 2:
        raise typer.BadParameter("give at most two numbers, for A and B", param_hint="--face")
    verifier = Verifier.load(bundle)
    first, second = [*(face or ()), None, None][:2]
    verdict = verifier.verify(left, right, threshold, max_fmr, prior, (first, second))
    warn_of_known(verifier, bundle, (left, right))
    options = "--face 2", f"--face {first or 1} --face 2"
    for photo, shown, option in zip(
        (left, right), (verdict.left, verdict.right), options, strict=True
    ):
        for hint in shown.hints if shown else ():
            advice = f"; for another face: {option}" if hint.kind == SEVERAL_FACES else ""
            log(f"warning: {photo}: {hint.text}{advice}")
    print_result(json, verdict, verdict_rows(verdict))
    raise typer.Exit(VERDICT_CODES[verdict.same])
