"""The tables of a report, for the page and CSV files."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from facepairs.evaluation.metrics.arrays import Interval
from facepairs.evaluation.report.cells import (
    EMPTY,
    Cell,
    Table,
    interval,
    make_table,
    number,
    rate,
)
from facepairs.evaluation.report.data import ModelData, ReportData, point_label
from facepairs.evaluation.report.summary_tables import (
    facts_table,
    figure_rows,
    group_tables,
    identification_tables,
    measured,
    source_rows,
    summaries_table,
    tests_table,
)
from facepairs.evaluation.report.tradeoff import TradeOff
from facepairs.evaluation.serialize import to_plain

STRANGERS, ALIKE = "strangers accepted (FMR)", "look-alikes accepted"
GENUINE = "genuine pairs missed (FNMR)"
VERIFIERS_NOTE = (
    "All on the same pairs. FMR: strangers accepted. FNMR: genuine pairs missed, both at the "
    "threshold of the accuracy; verify's: at the one that decides by default. LFW's rule: the "
    "accuracy with each fold's threshold from the other folds. EER: where both are equal. TAR at "
    "FAR 0.01: genuine pairs accepted where 1 in 100 strangers is. ECE: error of the probabilities."
)
FACTS = ["what", "value"]
TOO_FEW = Cell("too few pairs", None)
TRADE_OFF_NOTE = (
    "Thresholds set on these same pairs: a point of the curve, not a promise for others. Rarer "
    "errors need more pairs."
)


def comparison_tables(report: ReportData) -> list[Table]:
    """Return the verifiers side by side and their differences; nothing for one verifier."""
    if report.comparison is None:
        return []
    summaries = {model.name: model.summary for model in report.models}
    verifiers = summaries_table("verifier", summaries, VERIFIERS_NOTE)
    facts = facts_table({model.name: model.facts for model in report.models})
    return [verifiers, *facts, tests_table(report.comparison)]


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
            cells += [
                measured(choice.fnmr, choice.fnmr_interval) if choice else TOO_FEW,
                number(choice.threshold) if choice else EMPTY,
            ]
        rows.append(cells)
    columns = ["accepting at most"]
    for kind in kinds:
        columns += [f"of {kind}: genuine pairs missed", "at threshold"]
    return make_table(f"trade-offs-{key}", "Choose a threshold", TRADE_OFF_NOTE, columns, rows)


def _points_table(model: ModelData, key: str) -> Table:
    alike = any(point.lookalike_fmr is not None for point in model.points)
    rows = []
    for point in model.points:
        hard = measured(point.lookalike_fmr, point.lookalike_fmr_interval)
        rows.append(
            [
                f"{point_label(point)} (default)" if point.is_default else point_label(point),
                _threshold(model.threshold_range(point)),
                measured(point.fmr, point.fmr_interval),
                *([hard] if alike else []),
                measured(point.fnmr, point.fnmr_interval),
            ]
        )
    columns = ["operating point", "threshold", STRANGERS, *([ALIKE] if alike else []), GENUINE]
    note = (
        "Errors on these pairs, with 95 % intervals. Scores at or above the threshold are "
        f"accepted. Thresholds: {model.summary.threshold_source}."
    )
    promises = [point.label for point in model.points if point.max_fmr is not None]
    if promises:
        among = " among look-alikes" if any("look-alikes" in label for label in promises) else ""
        note += f" The FMR in a name was measured{among} where the threshold was set."
    if alike:
        note += " Look-alikes are strangers whose photos lie in the same cluster of embeddings."
    return make_table(f"points-{key}", "Operating points", note, columns, rows)


def _threshold(bounds: Interval | None) -> Cell:
    """Return a threshold; of folds with their own, the lowest and the highest."""
    low, high = bounds or (None, None)
    return number(low) if low == high else interval(bounds, scale=1)


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
    columns += ["threshold", "training people"]
    return make_table(f"folds-{key}", "Folds", _decided_at(model), columns, rows)


def _quality_table(model: ModelData, key: str) -> Table:
    rows = [
        [
            f"{row.measure} ({row.unit})",
            row.label,
            Cell(f"{row.low:.3g} to {row.high:.3g}", None, (row.low, row.high)),
            row.genuine_pairs + row.impostor_pairs,
            measured(row.fmr, row.fmr_interval),
            measured(row.fnmr, row.fnmr_interval),
        ]
        for row in model.quality or []
    ]
    columns = ["quality", "third", "from, to", "pairs", STRANGERS, GENUINE]
    return make_table(
        f"quality-{key}", "Errors by image quality", _decided_at(model), columns, rows
    )


def _people_table(model: ModelData, key: str) -> Table:
    people = model.people
    assert people is not None
    rows = [
        [
            row.person.replace("_", " "),
            row.errors,
            rate(row.error_share),
            row.false_rejects,
            row.genuine_pairs,
            row.false_accepts,
            row.impostor_pairs,
        ]
        for row in people.rows
    ]
    note = (
        f"{_decided_at(model)} "
        f"{people.people_with_errors:,} of {people.people:,} people are in a wrong pair; those "
        "with most errors are listed. An impostor pair counts for both its people."
    )
    columns = ["person", "errors", "of the person's pairs"]
    columns += ["genuine pairs missed", "genuine pairs", "strangers accepted", "pairs of strangers"]
    return make_table(f"people-{key}", "Errors by person", note, columns, rows)


def _decided_at(model: ModelData) -> str:
    """Return at which threshold folds, people and photos are judged, as a sentence."""
    return f"Errors at the threshold of the accuracy ({point_label(model.points[0])})."


def model_tables(model: ModelData, key: str) -> dict[str, Table]:
    """Return the tables of a verifier by section; those without numbers are left out."""
    tables = {"points": _points_table(model, key), "figures": _figures_table(model, key)}
    if model.trade_offs:
        tables["trade_offs"] = _trade_offs(model, key)
    at = f"At {point_label(model.default_point)}, worst first, 95 % intervals; pairs within the "
    tables |= {
        table.key: table._replace(key=f"{table.key}-{key}", note=at + table.note)
        for table in group_tables(model.summary)
    }
    for table in identification_tables(model.summary):
        tables[table.key] = table._replace(key=f"{table.key}-{key}")
    if len(model.summary.true_folds) > 1:
        tables["folds"] = _folds_table(model, key)
    if model.quality:
        tables["quality"] = _quality_table(model, key)
    if model.people and model.people.rows:
        tables["people"] = _people_table(model, key)
    return tables


def data_table(report: ReportData) -> Table:
    """Return what was measured on."""
    labels = {
        "source": "Pairs from",
        "folder": "Folder of photos",
        "photos_missing": "Photos not in the folder",
        "folder_photos": "Photos in the folder",
        "folder_people": "People in the folder",
        "folder_fingerprint": "SHA-256 of the folder's list",
    }
    rows = []
    for field in fields(report.data):
        value = getattr(report.data, field.name)
        label = labels.get(field.name, field.name.replace("_", " ").capitalize())
        if isinstance(value, Mapping):
            rows += [[f"SHA-256 of {name}", text] for name, text in value.items()]
        elif value is not None:
            rows.append([label, value])
    return make_table("data", "Data", "", FACTS, rows)


def history_table(report: ReportData) -> Table:
    """Return how the figures were made: command, seeds, versions, machine, training."""
    machine = report.machine
    facts: dict[str, object] = {
        "Command": report.command,
        "Created": report.created,
        "facepairs": report.version,
        **{f"Seed: {name}": seed for name, seed in report.seeds.items()},
        "Processor": f"{machine['cpu']}, {machine['cores']} cores",
        "Memory": f"{machine['memory_gb']} GB",
        "System": f"{machine['os']}, Python {machine['python']}",
        "Libraries": _flatten(machine["versions"]),
    }
    for model in report.models:
        facts[f"Scores of {model.name}"] = model.provenance
        facts |= {
            f"{model.name}: {name.replace('_', ' ')}": _flatten(value)
            for name, value in to_plain(model.origin).items()
            if value and name not in ("folds", "ece")
        }
    rows = [[name, str(value)] for name, value in facts.items()]
    return make_table("history", "How this was made", "", FACTS, rows)


def _flatten(value: Any) -> str:
    """Return nested values in one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_flatten(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return "; ".join(_flatten(inner) for inner in value)
    return str(value)


def all_tables(report: ReportData) -> Iterable[Table]:
    """Return every table, in the page's order."""
    tables = comparison_tables(report)
    for place, model in enumerate(report.models, 1):
        tables += model_tables(model, str(place)).values()
    return [*tables, data_table(report), history_table(report)]
