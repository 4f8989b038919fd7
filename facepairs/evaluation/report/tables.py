"""The tables of a report, for the page and CSV files."""

from collections.abc import Iterable, Sequence
from typing import Any

from facepairs.bundles.error_table import MeasuredRate
from facepairs.evaluation.report.cells import (
    EMPTY,
    Cell,
    Table,
    interval,
    make_table,
    number,
    rate,
)
from facepairs.evaluation.report.data import ModelData, ReportData
from facepairs.evaluation.report.facts import data_table, history_table, published_table
from facepairs.evaluation.report.summary_tables import (
    accuracy_text,
    figure_rows,
    source_rows,
    tests_table,
)
from facepairs.evaluation.report.tradeoff import TradeOff

RATES = ["strangers accepted (FMR)", "95 %", "genuine pairs missed (FNMR)", "95 %"]
TRADE_OFF_NOTE = (
    "Thresholds set on these same pairs: a point of the curve, not a promise for others. Rarer "
    "errors need more pairs."
)


def measured(value: MeasuredRate | None) -> Cell:
    """Return a rate and its interval in one cell, percent."""
    if value is None:
        return EMPTY
    return Cell(f"{100 * value.rate:.2f} % ({interval(value.interval).text})", value.rate)


def comparison_tables(report: ReportData) -> list[Table]:
    """Return the verifiers side by side and their differences; nothing for one verifier."""
    if report.comparison is None:
        return []
    tables = [_side_by_side(report.models), tests_table(report.comparison)]
    rows = {(row.among, row.one_in) for model in report.models for row in model.trade_offs}
    if rows:
        tables.insert(1, _trade_offs_of_several(report.models))
    return tables


def _side_by_side(models: Sequence[ModelData]) -> Table:
    rows = [
        [
            model.name,
            Cell(accuracy_text(model.summary), model.summary.accuracy),
            interval(model.summary.accuracy_interval),
            rate(model.summary.fmr),
            rate(model.summary.fnmr),
            number(model.summary.auc),
            rate(model.summary.eer),
            number(model.summary.ece),
        ]
        for model in models
    ]
    columns = ["verifier", "accuracy", "95 %", "FMR", "FNMR", "AUC", "EER", "ECE"]
    note = (
        "All on the same pairs, each at its balanced threshold. FMR: strangers accepted. FNMR: "
        "genuine pairs missed. EER: where both are equal. ECE: error of the probabilities."
    )
    return make_table("verifiers", "Verifiers", note, columns, rows)


def _trade_offs_of_several(models: Sequence[ModelData]) -> Table:
    found: dict[tuple[str, int], dict[str, TradeOff]] = {}
    for model in models:
        for row in model.trade_offs:
            found.setdefault((row.among, row.one_in), {})[model.name] = row
    rows = [
        [
            Cell(f"1 in {one_in:,} {among}", 1 / one_in),
            *(measured(by_name[model.name].fnmr) for model in models),
        ]
        for (among, one_in), by_name in found.items()
    ]
    columns = ["accepting at most", *(f"{model.name}: genuine pairs missed" for model in models)]
    return make_table("trade-offs", "What each would miss", TRADE_OFF_NOTE, columns, rows)


def _trade_offs(model: ModelData, key: str) -> Table:
    found: dict[int, dict[str, TradeOff]] = {}
    for row in model.trade_offs:
        found.setdefault(row.one_in, {})[row.among] = row
    kinds = list(dict.fromkeys(row.among for row in model.trade_offs))
    rows = []
    for one_in, by_kind in sorted(found.items()):
        cells = [Cell(f"1 in {one_in:,}", 1 / one_in)]
        for kind in kinds:
            choice = by_kind.get(kind)
            if choice is None:
                cells += [Cell("too few pairs", None), EMPTY]
            else:
                cells += [measured(choice.fnmr), number(choice.threshold)]
        rows.append(cells)
    columns = ["accepting at most"]
    for kind in kinds:
        columns += [f"of {kind}: genuine pairs missed", "at threshold"]
    return make_table(f"trade-offs-{key}", "Choose a threshold", TRADE_OFF_NOTE, columns, rows)


