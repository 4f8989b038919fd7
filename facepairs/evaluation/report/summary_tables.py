"""Tables of summaries and comparisons, for the terminal and for reports."""

from collections.abc import Mapping

from facepairs.evaluation.evaluate import Evaluation
from facepairs.evaluation.metrics.comparison import Comparison, Difference
from facepairs.evaluation.metrics.summary import FARS, Summary
from facepairs.evaluation.report.cells import (
    EMPTY,
    Cell,
    Table,
    count,
    interval,
    lines_of,
    number,
    p_value,
    percent,
    rate,
    word,
)


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
    """Return summaries by name, a row each; `kind` heads the names, such as "method"."""
    rows = []
    for name, summary in summaries.items():
        lacks_error = " (1 fold: no s.e.)" if summary.accuracy_standard_error_reason else ""
        tars = [summary.tar_at_far[str(far)].tar for far in FARS]
        rows.append(
            [
                word(name),
                count(len(summary.true_folds) or None),
                Cell(accuracy_text(summary) + lacks_error, summary.accuracy),
                interval(summary.accuracy_interval),
                number(summary.auc),
                rate(summary.eer),
                *(rate(tar, "too few pairs") for tar in tars),
                number(summary.ece),
            ]
        )
    columns = [kind, "folds", "accuracy ± s.e.", "95 % interval", "AUC", "EER"]
    columns += [*(f"TAR at FAR {far}" for far in FARS), "ECE"]
    return Table(f"{kind}s", f"{kind.capitalize()}s", note, columns, rows)


def tests_table(comparison: Comparison) -> Table:
    """Return the differences between every two verifiers, with tests."""
    rows = [
        [
            word(f"{test.first} - {test.second}"),
            Cell(f"{100 * test.accuracy_difference:+.2f} %", test.accuracy_difference),
            count(test.only_first_right),
            count(test.only_second_right),
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
    return Table("differences", "Differences", note, columns, rows)


def _difference(gap: Difference, form: str, scale: int) -> Cell:
    middle, low, high = (format(scale * value, form) for value in (gap.difference, *gap.interval))
    return Cell(f"{middle} ({low} to {high})", gap.difference)


def comparison_lines(evaluation: Evaluation) -> list[str]:
    """Return the lines that a terminal shows for several verifiers."""
    assert evaluation.comparison is not None
    summaries = {one.name: one.summary for one in evaluation.measurements}
    tables = summaries_table("verifier", summaries), tests_table(evaluation.comparison)
    return [*lines_of(tables[0]), "", *lines_of(tables[1])]
