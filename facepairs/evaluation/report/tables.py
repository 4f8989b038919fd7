"""Every table of an evaluation: text, page and notebook show them and compute nothing."""

from collections.abc import Sequence
from dataclasses import replace

from facepairs.bundles.rates import Errors, OperatingPoint, Rate
from facepairs.evaluation.error_rates import Acquisition, ThresholdFrom
from facepairs.evaluation.measurement import Measurement
from facepairs.evaluation.metrics.comparison import Comparison, Difference
from facepairs.evaluation.report.parts import (
    GENUINE,
    STRANGERS,
    differences_of_groups,
    factors_table,
    groups_table,
)
from facepairs.evaluation.report.table import (
    Cell,
    Table,
    cell,
    facts_of,
    interval,
    percent,
    share,
    table_of,
)
from facepairs.evaluation.summary import Summary, wrong_pairs
from facepairs.support.words import counted

ALIGNMENTS = {"landmarks-5": "faces aligned by five landmarks", "lfw-frame": "taken as they are"}
SOURCES = {
    ThresholdFrom.MODEL: "the model's own",
    ThresholdFrom.OTHER_FOLDS: "each fold's from the other folds, LFW's standard rule",
    ThresholdFrom.OTHER_HALF: "each half's from the other half of the pairs",
    ThresholdFrom.OWN_NETWORKS: "each fold's from its own network",
}
SET_BY = {"strangers": "these strangers", "gallery": "gallery identify"}
ERRORS_BY = {
    "verify": "as verify decides, which may be stricter than the threshold of the accuracy",
    "balanced": "at the thresholds of the accuracy, because not all have one for verify",
}
VERIFIERS_NOTE = (
    "All on the same pairs, by the same rules. Thresholds of the accuracy: {thresholds}. FMR: "
    "strangers accepted. FNMR: genuine pairs missed, both {errors}. LFW's rule: with each fold's "
    "threshold from the other folds. EER: where both are equal. TAR at FAR 1 %: genuine pairs "
    "accepted where 1 % of strangers are. ECE: error of the probabilities."
)


def evaluation_tables(
    found: Sequence[Measurement],
    comparison: Comparison | None,
    brief: bool = False,
) -> list[Table]:
    """Return every table of figures: of the comparison, and of each verifier.

    Args:
        found: The verifiers.
        comparison: None for one verifier.
        brief: Only those that a terminal and a notebook show.
    """
    tables: list[Table] = []
    if comparison is not None:
        tables = [
            _pairs_table(found),
            _verifiers_table(found, comparison),
            _differences_table(comparison),
        ]
    for place, one in enumerate(found, 1):
        own = [
            groups_table(one.summary),
            *differences_of_groups(one.summary),
            factors_table(one.summary),
            *_identification_tables(one.summary),
        ]
        if comparison is None or not brief:
            own.insert(0, facts_of("figures", "All figures", figure_rows(one.summary)))
        if not brief:
            own += [_points_table(one.summary), _folds_table(one.summary)]
        verifier = one.summary.about.name if comparison is not None else ""
        tables += [replace(it, key=f"{it.key}-{place}", verifier=verifier) for it in own]
    return [table for table in tables if table.rows]


def _verifiers_table(found: Sequence[Measurement], comparison: Comparison) -> Table:
    """Return a row for each verifier; every column has one rule for all."""
    note = VERIFIERS_NOTE.format(
        thresholds=SOURCES[ThresholdFrom(comparison.threshold_source)],
        errors=ERRORS_BY[comparison.errors_by],
    )
    has_rule = any(by_other_rule(one.summary) for one in found)
    rows = [
        {
            "verifier": one.name,
            "balanced accuracy (95 % interval)": one.balanced_accuracy,
            "accuracy by LFW's rule": _alone(summary.lfw_accuracy if has_rule else None),
            "FMR": _alone(one.fmr),
            "FNMR": _alone(one.fnmr),
            "AUC": cell(summary.auc.value)._replace(interval=summary.auc.interval),
            "EER": _alone(summary.eer),
            "TAR at FAR 1 %": _alone(summary.true_accepts("0.01"), "too few pairs"),
            "ECE": summary.ece,
        }
        for one, summary in zip(
            comparison.verifiers, (measured.summary for measured in found), strict=True
        )
    ]
    return table_of("verifiers", "Verifiers", rows, note)


def _alone(rate: Rate | None, missing: str = "") -> Cell:
    """Return a rate whose text is without its interval."""
    return Cell(missing) if rate is None else Cell(share(rate), rate.value, rate.interval)


