"""The tables of summaries and comparisons, for the terminal, the page and CSV files."""

from collections.abc import Mapping, Sequence

from facepairs.bundles.error_table import GroupErrors, MeasuredRate
from facepairs.errors import one_line
from facepairs.evaluation.by_group import is_small
from facepairs.evaluation.evaluate import Evaluation
from facepairs.evaluation.measurement import EvaluationSummary
from facepairs.evaluation.metrics.arrays import Interval
from facepairs.evaluation.metrics.comparison import Comparison, Difference
from facepairs.evaluation.metrics.decisions import FILE, FROM_FILE, OTHER_FOLDS
from facepairs.evaluation.metrics.operating_points import PointErrors
from facepairs.evaluation.metrics.rates import student_interval
from facepairs.evaluation.metrics.summary import Summary
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
from facepairs.evaluation.sources.facts import ModelFacts
from facepairs.support.words import align_columns, counted

ALIGNMENTS = {"landmarks-5": "faces aligned by five landmarks", "lfw-frame": "taken as they are"}


def accuracy_label(summary: Summary) -> str:
    """Return what the accuracy is: with as many genuine as impostor pairs, it is balanced."""
    return "Balanced accuracy" if summary.accuracy is None else "Accuracy"


def accuracy_text(summary: Summary) -> str:
    """Return the balanced accuracy in percent, over folds with its standard error."""
    error = summary.accuracy_standard_error
    return percent(summary.balanced_accuracy) + ("" if error is None else f" ± {100 * error:.2f}")


def has_other_rule(summary: Summary) -> bool:
    """Whether the accuracy by LFW's standard rule is another one than the accuracy."""
    return summary.lfw_accuracy is not None and summary.threshold_source != OTHER_FOLDS


def rule_row(summary: Summary) -> tuple[str, Cell, Cell]:
    """Return label, accuracy by LFW's standard rule and interval; empty without folds."""
    label = f"{accuracy_label(summary)}, LFW's rule"
    mean, error = summary.lfw_accuracy, summary.lfw_accuracy_standard_error
    if mean is None or error is None:
        return label, EMPTY, EMPTY
    bounds = student_interval(mean, error, len(summary.folds))
    return label, Cell(f"{percent(mean)} ± {100 * error:.2f}", mean), interval(bounds)


def accuracy_note(summary: Summary) -> str:
    """Return in words what the interval of the accuracy is."""
    note = f"95 % interval {interval(summary.balanced_accuracy_interval).text}"
    if summary.accuracy_standard_error is None:
        return note
    return f"mean ± standard error of {len(summary.folds)} folds; {note}"


def measured(value: float | None, bounds: Interval | None) -> Cell:
    """Return a rate and its interval in one cell, in percent."""
    if value is None or bounds is None:
        return EMPTY
    return Cell(f"{percent(value)} ({interval(bounds).text})", value, bounds)


def _measured_rate(rate: MeasuredRate | None) -> Cell:
    return EMPTY if rate is None else measured(rate.rate, rate.interval)


def point_rows(point: PointErrors) -> list[tuple[str, Cell]]:
    """Return (label, rate with its interval) of the errors at an operating point."""
    rows = [
        ("Strangers accepted (FMR)", measured(point.fmr, point.fmr_interval)),
        ("Look-alikes accepted", measured(point.lookalike_fmr, point.lookalike_fmr_interval)),
        ("Genuine pairs missed (FNMR)", measured(point.fnmr, point.fnmr_interval)),
    ]
    return [row for row in rows if row[1].value is not None]


def figure_rows(summary: Summary) -> list[tuple[str, Cell, Cell]]:
    """Return (label, value, interval of 95 %) of every figure; a reason stands for an interval."""
    accuracy = Cell(accuracy_text(summary), summary.balanced_accuracy)
    rows = [
        (accuracy_label(summary), accuracy, interval(summary.balanced_accuracy_interval)),
        *([rule_row(summary)] if has_other_rule(summary) else []),
        ("AUC", number(summary.auc), interval(summary.auc_interval, scale=1)),
        ("Equal error rate (EER)", rate(summary.eer), EMPTY),
    ]
    for far, tar in summary.tar_at_far.items():
        bounds = Cell(tar.reason, None) if tar.reason else interval(tar.tar_interval)
        rows.append((f"TAR at FAR {far}", rate(tar.tar, "too few pairs"), bounds))
    return [*rows, ("Calibration error (ECE)", number(summary.ece), EMPTY)]


def source_rows(summary: EvaluationSummary) -> list[tuple[str, str]]:
    """Return the rows (label, text) on the pairs and the crops, for a terminal."""
    rows = [_pairs_from(summary), ("Scored by", summary.scored_by or "unknown")]
    if summary.alignment:
        rows.append(("Photos", ALIGNMENTS.get(summary.alignment, summary.alignment)))
    if summary.category:
        rows.append(("Category", summary.category))
    if summary.photos_left_out:
        left_out = f"{summary.photos_left_out:,}, in {counted(summary.pairs_left_out or 0, 'pair')}"
        rows.append(("Unusable photos", left_out))
    return rows


