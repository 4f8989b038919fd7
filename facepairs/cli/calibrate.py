"""`facepairs calibrate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from facepairs.cli.options import BundleArgument, Data, Json, Pairs
from facepairs.cli.output import log, percent, print_json, print_rows, progress_display

if TYPE_CHECKING:
    from facepairs.training.recalibrate import RecalibrationSummary

EXAMPLE = "Example: facepairs calibrate default photos/ --out mine"


def calibrate(
    bundle: BundleArgument,
    data: Data,
    out: Annotated[Path, Option(help="Bundle to write; an existing one is replaced.")],
    pairs: Pairs = None,
    json: Json = False,
) -> None:
    """Fit a verifier's probability and thresholds to your people; its weights stay the same.

    Needs at least 6 people and 20 genuine pairs. Measure the result on other people.
    """
    from facepairs.evaluation.serialize import to_plain
    from facepairs.training.recalibrate import recalibrate

    result = recalibrate(bundle, data, out, pairs, progress_display(json)("scoring pairs"))
    for line in result.notes:
        log(line)
    if json:
        print_json(to_plain(result.summary))
    else:
        print_rows(_rows(result.summary))


def _rows(summary: "RecalibrationSummary") -> list[tuple[str, str]]:
    fitted, before = summary.calibration, summary.before
    ece = fitted.ece
    rows = [
        ("bundle", summary.out),
        (
            "calibrated on",
            f"{fitted.genuine_pairs:,} genuine and {fitted.impostor_pairs:,} impostor pairs "
            f"of {summary.people:,} people",
        ),
        ("threshold", f"{summary.threshold:.4f}"),
        (
            "calibration error",
            "too few pairs" if ece is None else f"{percent(ece)} (ECE, cross-fitted)",
        ),
    ]
    if before:
        rows.append(
            (
                "before",
                f"threshold {before.threshold:.4f}, on these pairs FMR "
                f"{percent(before.fmr)}, FNMR {percent(before.fnmr)}, calibration error "
                f"{percent(before.ece)}",
            )
        )
    return [*rows, ("next", f"facepairs verify A.jpg B.jpg --bundle {summary.out}")]
