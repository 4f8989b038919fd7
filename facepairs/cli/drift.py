"""`facepairs drift`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument

from facepairs.cli.shared.options import Json, VerifierArgument
from facepairs.cli.shared.output import NEGATIVE, OK, percent, print_result

if TYPE_CHECKING:
    from facepairs.evaluation.drift import Change, DriftReport

EXAMPLE = "Example: facepairs drift mine/ photos-of-this-month/"


def drift(
    bundle: VerifierArgument,
    source: Annotated[
        Path,
        Argument(
            metavar="PHOTOS|SCORES.csv",
            help="Folder of photos, at any depth; or CSV left,right,score of random pairs.",
        ),
    ],
    json: Json = False,
) -> None:
    """Say whether photos still resemble the calibration's.

    Needs no labels: compares the scores of photos of different people, the sizes of faces and the
    hints on photos with those of the calibration. Needs photos of at least 20 people. Exit code 1
    if they differ by more than chance (below 1 %). Requires the measure extra: pip install
    '.[measure]'
    """
    from facepairs.evaluation.drift import drift as run

    result = run(bundle, source)
    print_result(json, result, _rows(result))
    raise typer.Exit(NEGATIVE if result.changed else OK)


def _rows(result: "DriftReport") -> Iterator[tuple[str, str]]:
    yield "measured on", result.measured_on
    yield "compared with", f"{result.people:,} people, {result.pairs:,} pairs of {result.source}"
    for change in result.changes:
        there, here = (_values(change, values) for values in (change.calibration, change.here))
        yield change.what, f"{there} there, {here} here: chance {percent(change.chance)}"
    verdict = "they differ" if result.changed else "no difference beyond chance"
    yield "drift", f"{verdict}: chance {percent(result.chance)} if nothing has changed"
    yield from (("advice", line) for line in result.advice)


def _values(change: "Change", values: list[float]) -> str:
    if len(values) == 1:
        return percent(values[0])
    digits = ".0f" if change.what == "face sizes" else ".4f"
    return " / ".join(format(value, digits) for value in values)