def _pairs_from(summary: EvaluationSummary) -> tuple[str, str]:
    people = f", {counted(summary.people, 'person', 'people')}" if summary.people else ""
    return "Pairs from", f"{summary.pairs}{people}"


def _pair_counts(summary: Summary) -> tuple[str, str]:
    return "Pairs", f"{summary.genuine_pairs:,} genuine, {summary.impostor_pairs:,} impostor"


def summary_rows(summary: Summary) -> list[tuple[str, str]]:
    """Return the rows (label, text) that a terminal shows; rates in percent, 95 % intervals."""
    label, point = accuracy_label(summary), summary.default_point
    # With two thresholds, indented lines belong to the line above them.
    indent = "" if point is summary.operating_points[0] else "  "
    rows = [
        _pair_counts(summary),
        (label, f"{accuracy_text(summary)} ({accuracy_note(summary)})"),
        (f"{indent}Threshold", _threshold_text(summary)),
    ]
    if indent:
        rows.append(("As verify decides", f"{point.label}, threshold {point.threshold:.6g}"))
    rows += [(indent + name, cell.text) for name, cell in point_rows(point)]
    for name, value, bounds in figure_rows(summary)[1:]:
        tar = summary.tar_at_far.get(name.removeprefix("TAR at FAR "))
        if value.value is not None:
            text = f"{value.text} ({bounds.text})" if bounds.text else value.text
            if tar is not None and tar.false_accepts is not None:
                accepted = f"{tar.false_accepts:,} of {tar.impostor_pairs:,}"
                text += f"; {accepted} impostor pairs accepted"
            rows.append((name, text))
        elif bounds.text:
            rows.append((name, bounds.text))
    return rows


def group_tables(summary: EvaluationSummary) -> list[Table]:
    """Return the errors within groups of people and within clusters of look-alikes, if any."""
    of_people = "group. The groups are those of the file that was given."
    of_looks = "cluster. Clusters are found in the embeddings; nothing is inferred about people."
    tables = [
        _groups_table("group", summary.groups, "Errors by group", of_people),
        _groups_table("cluster", summary.clusters, "Errors by cluster of look-alikes", of_looks),
    ]
    return [table for table in tables if table.rows]


def _groups_table(kind: str, groups: Sequence[GroupErrors], title: str, note: str) -> Table:
    rows = [
        [
            group.name,
            _measured_rate(group.fmr),
            _measured_rate(group.fnmr),
            group.people,
            group.impostor_pairs,
            group.genuine_pairs,
            "too few to judge" if is_small(group) else None,
        ]
        for group in groups
    ]
    columns = [kind, "strangers accepted (FMR)", "genuine pairs missed (FNMR)"]
    columns += ["people", "pairs of strangers", "genuine pairs", "warning"]
    return make_table(f"{kind}s", title, note, columns, rows)


def identification_tables(summary: EvaluationSummary) -> list[Table]:
    """Return the errors of identification and the ranks of known people, if measured."""
    figures = summary.identification
    if figures is None:
        return []
    note = (
        f"Identification of {figures.known:,} known people with {figures.enrolled:,} enrolled "
        f"photos, asked for with {figures.known_probes:,} others; {figures.strangers:,} strangers "
        f"with {figures.stranger_probes:,} photos. Every person counts once; 95 % intervals are "
        "over people."
    )
    rows = [
        [
            f"{point.set_by}, FPIR {100 * point.max_fpir:g} %",
            _measured_rate(point.dir),
            _measured_rate(point.fpir),
            number(point.threshold) if point.threshold is not None else Cell(point.reason, None),
        ]
        for point in figures.points
    ]
    columns = ["threshold from", "known people found (DIR)", "strangers taken for somebody (FPIR)"]
    ranks = [[rank, _measured_rate(share)] for rank, share in figures.cmc.items()]
    return [
        make_table("identification", "Identification", note, [*columns, "threshold"], rows),
        make_table("ranks", "Ranks of known people", "", ["rank", "at it or better (CMC)"], ranks),
    ]


def identification_lines(summary: EvaluationSummary, prefix: str = "") -> list[str]:
    """Return what a terminal shows of `identification_tables`."""
    lines: list[str] = []
    for table in identification_tables(summary):
        lines += ["", f"{prefix}{table.note or table.title}", *lines_of(table)]
    return lines


