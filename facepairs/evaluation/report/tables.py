"""Every table of an evaluation: text, page and notebook show them and compute nothing."""

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path

from facepairs.bundles.rates import Rate
from facepairs.evaluation.measurement import Measurement
from facepairs.evaluation.metrics.comparison import Comparison, Difference
from facepairs.evaluation.protocols import PairSelection
from facepairs.evaluation.report.table import Cell, Table, facts_of, percent, share, table_of
from facepairs.evaluation.report.verifier_tables import (
    accuracy_label,
    by_other_rule,
    figure_rows,
    verifier_tables,
)
from facepairs.evaluation.summary import Summary
from facepairs.support.checksum import file_sha256
from facepairs.support.machine import describe
from facepairs.version import __version__

VERIFIERS_NOTE = (
    "All on the same pairs. FMR: strangers accepted. FNMR: genuine pairs missed, both as verify "
    "decides, which may be stricter than the threshold of the accuracy. LFW's rule: with "
    "each fold's threshold from the other folds. EER: where both are equal. TAR at FAR 1 %: "
    "genuine pairs accepted where 1 % of strangers are. ECE: error of the probabilities."
)


def evaluation_tables(
    found: Sequence[Measurement],
    comparison: Comparison | None,
    data: Path | None,
    selection: PairSelection | None,
    brief: bool = False,
) -> list[Table]:
    """Return every table: of the comparison, of each verifier, of the pairs and of the making.

    Args:
        found: The verifiers.
        comparison: None for one verifier.
        data: The folder of photos, if one was given.
        selection: The pairs that were scored here, if any were.
        brief: Only those that a terminal and a notebook show.
    """
    tables: list[Table] = []
    if comparison is not None:
        tables = [
            _pairs_table(found),
            summaries_table("verifier", {one.name: one.summary for one in found}, VERIFIERS_NOTE),
            _differences_table(comparison),
        ]
    for place, one in enumerate(found, 1):
        tables += verifier_tables(one, place, comparison is not None, brief)
    if not brief:
        tables += [_data_table(found, data, selection), _history_table(found)]
    return [table for table in tables if table.rows]


def summaries_table(kind: str, summaries: Mapping[str, Summary], note: str = "") -> Table:
    """Return a table with a row for each summary.

    Args:
        kind: Heading of the names, such as "method".
        summaries: The summaries by name.
        note: A text above the table.
    """
    accuracy = accuracy_label(next(iter(summaries.values()))).lower()
    rows = [
        {
            kind: name,
            f"{accuracy} (95 % interval)": summary.balanced_accuracy,
            "accuracy by LFW's rule": _alone(by_other_rule(summary)),
            "FMR": _alone(summary.default_point.errors.fmr),
            "FNMR": _alone(summary.default_point.errors.fnmr),
            "AUC": summary.auc.value,
            "EER": percent(summary.eer),
            "TAR at FAR 1 %": _alone(summary.true_accepts("0.01"), "too few pairs"),
            "ECE": summary.ece,
        }
        for name, summary in summaries.items()
    ]
    return table_of(f"{kind}s", f"{kind.capitalize()}s", rows, note)


def _alone(rate: Rate | None, missing: str = "") -> Cell:
    """Return a rate without its interval."""
    return Cell(missing) if rate is None else Cell(share(rate), rate.value)


def _pairs_table(found: Sequence[Measurement]) -> Table:
    """Return the number of pairs, and where they come from where all agree."""
    first, *others = [dict(figure_rows(one.summary)) for one in found]
    agree = all(one["Pairs from"] == first["Pairs from"] for one in others)
    labels = ["Pairs from", "Pairs"] if agree else ["Pairs"]
    return facts_of("pairs", "Pairs", [(label, first[label]) for label in labels])


def _differences_table(comparison: Comparison) -> Table:
    """Return the differences between every two verifiers."""
    rows = [
        {
            "first - second": f"{two.first} - {two.second}",
            "balanced accuracy": _difference(two.balanced_accuracy),
            "AUC": _difference(two.auc, is_share=False),
            "TAR at FAR 1 %": _difference(two.tar_at_far.get("0.01")),
        }
        for two in comparison.differences
    ]
    note = (
        f"On the same {comparison.pairs:,} pairs; in parentheses 95 % intervals of "
        f"{comparison.draws:,} bootstrap draws of {comparison.drawn}. If one has 0 in it, the "
        "difference may be chance."
    )
    return table_of("differences", "Differences", rows, note)


def _difference(gap: Difference | None, is_share: bool = True) -> Cell | None:
    if gap is None:
        return None
    scale, form, unit = (100, "+.2f", " %") if is_share else (1, "+.4f", "")
    middle, low, high = (format(scale * value, form) for value in (gap.difference, *gap.interval))
    return Cell(f"{middle}{unit} ({low} to {high})", gap.difference)


def _data_table(
    found: Sequence[Measurement], data: Path | None, selection: PairSelection | None
) -> Table:
    """Return what was measured on."""
    first, scores = found[0], found[0].scores
    index = selection and selection.index
    files = [Path(one.source) for one in found if Path(one.source).is_file()]
    facts = [
        ("Pairs from", first.summary.pairs),
        ("Pairs", len(scores)),
        ("Folds", len(set(scores.fold.tolist()))),
        ("Photos", len({*scores.left, *scores.right}) if scores.has_names else None),
        ("Folder of photos", data),
        ("SHA-256 of the folder's list", index.fingerprint if index else None),
        *((f"SHA-256 of {file}", file_sha256(file)) for file in files),
    ]
    return facts_of("data", "Data", facts)


def _history_table(found: Sequence[Measurement]) -> Table:
    """Return how the figures were made: versions, machine, networks."""
    machine = describe()
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    facts: dict[str, object] = {
        "Created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "facepairs": __version__,
        "Processor": f"{machine['cpu']}, {machine['cores']} cores",
        "System": f"{machine['os']}, Python {machine['python']}",
        "Libraries": versions,
        **{f"Scores of {one.name}": provenance_text(one) for one in found},
    }
    return facts_of("history", "How this was made", facts.items())


def provenance_text(one: Measurement) -> str:
    """Return in words where the scores of a verifier come from."""
    made_by = one.summary.scored_by
    if made_by is None:
        return "of unknown origin"
    network = one.provenance.embedder_sha256 if one.provenance else None
    return f"by {made_by}" + (f" (network {network[:12]})" if network else "")
