"""Every table of an evaluation: text, page and notebook show them and compute nothing."""

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from facepairs.bundles.rates import Errors, Rate
from facepairs.data.pairs import person_of
from facepairs.evaluation.measurement import Measurement
from facepairs.evaluation.metrics.comparison import Comparison, Difference
from facepairs.evaluation.protocols import HELDOUT_SEED, PairSelection
from facepairs.evaluation.report.photos import find_photos
from facepairs.evaluation.report.table import (
    EMPTY,
    FACTS,
    Cell,
    Table,
    cells,
    interval,
    number,
    percent,
)
from facepairs.evaluation.report.verifier_tables import (
    accuracy_label,
    accuracy_text,
    has_other_rule,
    pair_rows,
    verifier_tables,
)
from facepairs.evaluation.serialize import to_plain
from facepairs.evaluation.sources.origin import ModelFacts
from facepairs.evaluation.summary import Summary
from facepairs.support.checksum import file_sha256
from facepairs.support.machine import describe
from facepairs.version import __version__

VERIFIERS_NOTE = (
    "All on the same pairs. FMR: strangers accepted. FNMR: genuine pairs missed, both at the "
    "threshold of the accuracy; verify's: at the one that decides by default. LFW's rule: the "
    "accuracy with each fold's threshold from the other folds. EER: where both are equal. TAR at "
    "FAR 0.01: genuine pairs accepted where 1 in 100 strangers is. ECE: error of the probabilities."
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
        summaries = {one.name: one.summary for one in found}
        tables = [
            _pairs_table(found),
            summaries_table("verifier", summaries, VERIFIERS_NOTE),
            _differences_table(comparison),
            _facts_table({one.name: one.facts for one in found if one.facts}),
        ]
    for place, one in enumerate(found, 1):
        tables += verifier_tables(one, place, comparison is not None, brief)
    if not brief:
        tables += [
            _data_table(found, data, selection),
            _history_table(found, comparison, selection),
        ]
    return [table for table in tables if table.rows]


def summaries_table(kind: str, summaries: Mapping[str, Summary], note: str = "") -> Table:
    """Return a table with a row for each summary.

    Args:
        kind: Heading of the names, such as "method".
        summaries: The summaries by name.
        note: A text above the table.
    """
    first = next(iter(summaries.values()))
    stricter = any(one.default_point is not one.point for one in summaries.values())
    rule = any(map(has_other_rule, summaries.values()))
    rows = []
    for name, summary in summaries.items():
        accuracy = summary.balanced_accuracy
        lacks_error = " (1 fold: no s.e.)" if len(summary.true_folds) == 1 else ""
        decided = summary.default_point.errors if summary.verify_point else Errors()
        rows.append(
            [
                name,
                Cell(accuracy_text(accuracy) + lacks_error, accuracy.value),
                Cell(interval(accuracy.interval), accuracy.interval[0]),
                *([_accuracy(summary.lfw_accuracy)] if rule else []),
                _alone(summary.point.errors.fmr),
                _alone(summary.point.errors.fnmr),
                *((_alone(decided.fmr), _alone(decided.fnmr)) if stricter else ()),
                number(summary.auc.value),
                Cell(percent(summary.eer), summary.eer),
                _alone(summary.true_accepts("0.01"), "too few pairs"),
                number(summary.ece),
            ]
        )
    columns = [kind, accuracy_label(first).lower(), "95 %"]
    columns += [*(["LFW's rule"] if rule else []), "FMR", "FNMR"]
    columns += ["verify's FMR", "verify's FNMR"] if stricter else []
    columns += ["AUC", "EER", "TAR at FAR 0.01", "ECE"]
    return Table(f"{kind}s", f"{kind.capitalize()}s", columns, cells(rows), note)


def _accuracy(rate: Rate | None) -> Cell:
    return EMPTY if rate is None else Cell(accuracy_text(rate), rate.value)


def _alone(rate: Rate | None, missing: str = "") -> Cell:
    """Return a rate without its interval."""
    return Cell(missing) if rate is None else Cell(percent(rate.value), rate.value)


def _pairs_table(found: Sequence[Measurement]) -> Table:
    """Return the number of pairs, and where they come from where all agree."""
    places = [pair_rows(one.summary) for one in found]
    rows = [row for row in places[0] if all(row in place for place in places) or row[0] == "Pairs"]
    return Table("pairs", "Pairs", FACTS, cells(rows))


def _differences_table(comparison: Comparison) -> Table:
    """Return the differences between every two verifiers, with tests."""
    tests = comparison.tests
    fars = [far for far in tests[0].tar_at_far if far == "0.01"]
    rows = [
        [
            f"{test.first} - {test.second}",
            _difference(test.balanced_accuracy, "+.2f", 100),
            Cell(
                "< .0001" if test.p_adjusted < 1e-4 else f"{test.p_adjusted:.4f}", test.p_adjusted
            ),
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
    return Table("differences", "Differences", columns, cells(rows), note)


def _difference(gap: Difference, form: str, scale: int) -> Cell:
    middle, low, high = (format(scale * value, form) for value in (gap.difference, *gap.interval))
    return Cell(f"{middle} ({low} to {high})", gap.difference)


def _facts_table(facts: Mapping[str, ModelFacts]) -> Table:
    """Return what verifiers cost and where they come from; empty where no network was timed."""
    rows = [
        [
            name,
            EMPTY if one.network_ms is None else Cell(f"{one.network_ms:.1f}", one.network_ms),
            EMPTY if one.network_mb is None else Cell(f"{one.network_mb:.1f}", one.network_mb),
            one.licence or "not recorded",
            one.training_data or "not recorded",
        ]
        for name, one in facts.items()
    ]
    timed = any(one.network_ms is not None for one in facts.values())
    columns = ["verifier", "ms a face", "MB", "licence of the weights", "trained on"]
    note = "CPU time of the network for one face on this machine, without finding it."
    return Table("facts", "Cost and origin", columns, cells(rows if timed else []), note)


def _data_table(
    found: Sequence[Measurement], data: Path | None, selection: PairSelection | None
) -> Table:
    """Return what was measured on."""
    first = found[0]
    scores, names = first.scores, sorted({*first.scores.left, *first.scores.right})
    facts: dict[str, object] = {
        "Pairs from": first.summary.pairs,
        "Folder of photos": data,
        "Pairs": len(scores),
        "Genuine pairs": first.summary.genuine_pairs,
        "Impostor pairs": first.summary.impostor_pairs,
        "Folds": len(np.unique(scores.fold)),
    }
    if scores.has_names:
        facts |= {"Photos": len(names), "People": len(set(map(person_of, names)))}
    if photos := find_photos(data, scores):
        facts["Photos not in the folder"] = len(names) - len(photos)
    if selection is not None:
        facts["Photos in the folder"] = len(selection.index)
        facts["People in the folder"] = len(selection.index.people)
        facts["SHA-256 of the folder's list"] = selection.index.fingerprint
    files = [one.source for one in found if Path(one.source).is_file()]
    facts |= {f"SHA-256 of {file}": file_sha256(Path(file)) for file in files}
    rows = cells(fact for fact in facts.items() if fact[1] is not None)
    return Table("data", "Data", FACTS, rows)


def _history_table(
    found: Sequence[Measurement], comparison: Comparison | None, selection: PairSelection | None
) -> Table:
    """Return how the figures were made: command, seeds, versions, machine, training."""
    machine = describe()
    facts: dict[str, object] = {
        "Created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "facepairs": __version__,
    }
    if selection is not None and selection.protocol == "heldout":
        facts["Seed: pairs drawn"] = HELDOUT_SEED
    if comparison is not None:
        facts["Seed: bootstrap"] = comparison.seed
    for one in found:
        if one.origin.seeds:
            facts[f"Seed: training of {one.name}"] = ", ".join(map(str, one.origin.seeds))
    facts |= {
        "Processor": f"{machine['cpu']}, {machine['cores']} cores",
        "Memory": f"{machine['memory_gb']} GB",
        "System": f"{machine['os']}, Python {machine['python']}",
        "Libraries": _flatten(machine["versions"]),
    }
    for one in found:
        facts[f"Scores of {one.name}"] = provenance_text(one)
        facts |= {
            f"{one.name}: {name.replace('_', ' ')}": _flatten(value)
            for name, value in to_plain(one.origin).items()
            if value and name != "folds"
        }
    return Table(
        "history", "How this was made", FACTS, cells((k, str(v)) for k, v in facts.items())
    )


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
