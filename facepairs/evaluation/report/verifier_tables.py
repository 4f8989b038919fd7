"""The tables of one verifier: its figures, thresholds, groups, folds and people."""

from collections.abc import Mapping

import numpy as np

from facepairs.bundles.rates import Errors, OperatingPoint, Rate
from facepairs.data.pairs import person_of
from facepairs.evaluation.by_group import is_small, pair_counts
from facepairs.evaluation.decisions import ThresholdFrom
from facepairs.evaluation.measurement import Measurement
from facepairs.evaluation.metrics.arrays import Bools, Ints
from facepairs.evaluation.metrics.intervals import clopper_pearson
from facepairs.evaluation.metrics.thresholds import tar_at_far
from facepairs.evaluation.report.table import (
    EMPTY,
    FACTS,
    Cell,
    Table,
    cells,
    interval,
    number,
    percent,
    share,
)
from facepairs.evaluation.summary import Summary
from facepairs.support.words import counted

ALIGNMENTS = {"landmarks-5": "faces aligned by five landmarks", "lfw-frame": "taken as they are"}
SOURCES = {
    ThresholdFrom.CALLER: "given by the caller",
    ThresholdFrom.MODEL: "the model's own",
    ThresholdFrom.FILE: "decided as in the file",
    ThresholdFrom.OTHER_FOLDS: "each fold's from the other folds, LFW's standard rule",
    ThresholdFrom.OTHER_HALF: "each half's from the other half of the pairs",
    ThresholdFrom.OWN_NETWORKS: "each fold's from its own network",
}
STRANGERS, ALIKE = "strangers accepted (FMR)", "look-alikes accepted"
GENUINE = "genuine pairs missed (FNMR)"
ONE_IN = (10, 30, 100, 300, 1000, 3000)
MOST_PEOPLE = 20


def verifier_tables(one: Measurement, place: int, several: bool, brief: bool) -> list[Table]:
    """Return the tables of a verifier; those without numbers are left out.

    Args:
        one: Its measurement.
        place: Its number, from 1.
        several: Whether it is compared with others.
        brief: Only those that a terminal shows.
    """
    own, name = f"-{place}", one.name if several else ""
    tables = [*_group_tables(one, own, name), *_identification_tables(one.summary, own, name)]
    if not (brief and several):
        rows = cells(figure_rows(one.summary))
        tables.insert(0, Table(f"figures{own}", "All figures", FACTS, rows, "", name))
    if not brief:
        tables += [_points_table(one, own, name), _trade_offs(one, own, name)]
        tables += [_folds_table(one, own, name), _people_table(one, own, name)]
    return [table for table in tables if table.rows]


def accuracy_label(summary: Summary) -> str:
    """Return what the accuracy is: with as many genuine as impostor pairs, it is balanced."""
    return "Balanced accuracy" if summary.accuracy is None else "Accuracy"


def accuracy_text(rate: Rate) -> str:
    """Return an accuracy in percent, over folds with its standard error."""
    error = rate.standard_error
    return percent(rate.value) + ("" if error is None else f" ± {100 * error:.2f}")


def accuracy_note(summary: Summary) -> str:
    """Return in words what the interval of the accuracy is."""
    rate = summary.balanced_accuracy
    note = f"95 % interval {interval(rate.interval)}"
    if rate.standard_error is None:
        return note
    return f"mean ± standard error of {len(summary.folds)} folds; {note}"


def has_other_rule(summary: Summary) -> bool:
    """Whether the accuracy by LFW's standard rule is another one than the accuracy."""
    by_rule = summary.threshold_source is ThresholdFrom.OTHER_FOLDS
    return summary.lfw_accuracy is not None and not by_rule


def point_label(point: OperatingPoint) -> str:
    """Return the name of an operating point: `balanced`, or the rate that it promises."""
    return point.label if point.max_fmr is None else f"FMR {100 * point.max_fmr:g} %"


def pair_rows(summary: Summary) -> list[tuple[str, str]]:
    """Return (label, text) on the pairs: where they come from, and how many there are."""
    people = f", {counted(summary.people, 'person', 'people')}" if summary.people else ""
    counts = f"{summary.genuine_pairs:,} genuine, {summary.impostor_pairs:,} impostor"
    return [("Pairs from", f"{summary.pairs}{people}"), ("Pairs", counts)]