def _points_table(model: ModelData, key: str) -> Table:
    alike = any(point.lookalike_fmr for point in model.points)
    rows = []
    for point in model.points:
        low, high = point.threshold, point.threshold_high
        text = f"{low:.4f}" if low == high else f"{low:.4f} to {high:.4f}"
        name = f"{point.label} (default)" if point.is_default else point.label
        rates = [measured(point.fmr), *([measured(point.lookalike_fmr)] if alike else [])]
        rows.append([name, Cell(text, low), *rates, measured(point.fnmr), point.set_by])
    columns = ["operating point", "threshold", "strangers accepted (FMR)"]
    columns += ["look-alikes accepted"] if alike else []
    columns += ["genuine pairs missed (FNMR)", "threshold set by"]
    note = (
        "Errors on these pairs, with 95 % intervals. A pair is accepted when its score is at or "
        "above the threshold."
    )
    if alike:
        note += " Look-alikes: strangers whose photos lie in the same cluster of embeddings."
    return make_table(f"points-{key}", "Operating points", note, columns, rows)


def _figures_table(model: ModelData, key: str) -> Table:
    columns = ["figure", "value", "95 % interval"]
    note = ". ".join(f"{label}: {text}" for label, text in source_rows(model.summary)[1:])
    return make_table(f"figures-{key}", "All figures", note, columns, figure_rows(model.summary))


def _folds_table(model: ModelData, key: str) -> Table:
    people = {fold.fold: fold.people.get("training") for fold in model.origin.folds}
    rows = [
        [
            fold.fold,
            rate(fold.accuracy),
            fold.false_accepts,
            fold.false_rejects,
            fold.pairs,
            number(fold.threshold),
            people.get(fold.fold),
        ]
        for fold in model.summary.true_folds
    ]
    columns = ["fold", "accuracy", "strangers accepted", "genuine pairs missed", "pairs"]
    return make_table(f"folds-{key}", "Folds", "", [*columns, "threshold", "training people"], rows)


def _rate_cells(rates: Any) -> list[Cell]:
    """Return FMR and FNMR with their intervals."""
    return [
        rate(rates.fmr),
        interval(rates.fmr_interval),
        rate(rates.fnmr),
        interval(rates.fnmr_interval),
    ]


def _quality_table(model: ModelData, key: str) -> Table:
    rows = [
        [
            f"{row.measure} ({row.unit})",
            Cell(row.label, row.third),
            Cell(f"{row.low:.3g} to {row.high:.3g}", row.low),
            row.genuine_pairs + row.impostor_pairs,
            *_rate_cells(row),
        ]
        for row in model.quality or []
    ]
    columns = ["quality", "third", "from, to", "pairs", *RATES]
    return make_table(f"quality-{key}", "Errors by image quality", "", columns, rows)


def _people_table(model: ModelData, key: str) -> Table:
    people = model.people
    assert people is not None
    rows = [
        [
            row.person.replace("_", " "),
            row.errors,
            rate(row.error_share),
            Cell(f"{row.false_rejects} of {row.genuine_pairs}", row.false_rejects),
            Cell(f"{row.false_accepts} of {row.impostor_pairs}", row.false_accepts),
        ]
        for row in people.rows
    ]
    note = (
        f"{people.people_with_errors:,} of {people.people:,} people are in a wrong pair; those "
        "with most errors are listed. An impostor pair counts for both its people."
    )
    columns = ["person", "errors", "of the person's pairs"]
    columns += ["genuine pairs missed", "strangers accepted"]
    return make_table(f"people-{key}", "Errors by person", note, columns, rows)


def model_tables(model: ModelData, key: str) -> dict[str, Table]:
    """Return the tables of a verifier by section; those without numbers are left out."""
    tables = {"points": _points_table(model, key), "figures": _figures_table(model, key)}
    if model.trade_offs:
        tables["trade_offs"] = _trade_offs(model, key)
    if len(model.summary.true_folds) > 1:
        tables["folds"] = _folds_table(model, key)
    if model.quality:
        tables["quality"] = _quality_table(model, key)
    if model.people and model.people.rows:
        tables["people"] = _people_table(model, key)
    return tables


def all_tables(report: ReportData) -> Iterable[Table]:
    """Return every table, in the page's order."""
    tables = comparison_tables(report)
    for place, model in enumerate(report.models, 1):
        tables += model_tables(model, str(place)).values()
    published = [published_table()] if report.is_view2 else []
    return [*tables, *published, data_table(report), history_table(report)]