def _threshold_text(summary: Summary) -> str:
    if summary.operating_points[0].name == FILE:
        return FROM_FILE
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
    first = next(iter(summaries.values()))
    stricter = any(one.default_point is not one.operating_points[0] for one in summaries.values())
    rule = any(map(has_other_rule, summaries.values()))
    rows = []
    for name, summary in summaries.items():
        lacks_error = " (1 fold: no s.e.)" if summary.accuracy_standard_error_reason else ""
        rows.append(
            [
                name,
                Cell(accuracy_text(summary) + lacks_error, summary.balanced_accuracy),
                interval(summary.balanced_accuracy_interval),
                *((rule_row(summary)[1],) if rule else ()),
                rate(summary.fmr),
                rate(summary.fnmr),
                *(_verify_rates(summary) if stricter else ()),
                number(summary.auc),
                rate(summary.eer),
                rate(summary.tar_at_far["0.01"].tar, "too few pairs"),
                number(summary.ece),
            ]
        )
    columns = [kind, accuracy_label(first).lower(), "95 %"]
    columns += [*(["LFW's rule"] if rule else []), "FMR", "FNMR"]
    columns += ["verify's FMR", "verify's FNMR"] if stricter else []
    columns += ["AUC", "EER", "TAR at FAR 0.01", "ECE"]
    return make_table(f"{kind}s", f"{kind.capitalize()}s", note, columns, rows)


def _verify_rates(summary: Summary) -> tuple[Cell, Cell]:
    """Return FMR and FNMR as `verify` decides; empty where it is not known how."""
    point = summary.default_point
    return (rate(point.fmr), rate(point.fnmr)) if point.is_default else (EMPTY, EMPTY)


def facts_table(facts: Mapping[str, ModelFacts | None]) -> list[Table]:
    """Return what verifiers cost and where they come from; no table where no network was timed."""
    rows = [
        [
            name,
            EMPTY if one.network_ms is None else Cell(f"{one.network_ms:.1f}", one.network_ms),
            EMPTY if one.network_mb is None else Cell(f"{one.network_mb:.1f}", one.network_mb),
            one.licence or "not recorded",
            one.training_data or "not recorded",
        ]
        for name, one in facts.items()
        if one is not None
    ]
    if all(one is None or one.network_ms is None for one in facts.values()):
        return []  # nothing to compare
    columns = ["verifier", "ms a face", "MB", "licence of the weights", "trained on"]
    note = "CPU time of the network for one face on this machine, without finding it."
    return [make_table("facts", "Cost and origin", note, columns, rows)]


def tests_table(comparison: Comparison) -> Table:
    """Return the differences between every two verifiers, with tests."""
    tests = comparison.tests
    fars = [far for far in tests[0].tar_at_far if far == "0.01"]
    rows = [
        [
            f"{test.first} - {test.second}",
            _difference(test.balanced_accuracy, "+.2f", 100),
            p_value(test.p_adjusted),
            _difference(test.auc, "+.4f", 1),
            *(_difference(test.tar_at_far[far], "+.2f", 100) for far in fars),
        ]
        for test in tests
    ]
    columns = ["first - second", "balanced accuracy, %", "p", "AUC"]
    columns += [f"TAR at FAR {far}, %" for far in fars]
    note = (
        f"On the same {comparison.pairs:,} pairs; in parentheses 95 % intervals of "
        f"{comparison.draws:,} bootstrap draws of {comparison.drawn}. p: {comparison.p_from}, "
        "corrected for the number of comparisons (Holm)."
    )
    return make_table("differences", "Differences", note, columns, rows)


def _difference(gap: Difference, form: str, scale: int) -> Cell:
    middle, low, high = (format(scale * value, form) for value in (gap.difference, *gap.interval))
    return Cell(f"{middle} ({low} to {high})", gap.difference, gap.interval)


def evaluation_lines(evaluation: Evaluation) -> list[str]:
    """Return the lines that a terminal shows."""
    if evaluation.comparison is not None:
        return _comparison_lines(evaluation, evaluation.comparison)
    summary = evaluation.summary
    rows = [*source_rows(summary), *summary_rows(summary)]
    lines = align_columns([list(map(one_line, row)) for row in rows])
    for table in group_tables(summary):
        lines += ["", *lines_of(table)]
    return lines + identification_lines(summary)


def _comparison_lines(evaluation: Evaluation, comparison: Comparison) -> list[str]:
    summaries = {one.name: one.summary for one in evaluation.measurements}
    tables = summaries_table("verifier", summaries), tests_table(comparison)
    facts = facts_table({one.name: one.facts for one in evaluation.measurements})
    places = {_pairs_from(summary) for summary in summaries.values()}
    rows = [*(places if len(places) == 1 else ()), _pair_counts(evaluation.summary)]
    lines = [*align_columns(rows), "", *lines_of(tables[0]), "", *lines_of(tables[1])]
    for table in facts:
        lines += ["", *lines_of(table)]
    for name, summary in summaries.items():
        for table in group_tables(summary):
            lines += ["", f"{name}: {table.title[0].lower()}{table.title[1:]}", *lines_of(table)]
        lines += identification_lines(summary, f"{name}: ")
    return lines