def figure_rows(summary: Summary) -> list[tuple[str, object]]:
    """Return (label, value) of every figure, with intervals of 95 %."""
    source, counts = pair_rows(summary)
    rows: list[tuple[str, object]] = [source, ("Scored by", summary.scored_by or "unknown")]
    if summary.alignment:
        rows.append(("Photos", ALIGNMENTS.get(summary.alignment, summary.alignment)))
    if summary.category:
        rows.append(("Category", summary.category))
    if summary.photos_left_out:
        left_out = f"{summary.photos_left_out:,}, in {counted(summary.pairs_left_out or 0, 'pair')}"
        rows.append(("Unusable photos", left_out))
    label, accuracy = accuracy_label(summary), summary.balanced_accuracy
    point = summary.default_point
    # With two thresholds, indented lines belong to the line above them.
    indent = "" if point is summary.point else "  "
    rows += [
        counts,
        (label, Cell(f"{accuracy_text(accuracy)} ({accuracy_note(summary)})", accuracy.value)),
        (f"{indent}Threshold", _threshold_text(summary)),
    ]
    if indent:
        decided = f"{point.label} where it was set, threshold {point.threshold:.6g}"
        rows.append(("As verify decides", decided))
    errors = {
        "Strangers accepted (FMR)": point.errors.fmr,
        "Look-alikes accepted": point.errors.lookalike_fmr,
        "Genuine pairs missed (FNMR)": point.errors.fnmr,
    }
    rows += [(indent + name, share(rate)) for name, rate in errors.items() if rate]
    if (rule := summary.lfw_accuracy) and has_other_rule(summary):
        text = f"{accuracy_text(rule)} ({interval(rule.interval)})"
        rows.append((f"{label}, LFW's rule", Cell(text, rule.value)))
    rows.append(("AUC", number(summary.auc.value, summary.auc.interval)))
    rows.append(("Equal error rate (EER)", Cell(percent(summary.eer), summary.eer)))
    for far, at_far in summary.tar_at_far.items():
        cell, fmr = share(summary.true_accepts(far)), at_far.errors.fmr
        if fmr is None:
            cell = Cell(at_far.reason or "")
        else:
            accepted = f"{fmr.count or 0:,} of {fmr.of or 0:,} impostor pairs accepted"
            cell = Cell(f"{cell.text}; {accepted}", cell.value)
        rows.append((f"TAR at FAR {far}", cell))
    return rows + (
        [] if summary.ece is None else [("Calibration error (ECE)", number(summary.ece))]
    )


def _threshold_text(summary: Summary) -> str:
    source = SOURCES[summary.threshold_source]
    if summary.threshold_source is ThresholdFrom.FILE:
        return source
    low, high = threshold_range(summary, summary.point) or (0.0, 0.0)
    return f"{low:.6g} ({source})" if low == high else f"{low:.6g} to {high:.6g} ({source})"


def threshold_range(summary: Summary, point: OperatingPoint) -> tuple[float, float] | None:
    """Return the lowest and the highest threshold of a point; None where they are not known."""
    if point.threshold is not None:
        return point.threshold, point.threshold
    values = [part.threshold for part in summary.folds]
    own = point is summary.point
    return (min(values), max(values)) if values and own else None


def _points_table(one: Measurement, own: str, name: str) -> Table:
    points = one.summary.operating_points
    alike = any(point.errors.lookalike_fmr is not None for point in points)
    rows = []
    for point in points:
        low, high = threshold_range(one.summary, point) or (None, None)
        ends = (
            number(low) if low is None or low == high else Cell(interval((low, high or 0), 1), low)
        )
        label, errors = point_label(point), point.errors
        rows.append(
            [
                f"{label} (default)" if point.name == one.summary.verify_point else label,
                ends,
                share(errors.fmr),
                *([share(errors.lookalike_fmr)] if alike else []),
                share(errors.fnmr),
            ]
        )
    columns = ["operating point", "threshold", STRANGERS, *([ALIKE] if alike else []), GENUINE]
    note = (
        "Errors on these pairs, with 95 % intervals. Scores at or above the threshold are "
        f"accepted. Thresholds: {SOURCES[one.summary.threshold_source]}."
    )
    promises = {point.among for point in points if point.max_fmr is not None}
    if promises:
        among = " among look-alikes" if "look-alikes" in promises else ""
        note += f" The FMR in a name was measured{among} where the threshold was set."
    if alike:
        note += " Look-alikes are strangers whose photos lie in the same cluster of embeddings."
    return Table(f"points{own}", "Operating points", columns, cells(rows), note, name)


def _trade_offs(one: Measurement, own: str, name: str) -> Table:
    """Return the genuine pairs missed where at most one stranger in ten, thirty, … is accepted."""
    genuine, score, cluster = one.scores.genuine, one.scores.score, one.scores.cluster
    kinds = {"strangers": ~genuine}
    if cluster is not None and (cluster[~genuine] > 0).any():
        kinds["look-alikes"] = (cluster > 0) & ~genuine
    rows, pairs = [], int(genuine.sum())
    for one_in in ONE_IN:
        used = [genuine | impostor for impostor in kinds.values()]
        found = [tar_at_far(genuine[part], score[part], 1 / one_in) for part in used]
        row = [Cell(f"1 in {one_in:,}", 1 / one_in)]
        for point in found:
            if point is None:
                row += [Cell("too few pairs"), EMPTY]
                continue
            missed = pairs - point.genuine_accepted
            low, high = clopper_pearson(point.genuine_accepted, pairs)
            row += [share(Rate(missed / pairs, (1 - high, 1 - low))), number(point.threshold)]
        if any(found):
            rows.append(row)
    columns = ["accepting at most"]
    for kind in kinds:
        columns += [f"of {kind}: genuine pairs missed", "at threshold"]
    note = (
        "Thresholds set on these same pairs: a point of the curve, not a promise for others. Rarer "
        "errors need more pairs."
    )
    return Table(f"trade-offs{own}", "Choose a threshold", columns, rows, note, name)


