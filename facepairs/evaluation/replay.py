"""Compute the figures of a report again from its scores, and say whether they are the same."""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from facepairs.bundles.rates import Errors
from facepairs.data.groups import read_families, read_groups
from facepairs.errors import BadData
from facepairs.evaluation.evaluate import EvaluationResult, compare_measurements
from facepairs.evaluation.factors import FACES, read_factors
from facepairs.evaluation.measurement import Measurement, measure_scores
from facepairs.evaluation.report.statement import EvaluationRecord
from facepairs.evaluation.summary import Summary
from facepairs.support.extras import require_extra
from facepairs.support.places import file_sha256
from facepairs.support.results import Result, to_plain
from facepairs.support.validation import validate
from facepairs.support.words import counted

ADVICE = "give the JSON of an evaluation"
NOT_IN_SCORES = ("about", "identification")  # fields of a summary
ROUNDING = 1e-9  # relative; another machine adds in another order


class ReplayDifference(msgspec.Struct, frozen=True):
    """A figure that is not the same again; None where it is missing.

    Attributes:
        figure: Its place in the JSON, such as `models.0.auc.value`.
        reported: In the report.
        again: Computed from the scores.
    """

    figure: str
    reported: Any
    again: Any


class ReplayResult(Result, frozen=True, kw_only=True):
    """Whether the figures of a report follow from its scores.

    Attributes:
        same: Whether all do.
        report: The report.
        figures: Number of figures that were compared.
        scores: The scores files, or `crossval` folders, that they were computed from, whole paths.
        not_in_scores: Parts of the report that do not follow from scores.
        differences: The figures that are not the same.
    """

    same: bool
    report: str
    figures: int
    scores: list[str]
    not_in_scores: list[str]
    differences: list[ReplayDifference]

    def describe(self) -> str:
        """Return in words what was compared."""
        count = counted(self.figures, "figure")
        made = f"{count} of {self.report}, computed again from {', '.join(self.scores)}"
        left_out = ", ".join(self.not_in_scores)
        return "; ".join(
            [
                made,
                *([f"not in the scores: {left_out}"] if left_out else []),
                "where the scores come from, and the photos, are not checked",
            ]
        )


def replay(report: Path | str) -> ReplayResult:
    """Compute every figure of a report again from its scores file.

    Thresholds are those of the report; files are looked for beside the report, then where they
    were. Where scores come from, and photos, are not checked.

    Args:
        report: JSON of an evaluation, of scores files, of folders of `crossval`, or of a verifier
            whose scores were kept.

    Raises:
        BadData: The report or a file of it cannot be read, was not kept, or has changed.
        NotEnough: The scores do not suffice.
    """
    require_extra("measure", "facepairs evaluate")
    report = Path(report)
    try:
        values = json.loads(report.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadData(f"{report}: cannot be read ({error}); {ADVICE}") from None
    result = validate(values, EvaluationResult, str(report), BadData, ADVICE)
    record, measured, places = result.record, list[Measurement](), list[Path]()

    def find(place: str) -> Path:
        return _find(place, record, report)

    groups = read_groups(find(record.groups)) if record.groups else None
    families = read_families(find(record.families)) if record.families else None
    factors = None
    if record.factors is not None:
        factors = [] if record.factors == FACES else read_factors(find(record.factors))
    if None in record.scores or len(record.scores) != len(result.models):
        raise BadData(
            f"{report}: the scores were not kept; evaluate again, and write them to a file"
        )
    for summary, scores in zip(result.models, filter(None, record.scores), strict=True):
        places.append(find(scores))
        bare = [
            msgspec.structs.replace(point, errors=Errors()) for point in summary.operating_points
        ]
        measured.append(
            measure_scores(places[-1], summary.about.name, groups, families, factors, bare[1:])
        )
    again = {"models": [_figures(one.summary) for one in measured], "comparison": None}
    if result.comparison is not None:
        again["comparison"] = to_plain(compare_measurements(measured))
    reported = {
        "models": [_figures(summary) for summary in result.models],
        "comparison": to_plain(result.comparison),
    }
    both = dict(_flat(reported)), dict(_flat(again))
    names = list(dict.fromkeys([*both[0], *both[1]]))
    rows = [ReplayDifference(name, *(figures.get(name) for figures in both)) for name in names]
    differences = [row for row in rows if not _is_same(row.reported, row.again)]
    return ReplayResult(
        same=not differences,
        report=str(report),
        figures=len(names),
        scores=[str(place.resolve()) for place in places],
        not_in_scores=["identification"]
        if any(one.identification for one in result.models)
        else [],
        differences=differences,
    )


def _find(place: str, record: EvaluationRecord, report: Path) -> Path:
    """Return a file or folder of a report, beside the report or where it was."""
    places = [report.parent / Path(place).name, Path(place)]
    there = [path for path in places if path.exists()]
    if not there:
        raise BadData(f"{report}: {place} is missing; restore it, or put it beside the report")
    for path in there:
        if path.is_dir() or file_sha256(path) == record.sha256.get(place):
            return path
    raise BadData(f"{there[0]}: has changed since {report} was written; restore it")


def _figures(summary: Summary) -> dict[str, Any]:
    """Return the figures of a summary that follow from its scores."""
    values: dict[str, Any] = to_plain(summary)
    return {name: value for name, value in values.items() if name not in NOT_IN_SCORES}


def _flat(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every single value of nested JSON with its place."""
    if isinstance(value, Mapping | list):
        parts = value.items() if isinstance(value, Mapping) else enumerate(value)
        for name, part in parts:
            yield from _flat(part, f"{place}.{name}" if place else str(name))
    else:
        yield place, value


def _is_same(one: Any, other: Any) -> bool:
    numbers = all(isinstance(value, int | float) for value in (one, other))
    return math.isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING) if numbers else one == other
