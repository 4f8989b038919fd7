"""`facepairs calibrate`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from facepairs.cli.output import print_json, print_rows, say, ticker

EXAMPLE = "Example: facepairs calibrate default photos/ --out mine"


def calibrate(
    bundle: Annotated[
        str, typer.Argument(help="Bundle to start from; default is the one of the package.")
    ],
    data: Annotated[Path, typer.Argument(help="Folder of Person_Name/photo.jpg: your people.")],
    out: Annotated[Path, typer.Option(help="Bundle to write; one that is there is replaced.")],
    pairs: Annotated[
        Path | None, typer.Option(help="CSV left,right,genuine with paths below DATA.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Fit a verifier's probability and thresholds to your people; its weights stay.

    It takes 6 people and 20 genuine pairs or more. Measure the result on other people.
    """
    from facepairs.training.recalibrate import recalibrate

    result = recalibrate(bundle, data, out, pairs, ticker("scoring pairs"))
    for line in result.notes:
        say(line)
    if json:
        print_json(result.summary)
    else:
        print_rows(_rows(result.summary))


def _rows(summary: dict[str, Any]) -> list[tuple[str, str]]:
    fitted, before = summary["calibration"], summary["before"]
    rows = [
        ("bundle", summary["out"]),
        (
            "calibrated on",
            f"{fitted['genuine_pairs']:,} genuine and {fitted['impostor_pairs']:,} impostor pairs "
            f"of {summary['people']:,} people",
        ),
        ("threshold", f"{summary['threshold']:.4f}"),
        (
            "calibration error",
            "too few pairs"
            if fitted["ece"] is None
            else f"{fitted['ece']:.3f} (ECE, cross-fitted)",
        ),
    ]
    if before:
        rows.append(
            (
                "before",
                f"threshold {before['threshold']:.4f}, on these pairs FMR {before['fmr']:.3f}, "
                f"FNMR {before['fnmr']:.3f}, calibration error {before['ece']:.3f}",
            )
        )
    return [*rows, ("next", f"facepairs verify A.jpg B.jpg --model {summary['out']}")]
