"""The tables of summaries and comparisons, for the terminal, the page and CSV files."""

from collections.abc import Mapping

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

ALIGNMENTS = {"landmarks-5": "faces aligned by five landmarks", "lfw-frame": "taken as they are"}


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
