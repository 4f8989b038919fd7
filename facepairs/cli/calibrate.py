"""`facepairs calibrate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from facepairs.cli.shared.options import Data, Families, Json, SkipBad, VerifierArgument
from facepairs.cli.shared.output import percent, print_result
from facepairs.support.words import command_line

if TYPE_CHECKING:
    from facepairs.evaluation.calibrate import Recalibration

EXAMPLE = "Example: facepairs calibrate default photos/ --out mine"
KEPT = (
    "it already fits your people: a new calibration, fitted to half of them, was not better on the "
    "other half. Every verdict now reports the errors on your people"
)


def calibrate(
    bundle: VerifierArgument,
    data: Data,
    out: Annotated[Path, Option(help="Bundle to write; an existing one is replaced.")],
    families: Families = None,
    skip_bad: SkipBad = False,
    json: Json = False,
) -> None:
    """Fit a verifier's probability and thresholds to your people.

    The weights stay the same. Needs at least 6 people and 20 genuine pairs; from about 20 people
    on, the thresholds fit your photos far better than those of another collection. Measure the
    result on other people. Requires the measure extra: pip install '.[measure]'
    """
    from facepairs.evaluation.calibrate import calibrate as run

    result = run(bundle, data, out, families=families, skip_bad=skip_bad)
    print_result(json, result, _rows(result))


def _rows(result: "Recalibration") -> list[tuple[str, str]]:
    pairs = f"{result.genuine_pairs:,} genuine and {result.impostor_pairs:,} impostor pairs"
    point, former = result.operating_point, result.former
    rows = [("bundle", result.out), ("measured on", f"{pairs} of {result.people:,} people")]
    if result.kept_former:
        rows.append(("kept as it was", KEPT))
    rows += [
        ("verify decides", f"{point.label}: score {point.threshold:.4f} and above"),
        ("errors", point.describe()),
        ("probability", f"one half at score {result.threshold:.4f}"),
        ("calibration error", f"{percent(result.ece)} (ECE, on pairs it was not fitted to)"),
    ]
    if former and not result.kept_former:
        text = f"score {former.threshold:.4f} ({former.label}); here {former.describe()}"
        rows.append(("before", text))
    return [*rows, ("next", command_line("evaluate", result.out, "OTHER_PEOPLE"))]
