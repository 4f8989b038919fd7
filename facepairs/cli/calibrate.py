"""`facepairs calibrate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from facepairs.cli.options import BundleArgument, Data, Json, Pairs, SkipBad
from facepairs.cli.output import log, percent, print_result, progress_display

if TYPE_CHECKING:
    from facepairs.training.recalibrate import RecalibrationSummary

EXAMPLE = "Example: facepairs calibrate default photos/ --out mine"


def calibrate(
    bundle: BundleArgument,
    data: Data,
    out: Annotated[Path, Option(help="Bundle to write; an existing one is replaced.")],
    pairs: Pairs = None,
    skip_bad: SkipBad = False,
    json: Json = False,
) -> None:
    """Fit a verifier's probability and thresholds to your people; its weights stay the same.

    Needs at least 6 people and 20 genuine pairs. Measure the result on other people.
    """
    from facepairs.evaluation.serialize import to_plain
    from facepairs.training.recalibrate import recalibrate

    result = recalibrate(bundle, data, out, pairs, skip_bad, progress_display(json))
    for line in result.notes:
        log(line)
    print_result(json, to_plain(result.summary), _rows(result.summary))


def _rows(summary: "RecalibrationSummary") -> list[tuple[str, str]]:
    fitted, before = summary.calibration, summary.before
    pairs = f"{fitted.genuine_pairs:,} genuine and {fitted.impostor_pairs:,} impostor pairs"
    rows = [
        ("bundle", summary.out),
        ("calibrated on", f"{pairs} of {summary.people:,} people"),
        ("threshold", f"{summary.threshold:.4f}"),
        ("calibration error", f"{percent(fitted.ece)} (ECE, cross-fitted)"),
    ]
    if before:
        errors = (
            f"FMR {percent(before.fmr)}, FNMR {percent(before.fnmr)}, calibration error "
            f"{percent(before.ece)}"
        )
        rows.append(("before", f"threshold {before.threshold:.4f}, on these pairs {errors}"))
    return [*rows, ("next", f"facepairs verify A.jpg B.jpg --bundle {summary.out}")]
