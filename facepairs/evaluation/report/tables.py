"""The tables of summaries, comparisons and reports, for the terminal, the page and CSV files."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from facepairs.evaluation.evaluate import Evaluation
from facepairs.evaluation.measurement import EvaluationSummary
from facepairs.evaluation.metrics.comparison import Comparison, Difference
from facepairs.evaluation.metrics.summary import Summary
from facepairs.evaluation.metrics.thresholds import FARS
from facepairs.evaluation.report.cells import (
    EMPTY,
    Cell,
    Table,
    interval,
    lines_of,
    make_table,
    number,
    p_value,
    percent,
    rate,
)
from facepairs.evaluation.report.data import ModelData, ReportData
from facepairs.evaluation.report.published import BASELINES, PUBLISHED
from facepairs.evaluation.serialize import to_plain

FACTS = ["what", "value"]
ALIGNMENTS = {"landmarks-5": "faces aligned by five landmarks", "lfw-frame": "taken as they are"}
RATES = ["FMR", "95 %", "FNMR", "95 %"]


def accuracy_text(summary: Summary) -> str:
    """Return the accuracy in percent, over folds with its standard error."""
    error = summary.accuracy_standard_error
    return percent(summary.accuracy) + ("" if error is None else f" ± {100 * error:.2f}")


def accuracy_note(summary: Summary) -> str:
    """Return in words what the interval of the accuracy is."""
    note = f"95 % interval {interval(summary.accuracy_interval).text}"
    if summary.accuracy_standard_error is None:
        return note
    return f"mean ± standard error of {len(summary.folds)} folds; {note}"


def figure_rows(summary: Summary) -> list[tuple[str, Cell, Cell]]:
    """Return (label, value, interval of 95 %) of every figure; a reason stands for an interval."""
    accuracy = Cell(accuracy_text(summary), summary.accuracy)
    rows = [
        ("Accuracy", accuracy, interval(summary.accuracy_interval)),
        ("FMR (false accepts)", rate(summary.fmr), interval(summary.fmr_interval)),
        ("FNMR (false rejects)", rate(summary.fnmr), interval(summary.fnmr_interval)),
        ("AUC", number(summary.auc), interval(summary.auc_interval, scale=1)),
        ("EER", rate(summary.eer), EMPTY),
    ]
    for far, tar in summary.tar_at_far.items():
        bounds = Cell(tar.reason, None) if tar.reason else interval(tar.tar_interval)
        rows.append((f"TAR at FAR {far}", rate(tar.tar, "too few pairs"), bounds))
    return [*rows, ("Calibration error (ECE)", number(summary.ece), EMPTY)]


def source_rows(summary: EvaluationSummary) -> list[tuple[str, str]]:
    """Return the rows (label, text) on the pairs and the crops, for a terminal."""
    rows = [("Pairs from", summary.pairs)]
    if summary.alignment:
        rows.append(("Photos", ALIGNMENTS.get(summary.alignment, summary.alignment)))
    if summary.category:
        rows.append(("Category", summary.category))
    if summary.photos_left_out:
        left_out = f"{summary.photos_left_out:,}, in {summary.pairs_left_out:,} pairs"
        rows.append(("Unusable photos", left_out))
    return rows


def summary_rows(summary: Summary) -> list[tuple[str, str]]:
    """Return the rows (label, text) that a terminal shows; rates in percent, 95 % intervals."""
    pairs = f"{summary.genuine_pairs:,} genuine, {summary.impostor_pairs:,} impostor"
    texts = {"Pairs": pairs, "Accuracy": "", "Threshold": _threshold_text(summary)}
    for label, value, bounds in figure_rows(summary):
        if value.value is not None:
            texts[label] = f"{value.text} ({bounds.text})" if bounds.text else value.text
        elif bounds.text:
            texts[label] = bounds.text
    if summary.accuracy_standard_error is not None:
        texts["Accuracy"] = f"{accuracy_text(summary)} ({accuracy_note(summary)})"
    for far, tar in summary.tar_at_far.items():
        if tar.tar is not None:
            texts[f"TAR at FAR {far}"] += (
                f"; {tar.false_accepts:,} of {tar.impostor_pairs:,} impostor pairs accepted"
            )
    return list(texts.items())


def _threshold_text(summary: Summary) -> str:
    if summary.threshold is not None:
        return f"{summary.threshold:.6g} ({summary.threshold_source})"
    values = [part.threshold for part in summary.folds]
    return f"{min(values):.6g} to {max(values):.6g} ({summary.threshold_source})"


def summaries_table(kind: str, summaries: Mapping[str, Summary], note: str = "") -> Table:
    """Return a table with a row for each summary.

    Args:
        kind: Heading of the names, such as "method".
        summaries: The summaries by name.
        note: A text below the table.
    """
    categories = any(summary.category for summary in summaries.values())
    rows = []
    for name, summary in summaries.items():
        lacks_error = " (1 fold: no s.e.)" if summary.accuracy_standard_error_reason else ""
        tars = [summary.tar_at_far[str(far)].tar for far in FARS]
        rows.append(
            [
                name,
                len(summary.true_folds) or None,
                Cell(accuracy_text(summary) + lacks_error, summary.accuracy),
                interval(summary.accuracy_interval),
                number(summary.auc),
                rate(summary.eer),
                *(rate(tar, "too few pairs") for tar in tars),
                number(summary.ece),
                *([summary.category] if categories else []),
            ]
        )
    columns = [kind, "folds", "accuracy ± s.e.", "95 % interval", "AUC", "EER"]
    columns += [*(f"TAR at FAR {far}" for far in FARS), "ECE"]
    if categories:
        columns.append("category")
    return make_table(f"{kind}s", f"{kind.capitalize()}s", note, columns, rows)


def tests_table(comparison: Comparison) -> Table:
    """Return the differences between every two verifiers, with tests."""
    rows = [
        [
            f"{test.first} - {test.second}",
            Cell(f"{100 * test.accuracy_difference:+.2f} %", test.accuracy_difference),
            test.only_first_right,
            test.only_second_right,
            p_value(test.p),
            p_value(test.p_adjusted),
            _difference(test.auc, "+.4f", 1),
            *(_difference(gap, "+.2f", 100) for gap in test.tar_at_far.values()),
        ]
        for test in comparison.tests
    ]
    columns = ["first - second", "accuracy", "only first right", "only second right"]
    columns += ["p (McNemar)", "p (Holm)", "AUC"]
    columns += [f"TAR at FAR {far}, %" for far in comparison.tests[0].tar_at_far]
    note = (
        f"Differences on the same {comparison.pairs:,} pairs, in parentheses 95 % intervals of "
        f"{comparison.draws:,} bootstrap draws. McNemar's test is exact and two-sided; Holm's p "
        "corrects for the number of comparisons. Pairs are treated as independent; pairs that "
        "share people are less so, and the true uncertainty is somewhat larger."
    )
    return make_table("differences", "Differences", note, columns, rows)


def _difference(gap: Difference, form: str, scale: int) -> Cell:
    middle, low, high = (format(scale * value, form) for value in (gap.difference, *gap.interval))
    return Cell(f"{middle} ({low} to {high})", gap.difference)


def comparison_lines(evaluation: Evaluation) -> list[str]:
    """Return the lines that a terminal shows for several verifiers."""
    assert evaluation.comparison is not None
    summaries = {one.name: one.summary for one in evaluation.measurements}
    tables = summaries_table("verifier", summaries), tests_table(evaluation.comparison)
    return [*lines_of(tables[0]), "", *lines_of(tables[1])]


def comparison_tables(report: ReportData) -> list[Table]:
    """Return the verifiers side by side and their differences; nothing for one verifier."""
    if report.comparison is None:
        return []
    summaries = {model.name: model.summary for model in report.models}
    side_by_side = summaries_table("verifier", summaries, "All on the same pairs.")
    return [side_by_side, tests_table(report.comparison)]


def _figures_table(model: ModelData, key: str) -> Table:
    columns = ["figure", "value", "95 % interval"]
    facts = source_rows(model.summary)[1:]
    note = ". ".join(f"{label}: {text}" for label, text in facts)
    return make_table(f"figures-{key}", "Figures", note, columns, figure_rows(model.summary))


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
        rows.append([row.name, *cells, row.set_by])
    note = "Errors of each threshold on these pairs; rates in percent with 95 % intervals."
    columns = ["threshold", "score", *RATES, "chosen by"]
    return make_table(f"thresholds-{key}", "Thresholds", note, columns, rows)


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
    columns = ["fold", "accuracy", "false accepts", "false rejects", "pairs", "threshold"]
    return make_table(f"folds-{key}", "Folds", "", [*columns, "training people"], rows)


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
        f"{people.people_with_errors:,} of {people.people:,} people are in a wrong pair. An "
        "impostor pair counts for both its people."
    )
    columns = ["person", "errors", "of the person's pairs", "false rejects", "false accepts"]
    return make_table(f"people-{key}", "Errors by person", note, columns, rows)


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
        [row.method, number(row.accuracy), row.trained_on, row.source]
        for row in [*BASELINES, *PUBLISHED]
    ]
    note = (
        "Accuracies on LFW's View 2, as published or, where noted, measured by this package; not "
        "measured in this run."
    )
    if not report.is_lfw:
        note += " The pairs of this report are others, so its figures cannot be compared with them."
    columns = ["method", "accuracy", "trained on", "source"]
    return make_table("published", "Published results", note, columns, rows)


def data_table(report: ReportData) -> Table:
    """Return what was measured on."""
    labels = {"source": "Pairs from", "folder": "Folder of photos"}
    rows = []
    for field in fields(report.data):
        value = getattr(report.data, field.name)
        label = labels.get(field.name, field.name.replace("_", " ").capitalize())
        if isinstance(value, Mapping):
            rows += [[f"SHA-256 of {name}", text] for name, text in value.items()]
        elif value is not None:
            rows.append([label, value])
    return make_table("data", "Data", "", FACTS, rows)


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
    for model in report.models:
        facts |= {
            f"{model.name}: {name.replace('_', ' ')}": _flatten(value)
            for name, value in to_plain(model.origin).items()
            if value and name not in ("folds", "ece")
        }
    rows = [[name, str(value)] for name, value in facts.items()]
    return make_table("origin", "How this was made", "", FACTS, rows)


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