def _pairs_table(found: Sequence[Measurement]) -> Table:
    """Return the number of pairs, and where they come from where all agree."""
    first, *others = [dict(figure_rows(measured.summary)) for measured in found]
    agree = all(rows["Pairs from"] == first["Pairs from"] for rows in others)
    labels = ["Pairs from", "Pairs"] if agree else ["Pairs"]
    return facts_of("pairs", "Pairs", [(label, first[label]) for label in labels])


def _differences_table(comparison: Comparison) -> Table:
    """Return the differences between every two verifiers."""
    rows = [
        {
            "first - second": f"{two.first} - {two.second}",
            "balanced accuracy": _difference(two.balanced_accuracy),
            "FMR": _difference(two.fmr),
            "FNMR": _difference(two.fnmr),
            "AUC": _difference(two.auc, is_share=False),
            "TAR at FAR 1 %": _difference(two.tar_at_far.get("0.01")),
        }
        for two in comparison.differences
    ]
    note = (
        f"On the same {comparison.pairs:,} pairs; in parentheses 95 % intervals over "
        f"{comparison.independent}. If one has 0 in it, the difference may be chance."
    )
    return table_of("differences", "Differences", rows, note)


def _difference(gap: Difference | None, is_share: bool = True) -> Cell | None:
    if gap is None:
        return None
    scale, form, unit = (100, "+.2f", " %") if is_share else (1, "+.4f", "")
    middle, low, high = (format(scale * value, form) for value in (gap.difference, *gap.interval))
    return Cell(f"{middle}{unit} ({low} to {high})", gap.difference, gap.interval)


def accuracy_label(summary: Summary) -> str:
    """Return the name of the accuracy: balanced unless both kinds of pairs are equally many."""
    return "Balanced accuracy" if summary.accuracy is None else "Accuracy"


def accuracy_note(summary: Summary) -> str:
    """Return in words what the interval of the accuracy is."""
    rate = summary.balanced_accuracy
    note = f"95 % interval {interval(rate)}"
    if rate.standard_error is None:
        return note
    return f"mean ± standard error of {len(summary.folds)} folds; {note}"


def error_rates(errors: Errors) -> dict[str, Rate | None]:
    """Return the rates of errors by what they are in words."""
    return {
        STRANGERS: errors.fmr,
        "look-alikes accepted": errors.lookalike_fmr,
        GENUINE: errors.fnmr,
        "generalised FMR": errors.gfmr,
        "generalised FNMR": errors.gfnmr,
    }


def acquisition_cell(acquisition: Acquisition | None) -> Cell | None:
    """Return the failures to acquire, with the reasons; None where they are not known."""
    if acquisition is None:
        return None
    fta = acquisition.fta
    kinds = (f"{count:,} {kind.replace('_', ' ')}" for kind, count in acquisition.reasons.items())
    photos = f"{fta.count or 0:,} of {counted(fta.of or 0, 'photo')}"
    return Cell(
        ": ".join(filter(None, [f"{cell(fta).text}; {photos}", ", ".join(kinds)])),
        fta.value,
        fta.interval,
    )


def by_other_rule(summary: Summary) -> Rate | None:
    """Return the accuracy by LFW's standard rule where it is not the accuracy itself."""
    by_rule = summary.threshold_source is ThresholdFrom.OTHER_FOLDS
    return None if by_rule else summary.lfw_accuracy


