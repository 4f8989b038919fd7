"""`facepairs plan`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from typer import Option

from facepairs.cli.shared.options import Json
from facepairs.cli.shared.output import percent, print_result

if TYPE_CHECKING:
    from facepairs.evaluation.planning import StudyPlan, StudySize

EXAMPLE = "Example: facepairs plan --fmr 0.001 --fnmr 0.05 --photos 4"


def plan(
    fmr: Annotated[
        float | None, Option(help="False match rate to be shown, such as 0.001.")
    ] = None,
    fnmr: Annotated[
        float | None, Option(help="False non-match rate to be shown, such as 0.05.")
    ] = None,
    photos: Annotated[int, Option(help="Photos of each person.")] = 4,
    share: Annotated[
        float, Option(help="Expected true rate, as a share of the rate to be shown.")
    ] = 0.5,
    power: Annotated[
        float, Option(help="Share of studies that are to show it at that true rate.")
    ] = 0.8,
    json: Json = False,
) -> None:
    """Say how many people and photos show an error rate.

    A study shows a rate where the upper end of the 95 % interval that `evaluate` prints is not
    above it. How much pairs depend on each other because they share people was measured on LFW with
    the included model. Requires the measure extra: pip install '.[measure]'
    """
    from facepairs.evaluation.planning import plan as run

    result = run(fmr, fnmr, photos, share, power)
    print_result(json, result, _rows(result))


def _rows(result: "StudyPlan") -> Iterator[tuple[str, str]]:
    from facepairs.evaluation.protocols import MOST_IMPOSTORS

    for need in result.rates:
        name = f"{need.rate.upper()} at most {percent(need.claimed)}"
        event = "stranger is accepted" if need.rate == "fmr" else "genuine pair is missed"
        yield name, f"{_size(need.without_errors, need.rate)}, if no {event}"
        often = f"{percent(result.power)} of such studies show it"
        true = f"if the true rate is {percent(need.true_rate)}: {often}"
        yield "", f"{_size(need.with_errors, need.rate)}, {true}"
        if need.rate == "fmr" and need.with_errors.pairs > MOST_IMPOSTORS:
            yield (
                "",
                f"evaluate draws {MOST_IMPOSTORS:,} pairs of strangers: list more with --pairs",
            )


def _size(size: "StudySize", rate: str) -> str:
    pairs = "genuine pairs" if rate == "fnmr" else "pairs of strangers"
    return f"{size.people:,} people, {size.photos:,} photos, {size.pairs:,} {pairs}"
