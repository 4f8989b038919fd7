"""The tables of a report, for the page and for CSV files."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from facepairs.evaluation.report.cells import (
    EMPTY,
    Cell,
    Table,
    count,
    interval,
    number,
    rate,
    word,
)
from facepairs.evaluation.report.data import ModelData, ReportData
from facepairs.evaluation.report.published import BASELINES, PUBLISHED
from facepairs.evaluation.report.summary_tables import figure_rows, summaries_table, tests_table
from facepairs.evaluation.serialize import to_plain

FACTS = ["what", "value"]
RATES = ["FMR", "95 %", "FNMR", "95 %"]


def comparison_tables(report: ReportData) -> list[Table]:
    """Return the verifiers side by side and their differences; nothing for one verifier."""
    if report.comparison is None:
        return []
    summaries = {model.name: model.summary for model in report.models}
    side_by_side = summaries_table("verifier", summaries, "All on the same pairs.")
    return [side_by_side, tests_table(report.comparison)]


def _figures_table(model: ModelData, key: str) -> Table:
    rows = [[word(label), *cells] for label, *cells in figure_rows(model.summary)]
    return Table(f"figures-{key}", "Figures", "", ["figure", "value", "95 % interval"], rows)


def _rate_cells(rates: Any) -> list[Cell]:
    """Return FMR and FNMR with their intervals."""
    return [
        rate(rates.fmr),
        interval(rates.fmr_interval),
        rate(rates.fnmr),
        interval(rates.fnmr_interval),
    ]


def _thresholds_table(model: ModelData, key: str) -> Table:
    rows = []
    for row in model.thresholds:
        if row.threshold is None or row.rates is None:
            cells = [Cell("none", None), EMPTY, EMPTY, EMPTY, Cell(row.reason or "", None)]
        else:
            low, high = row.threshold, row.threshold_high
            text = f"{low:.4f}" if low == high else f"{low:.4f} to {high:.4f}"
            cells = [Cell(text, low), *_rate_cells(row.rates)]
        rows.append([word(row.name), *cells, word(row.set_by)])
    note = "Errors of each threshold on these pairs; rates in percent with 95 % intervals."
    columns = ["threshold", "score", *RATES, "chosen by"]
    return Table(f"thresholds-{key}", "Thresholds", note, columns, rows)


def _folds_table(model: ModelData, key: str) -> Table:
    people = {fold.fold: fold.people.get("training") for fold in model.origin.folds}
    rows = [
        [
            count(fold.fold),
            rate(fold.accuracy),
            count(fold.false_accepts),
            count(fold.false_rejects),
            count(fold.pairs),
            number(fold.threshold),
            count(people.get(fold.fold)),
        ]
        for fold in model.summary.true_folds
    ]
    columns = ["fold", "accuracy", "false accepts", "false rejects", "pairs", "threshold"]
    return Table(f"folds-{key}", "Folds", "", [*columns, "training people"], rows)


def _quality_table(model: ModelData, key: str) -> Table:
    rows = [
        [
            word(f"{row.measure} ({row.unit})"),
            Cell(row.label, row.third),
            Cell(f"{row.low:.3g} to {row.high:.3g}", row.low),
            count(row.genuine_pairs + row.impostor_pairs),
            *_rate_cells(row),
        ]
        for row in model.quality or []
    ]
    columns = ["quality", "third", "from, to", "pairs", *RATES]
    return Table(f"quality-{key}", "Errors by image quality", "", columns, rows)


def _people_table(model: ModelData, key: str) -> Table:
    people = model.people
    assert people is not None
    rows = [
        [
            word(row.person.replace("_", " ")),
            count(row.errors),
            rate(row.error_share),
            Cell(f"{row.false_rejects} of {row.genuine_pairs}", row.false_rejects),
            Cell(f"{row.false_accepts} of {row.impostor_pairs}", row.false_accepts),
        ]
        for row in people.rows
    ]
    note = (
        f"{people.people_with_errors:,} of {people.people:,} people are in a wrong pair. An "
        "impostor pair counts for both its people."
    )
    columns = ["person", "errors", "of the person's pairs", "false rejects", "false accepts"]
    return Table(f"people-{key}", "Errors by person", note, columns, rows)


def model_tables(model: ModelData, key: str) -> dict[str, Table]:
    """Return the tables of a verifier by section; those without numbers are left out."""
    tables = {"figures": _figures_table(model, key), "thresholds": _thresholds_table(model, key)}
    if len(model.summary.true_folds) > 1:
        tables["folds"] = _folds_table(model, key)
    if model.quality:
        tables["quality"] = _quality_table(model, key)
    if model.people and model.people.rows:
        tables["people"] = _people_table(model, key)
    return tables


def published_table(report: ReportData) -> Table:
    """Return published figures of others, marked as such."""
    rows = [
        [word(row.method), number(row.accuracy), word(row.trained_on), word(row.source)]
        for row in [*BASELINES, *PUBLISHED]
    ]
    note = (
        "Accuracies on LFW's View 2, as published or, where noted, measured by this package; not "
        "measured in this run."
    )
    if not report.is_lfw:
        note += " The pairs of this report are others, so its figures cannot be compared with them."
    columns = ["method", "accuracy", "trained on", "source"]
    return Table("published", "Published results", note, columns, rows)


def data_table(report: ReportData) -> Table:
    """Return what was measured on."""
    labels = {"source": "Pairs from", "folder": "Folder of photos"}
    rows = []
    for field in fields(report.data):
        value = getattr(report.data, field.name)
        label = labels.get(field.name, field.name.replace("_", " ").capitalize())
        if isinstance(value, Mapping):
            rows += [[word(f"SHA-256 of {name}"), word(text)] for name, text in value.items()]
        elif value is not None:
            rows.append([word(label), count(value) if isinstance(value, int) else word(value)])
    return Table("data", "Data", "", FACTS, rows)


def origin_table(report: ReportData) -> Table:
    """Return how the figures were made: command, seeds, versions, machine."""
    machine = report.machine
    facts: dict[str, object] = {
        "Command": report.command,
        "Created": report.created,
        "facepairs": report.version,
        **{f"Seed: {name}": seed for name, seed in report.seeds.items()},
        "Processor": f"{machine['cpu']}, {machine['cores']} cores",
        "Memory": f"{machine['memory_gb']} GB",
        "System": f"{machine['os']}, Python {machine['python']}",
        **machine["versions"],
    }
    rows = [[word(name), word(value)] for name, value in facts.items()]
    for model in report.models:
        rows += [
            [word(f"{model.name}: {name.replace('_', ' ')}"), word(_flatten(value))]
            for name, value in to_plain(model.origin).items()
            if value and name not in ("folds", "ece")
        ]
    return Table("origin", "How this was made", "", FACTS, rows)


def _flatten(value: Any) -> str:
    """Return nested values in one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_flatten(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return "; ".join(_flatten(inner) for inner in value)
    return str(value)


def all_tables(report: ReportData) -> list[Table]:
    """Return every table, in the page's order."""
    tables = comparison_tables(report)
    for place, model in enumerate(report.models, 1):
        tables += model_tables(model, str(place)).values()
    return [*tables, published_table(report), data_table(report), origin_table(report)]