def figure_rows(summary: Summary) -> list[tuple[str, object]]:
    """Return (label, value) of every figure, with intervals of 95 %; None where there is none."""
    label, point, people = accuracy_label(summary), summary.default_point, summary.people
    # With two thresholds, indented lines belong to the line above them.
    indent = "" if point is summary.point else "  "
    among = f", {counted(people, 'person', 'people')}" if people else ""
    known, decided = None, None
    if summary.about.people_left_out:
        known = f"{summary.about.people_left_out:,} on whom a model was trained or calibrated"
    if indent:
        decided = f"{point.label} where it was set, threshold {point.threshold:.6g}"
    balanced = summary.balanced_accuracy
    accuracy = Cell(
        f"{share(balanced)} ({accuracy_note(summary)})", balanced.value, balanced.interval
    )
    rates = error_rates(point.errors).items()
    area, (low, high) = summary.auc.value, summary.auc.interval
    return [
        ("Pairs from", f"{summary.about.pairs}{among}"),
        ("Scored by", summary.about.scored_by or "unknown"),
        (
            "Photos",
            summary.about.alignment
            and ALIGNMENTS.get(summary.about.alignment, summary.about.alignment),
        ),
        ("People left out", known),
        ("Pairs", f"{summary.genuine_pairs:,} genuine, {summary.impostor_pairs:,} impostor"),
        ("Failures to acquire (FTA)", acquisition_cell(summary.acquisition)),
        (label, accuracy),
        (f"{indent}Threshold", _threshold_text(summary)),
        ("As verify decides", decided),
        *((f"{indent}{name[0].upper()}{name[1:]}", rate) for name, rate in rates),
        (f"{label}, LFW's rule", by_other_rule(summary)),
        ("AUC", Cell(f"{area:.4f} ({low:.4f} to {high:.4f})", area, (low, high))),
        ("Equal error rate (EER)", summary.eer),
        *(_at_far(summary, far) for far in summary.tar_at_far),
        ("Calibration error (ECE)", summary.ece),
        ("Cllr, bits", summary.cllr),
        ("Minimum Cllr, bits", summary.min_cllr),
    ]


def _at_far(summary: Summary, far: str) -> tuple[str, Cell]:
    """Return label and text of the true accept rate at a target FAR, or why there is none."""
    point, rate = summary.tar_at_far[far], cell(summary.true_accepts(far))
    text, fmr = point.reason or "", point.errors.fmr
    if fmr is not None:
        text = f"{rate.text}; {fmr.count or 0:,} of {fmr.of or 0:,} impostor pairs accepted"
    return f"TAR at FAR {100 * float(far):g} %", rate._replace(text=text)


def _threshold_text(summary: Summary) -> str:
    source = SOURCES[summary.threshold_source]
    ends = " to ".join(f"{end:.6g}" for end in thresholds_of(summary, summary.point))
    return f"{ends} ({source})"


def thresholds_of(summary: Summary, point: OperatingPoint) -> list[float]:
    """Return the threshold of a point, or the lowest and the highest of the folds, if known."""
    if point.threshold is not None:
        return [point.threshold]
    own = summary.folds if point is summary.point else []
    values = {part.threshold for part in own if part.threshold is not None}
    return sorted({min(values), max(values)}) if values else []


def _points_table(summary: Summary) -> Table:
    rows = []
    for point in summary.operating_points:
        ends = thresholds_of(summary, point)
        default = " (default)" if point.name == summary.verify_point else ""
        row = {
            "operating point": point.label + default,
            "threshold": Cell(" to ".join(f"{end:.4f}" for end in ends), ends[0]) if ends else None,
        }
        rows.append(row | error_rates(point.errors))
    note = (
        "Errors on these pairs, with 95 % intervals. Scores at or above the threshold are "
        f"accepted. Thresholds: {SOURCES[summary.threshold_source]}. An FMR in a name was measured "
        "where the threshold was set. Look-alikes are strangers in the same cluster of embeddings. "
        "Generalised rates count photos without a usable face as rejected."
    )
    return table_of("points", "Operating points", rows, note)


def _identification_tables(summary: Summary) -> list[Table]:
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
        {
            "threshold from": f"{SET_BY[point.set_by]}, FPIR {100 * point.max_fpir:g} %",
            "known people found (DIR)": point.dir,
            "strangers misidentified (FPIR)": point.fpir,
            "threshold": Cell(point.reason) if point.threshold is None else point.threshold,
        }
        for point in figures.points
    ]
    perfect = next((rank for rank, rate in figures.cmc.items() if rate.value == 1), None)
    ranks = [
        {"rank": rank, "known people found at this rank or better (CMC)": rate}
        for rank, rate in figures.cmc.items()
        if perfect is None or rank <= perfect  # all later ones are 100 %, too
    ]
    return [
        table_of("identification", title, rows, note),
        table_of("ranks", "Ranks of known people", ranks),
    ]


def _folds_table(summary: Summary) -> Table:
    folds = summary.true_folds
    rows = [
        {
            "fold": int(fold.name),
            "accuracy": percent(1 - (passed + missed) / pairs),
            "strangers accepted": passed,
            "genuine pairs missed": missed,
            "pairs": pairs,
            "threshold": fold.threshold,
        }
        for fold, (passed, missed, pairs) in zip(folds, map(wrong_pairs, folds), strict=True)
        if len(folds) > 1
    ]
    note = f"Errors at the threshold of the accuracy ({summary.point.label})."
    return table_of("folds", "Folds", rows, note)