def _group_tables(one: Measurement, own: str, name: str) -> list[Table]:
    """Return the errors within groups of people and within clusters of look-alikes."""

    def table(kind: str, groups: Mapping[str, Errors], title: str, what: str) -> Table:
        rows = [
            [
                group,
                share(errors.fmr),
                share(errors.fnmr),
                errors.people or 0,
                *reversed(pair_counts(errors)),
                "too few to judge" if is_small(errors) else None,
            ]
            for group, errors in groups.items()
        ]
        columns = [kind, STRANGERS, GENUINE, "people", "pairs of strangers", "genuine pairs"]
        columns.append("warning")
        note = f"At {at}, worst first, 95 % intervals; pairs within the {what}"
        return Table(f"{kind}s{own}", title, columns, cells(rows), note, name)

    summary, at = one.summary, point_label(one.summary.default_point)
    named = "group. The groups are those of the file that was given."
    found = "cluster. Clusters are found in the embeddings; nothing is inferred about people."
    return [
        table("group", summary.groups, "Errors by group", named),
        table("cluster", summary.clusters, "Errors by cluster of look-alikes", found),
    ]


def _identification_tables(summary: Summary, own: str, name: str) -> list[Table]:
    """Return the errors of identification and the ranks of known people, if measured."""
    figures = summary.identification
    if figures is None:
        return []
    title = (
        f"Identification of {figures.known:,} known people with {figures.enrolled:,} enrolled "
        f"photos, asked for with {figures.known_probes:,} others; {figures.strangers:,} strangers "
        f"with {figures.stranger_probes:,} photos"
    )
    note = "Every person counts once; 95 % intervals are over people."
    rows = [
        [
            f"{point.set_by}, FPIR {100 * point.max_fpir:g} %",
            share(point.dir),
            share(point.fpir),
            Cell(point.reason) if point.threshold is None else number(point.threshold),
        ]
        for point in figures.points
    ]
    columns = ["threshold from", "known people found (DIR)", "strangers taken for somebody (FPIR)"]
    columns.append("threshold")
    ranks = cells([rank, share(rate)] for rank, rate in figures.cmc.items())
    at_rank = ["rank", "at it or better (CMC)"]
    return [
        Table(f"identification{own}", title, columns, cells(rows), note, name),
        Table(f"ranks{own}", "Ranks of known people", at_rank, ranks, "", name),
    ]


def decided_at(summary: Summary) -> str:
    """Return at which threshold folds, people and photos are judged, as a sentence."""
    return f"Errors at the threshold of the accuracy ({point_label(summary.point)})."


def _folds_table(one: Measurement, own: str, name: str) -> Table:
    people = {fold.fold: fold.people.get("training") for fold in one.origin.folds}
    folds = one.summary.true_folds
    rows = [
        [
            fold.fold,
            Cell(percent(fold.accuracy), fold.accuracy),
            fold.false_accepts,
            fold.false_rejects,
            fold.pairs,
            number(fold.threshold),
            people.get(fold.fold),
        ]
        for fold in (folds if len(folds) > 1 else [])
    ]
    columns = ["fold", "accuracy", "strangers accepted", "genuine pairs missed", "pairs"]
    columns += ["threshold", "training people"]
    return Table(f"folds{own}", "Folds", columns, cells(rows), decided_at(one.summary), name)


def _people_table(one: Measurement, own: str, name: str) -> Table:
    """Count the errors of each person; an impostor pair counts for both its people."""
    scores, accepted = one.scores, one.accepted
    if not scores.has_names:
        return Table(f"people{own}", "Errors by person", (), ())
    sides = [[person_of(photo) for photo in side] for side in (scores.left, scores.right)]
    names, numbers = np.unique(np.array(sides, object).astype(str), return_inverse=True)
    left, right = numbers.reshape(2, -1)

    def count(chosen: Bools) -> Ints:
        people = np.concatenate([left[chosen], right[chosen & (left != right)]])
        return np.bincount(people, minlength=len(names))

    genuine = scores.genuine
    missed, passed = count(genuine & ~accepted), count(~genuine & accepted)
    of_one, of_two = count(genuine), count(~genuine)
    errors = missed + passed
    part = errors / (of_one + of_two)
    rows = [
        [
            str(names[k]).replace("_", " "),
            int(errors[k]),
            Cell(percent(part[k]), float(part[k])),
            *(int(column[k]) for column in (missed, of_one, passed, of_two)),
        ]
        for k in np.lexsort((np.arange(len(names)), -part, -errors))[:MOST_PEOPLE]
        if errors[k]
    ]
    note = (
        f"{decided_at(one.summary)} {int((errors > 0).sum()):,} of {len(names):,} people are in "
        "a wrong pair; those with most errors are listed. An impostor pair counts for both its "
        "people."
    )
    columns = ["person", "errors", "of the person's pairs"]
    columns += ["genuine pairs missed", "genuine pairs", "strangers accepted", "pairs of strangers"]
    return Table(f"people{own}", "Errors by person", columns, cells(rows), note, name)
