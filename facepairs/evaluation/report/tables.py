"""Every table of an evaluation: text, page and notebook show them and compute nothing."""

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from facepairs.bundles.rates import Rate
from facepairs.data.pairs import person_of
from facepairs.evaluation.measurement import Measurement
from facepairs.evaluation.metrics.comparison import Comparison, Difference
from facepairs.evaluation.protocols import PairSelection
from facepairs.evaluation.report.photos import find_photos
from facepairs.evaluation.report.table import Cell, Table, facts_of, percent, share, table_of
from facepairs.evaluation.report.verifier_tables import (
    accuracy_label,
    by_other_rule,
    figure_rows,
    verifier_tables,
)
from facepairs.evaluation.serialize import to_plain
from facepairs.evaluation.sources.origin import ModelFacts
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
P_FROM = {"mcnemar": "McNemar's exact test", "bootstrap": "the balanced accuracy's bootstrap"}


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
            _facts_table({one.name: one.facts for one in found if one.facts}),
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
    """Return the differences between every two verifiers, with tests."""
    rows = [
        {
            "first - second": f"{test.first} - {test.second}",
            "balanced accuracy": _difference(test.balanced_accuracy),
            "p-value": _p_value(test.p_adjusted),
            "AUC": _difference(test.auc, is_share=False),
            "TAR at FAR 1 %": _difference(test.tar_at_far.get("0.01")),
        }
        for test in comparison.tests
    ]
    note = (
        f"On the same {comparison.pairs:,} pairs; in parentheses 95 % intervals of "
        f"{comparison.draws:,} bootstrap draws of {comparison.drawn}. p-value: "
        f"{P_FROM[comparison.p_from]}, corrected for the number of comparisons (Holm)."
    )
    return table_of("differences", "Differences", rows, note)


def _p_value(p: float) -> Cell:
    return Cell("< .0001" if p < 1e-4 else f"{p:.4f}", p)


def _difference(gap: Difference | None, is_share: bool = True) -> Cell | None:
    if gap is None:
        return None
    scale, form, unit = (100, "+.2f", " %") if is_share else (1, "+.4f", "")
    middle, low, high = (format(scale * value, form) for value in (gap.difference, *gap.interval))
    return Cell(f"{middle}{unit} ({low} to {high})", gap.difference)


def _facts_table(facts: Mapping[str, ModelFacts]) -> Table:
    """Return what verifiers cost and where they come from; empty where no network was timed."""
    rows = [
        {
            "verifier": name,
            "ms a face": Cell(f"{one.network_ms:.1f}", one.network_ms),
            "MB": one.network_mb and Cell(f"{one.network_mb:.1f}", one.network_mb),
            "licence of the weights": one.licence or "not recorded",
            "trained on": one.training_data or "not recorded",
        }
        for name, one in facts.items()
        if one.network_ms is not None
    ]
    note = "CPU time of the network for one face on this machine, without finding it."
    return table_of("facts", "Cost and origin", rows, note)


def _data_table(
    found: Sequence[Measurement], data: Path | None, selection: PairSelection | None
) -> Table:
    """Return what was measured on."""
    first, scores = found[0], found[0].scores
    names = {*scores.left, *scores.right} if scores.has_names else set()
    photos, index = find_photos(data, scores), selection and selection.index
    files = [Path(one.source) for one in found if Path(one.source).is_file()]
    facts = [
        ("Pairs from", first.summary.pairs),
        ("Folder of photos", data),
        ("Pairs", len(scores)),
        ("Genuine pairs", first.summary.genuine_pairs),
        ("Impostor pairs", first.summary.impostor_pairs),
        ("Folds", len(set(scores.fold.tolist()))),
        ("Photos", len(names) or None),
        ("People", len(set(map(person_of, names))) or None),
        ("Photos not in the folder", len(names) - len(photos) if photos else None),
        ("Photos in the folder", len(index) if index else None),
        ("People in the folder", len(index.people) if index else None),
        ("SHA-256 of the folder's list", index.fingerprint if index else None),
        *((f"SHA-256 of {file}", file_sha256(file)) for file in files),
    ]
    return facts_of("data", "Data", facts)


def _history_table(found: Sequence[Measurement]) -> Table:
    """Return how the figures were made: versions, machine, training."""
    machine = describe()
    facts: dict[str, object] = {
        "Created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "facepairs": __version__,
        "Processor": f"{machine['cpu']}, {machine['cores']} cores",
        "Memory": f"{machine['memory_gb']} GB",
        "System": f"{machine['os']}, Python {machine['python']}",
        "Libraries": _flatten(machine["versions"]),
    }
    for one in found:
        facts[f"Scores of {one.name}"] = provenance_text(one)
        seeds = ", ".join(map(str, one.origin.seeds))
        origin = {**to_plain(one.origin), "folds": "", "seeds of the training": seeds}
        for name, value in origin.items():
            if value:
                facts[f"{one.name}: {name.replace('_', ' ')}"] = _flatten(value)
    return facts_of("history", "How this was made", facts.items())


def provenance_text(one: Measurement) -> str:
    """Return in words where the scores of a verifier come from."""
    made_by = one.summary.scored_by
    if made_by is None:
        return "of unknown origin"
    network = one.provenance.embedder_sha256 if one.provenance else None
    return f"by {made_by}" + (f" (network {network[:12]})" if network else "")


def _flatten(value: Any) -> str:
    """Return nested values in one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_flatten(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return "; ".join(_flatten(inner) for inner in value)
    return str(value)
