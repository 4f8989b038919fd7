"""The first page of a report, which can be signed, and how the report was made."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from facepairs.evaluation.measurement import Measurement
from facepairs.evaluation.record import EvaluationRecord
from facepairs.evaluation.report.table import Table, facts_of
from facepairs.evaluation.report.tables import (
    SOURCES,
    accuracy_label,
    acquisition_cell,
    error_rates,
    thresholds_of,
)
from facepairs.evaluation.summary import Summary
from facepairs.support.words import counted

BLANK = "_" * 40
FOR_HAND = ("Photos taken (dates, place, camera)", "Tested by", "Place and date", "Signature")


def statement_table(
    found: Sequence[Measurement], record: EvaluationRecord, warnings: Sequence[str]
) -> Table:
    """Return what was tested, on whom, how, with what results and limits, to be signed."""
    first = found[0].summary
    people = (
        "people not known" if first.people is None else counted(first.people, "person", "people")
    )
    photos = "" if record.photos is None else f", {counted(record.photos, 'photo')}"
    place = f" of {Path(record.data).resolve().name}/" if record.data else ""
    kept = f" ({record.data_sha256[:12]})" if record.data_sha256 else ""
    facts: list[tuple[str, object]] = []
    for one in found:
        facts += _about_verifier(one.summary)
    facts += [
        ("On whom", f"{people}{photos}{place}{kept}"),
        ("Groups", record.groups),
        ("Families", record.families),
        ("Factors", record.factors),
        ("Pairs", f"{first.genuine_pairs:,} genuine, {first.impostor_pairs:,} impostor"),
        ("Pairs from", first.about.pairs),
        ("Tested", f"{record.created}, facepairs {record.facepairs}"),
        ("Command", record.command or None),
        *(("Limit", line) for line in (*warnings, *record.limits)),
        *((name, BLANK) for name in FOR_HAND),
    ]
    note = "Rates with 95 % intervals over people; details are in the tables and figures below."
    return replace(facts_of("statement", "Test report", facts), note=note)


def _about_verifier(summary: Summary) -> Iterator[tuple[str, object]]:
    """Yield what a verifier is, who chose its thresholds, and its results."""
    about, point = summary.about, summary.default_point
    network = f", network {about.network_sha256[:12]}" if about.network_sha256 else ""
    scored = about.scored_by or "scores of unknown origin"
    name = "" if scored == about.name else f"{about.name}: "
    yield "What was tested", f"{name}{scored}{network}"
    ends = " to ".join(f"{end:.6g}" for end in thresholds_of(summary, point))
    chosen, is_own = SOURCES[summary.threshold_source], summary.verify_point is not None
    on = f", set on {about.thresholds_set_on}" if is_own and about.thresholds_set_on else ""
    yield "Threshold", f"{ends} ({point.label}), {chosen}{on}"
    for name, rate in error_rates(point.errors).items():
        yield f"{name[0].upper()}{name[1:]}", rate
    yield accuracy_label(summary), summary.balanced_accuracy
    yield "Failures to acquire (FTA)", acquisition_cell(summary.acquisition)


def history_table(found: Sequence[Measurement], record: EvaluationRecord) -> Table:
    """Return how the figures were made: from which files, with which versions."""
    versions = [f"{name} {version}" for name, version in record.libraries.items()]
    facts = [
        ("Command", record.command or None),
        ("Created", record.created),
        ("facepairs", record.facepairs),
        ("Libraries", ", ".join(versions)),
        *((f"Scores of {one.summary.about.name}", _origin(one.summary)) for one in found),
        ("Photos", record.photos),
        ("Folder of photos", record.data),
        ("SHA-256 of the folder's list", record.data_sha256),
        *((f"SHA-256 of {file}", digest) for file, digest in record.sha256.items()),
    ]
    return facts_of("history", "How this was made", facts)


def _origin(summary: Summary) -> str:
    """Return in words where the scores of a verifier come from."""
    about = summary.about
    if about.scored_by is None:
        return "of unknown origin"
    network = f" (network {about.network_sha256[:12]})" if about.network_sha256 else ""
    return f"by {about.scored_by}{network}"
