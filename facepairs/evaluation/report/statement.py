"""The first page of a report, which can be signed, and how the report was made."""

import datetime
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from facepairs.bundles.rates import Rate
from facepairs.evaluation.measurement import Measurement
from facepairs.evaluation.protocols import PairSelection
from facepairs.evaluation.report.parts import differentials, ratio_cell
from facepairs.evaluation.report.table import Cell, Table, cell, facts_of
from facepairs.evaluation.report.tables import (
    SOURCES,
    accuracy_label,
    acquisition_cell,
    error_rates,
    thresholds_of,
)
from facepairs.evaluation.summary import About, Summary
from facepairs.support.machine import package_versions
from facepairs.support.places import file_sha256
from facepairs.support.words import counted
from facepairs.version import __version__

LIMITS = (
    "The rates are those of people and photos like these; others have others.",
    "Attacks with pictures, screens or masks were not tested (ISO/IEC 30107).",
    "When, where and by whom the photos were taken is not known to facepairs.",
)
BLANK = "_" * 40
FOR_HAND = ("Photos taken (dates, place, camera)", "Tested by", "Place and date", "Signature")


class EvaluationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How an evaluation was made.

    Attributes:
        created: The time of the test, in UTC.
        facepairs: The version of facepairs.
        libraries: Versions of the libraries that decide what is measured, by their names.
        command: The command line; "" from Python.
        data: The folder of photos; None for scores files alone.
        photos_sha256: SHA-256 of the photos in the pairs: of what `sha256sum` prints for them,
            sorted by name; None where they were not read.
        photos: Number of photos in the pairs; None where they have no names.
        protocol: Name of the protocol of the pairs; "" for listed pairs; None for scores files.
        scores: The scores file or `crossval` folder of each verifier; None where no scores were
            kept.
        groups: The file of groups.
        families: The file of families.
        factors: The file of factors, or `faces`.
        sha256: SHA-256 of each file above, by its path; `crossval` folders have their own.
        limits: What the figures do not say.
    """

    created: str
    facepairs: str = __version__
    libraries: dict[str, str] = msgspec.field(default_factory=package_versions)
    command: str = ""
    data: str | None = None
    photos_sha256: str | None = None
    photos: int | None = None
    protocol: str | None = None
    scores: list[str | None]
    groups: str | None = None
    families: str | None = None
    factors: str | None = None
    sha256: dict[str, str]
    limits: Sequence[str] = LIMITS


def record_of(
    found: Sequence[Measurement],
    scores: Sequence[str | None],
    data: Path | None,
    selection: PairSelection | None,
    groups: Path | str | None = None,
    families: Path | str | None = None,
    factors: Path | str | None = None,
) -> EvaluationRecord:
    """Return how an evaluation was made, now.

    Args:
        found: The verifiers.
        scores: The file or folder of the scores of each; None where they were not kept.
        data: The folder of photos, if one was given.
        selection: The pairs that were scored here, if any were.
        groups: The file of groups, if one was given.
        families: The file of families, if one was given.
        factors: The file of factors, or `faces`, if given.
    """
    pairs = found[0].pairs
    files = [None if path is None else str(path) for path in (groups, families, factors)]
    paths = [Path(path) for path in (*scores, *files) if path is not None]
    return EvaluationRecord(
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        data=None if data is None else str(data),
        photos_sha256=pairs.origin.photos_sha256 if pairs.origin else None,
        photos=len({*pairs.left, *pairs.right}) if pairs.has_names else None,
        protocol=None if selection is None else selection.protocol,
        scores=[*scores],
        groups=files[0],
        families=files[1],
        factors=files[2],
        sha256={str(path): file_sha256(path) for path in paths if path.is_file()},
    )


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
    if first.acquisition is not None and (fta := first.acquisition.fta).count:
        photos, place = (
            f", {counted(fta.of or 0, 'photo')}",
            f"{place}, {record.photos or 0:,} used",
        )
    sums = record.photos_sha256 and f"SHA-256 {record.photos_sha256[:12]}"
    facts: list[tuple[str, object]] = []
    for one in found:
        facts += _about_verifier(one.summary)
    facts += [
        ("On whom", f"{people}{photos}{place}"),
        ("Photos", sums),
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
    return facts_of("statement", "Test report", facts, note)


def _about_verifier(summary: Summary) -> Iterator[tuple[str, object]]:
    """Yield what a verifier is, who chose its thresholds, and its results."""
    about, point = summary.about, summary.default_point
    scored = about.scored_by or "scores of unknown origin"
    name = "" if scored == about.name else f"{about.name}: "
    yield "What was tested", f"{name}{scored}{_digests(about)}"
    ends = " to ".join(f"{end:.6g}" for end in thresholds_of(summary, point))
    chosen, is_own = SOURCES[summary.threshold_source], summary.verify_point is not None
    on = f", set on {about.thresholds_set_on}" if is_own and about.thresholds_set_on else ""
    yield "Threshold", f"{ends} ({point.label}), {chosen}{on}"
    for name, rate in error_rates(point.errors).items():
        yield f"{name[0].upper()}{name[1:]}", _with_count(rate)
    if (fmr := point.errors.fmr) is not None:
        yield "This test shows", f"FMR of at most {100 * fmr.interval[1]:.3g} %"
    yield accuracy_label(summary), summary.balanced_accuracy
    yield "Cllr, bits", summary.cllr
    yield "Failures to acquire (FTA)", acquisition_cell(summary.acquisition)
    for name, gap in differentials(summary).items():
        ratio, is_sure = gap.worst_to_best, gap.larger_than_chance
        chance = "larger than chance" if is_sure else "may be chance"
        text = f"{ratio.larger} to {ratio.smaller}: {ratio_cell(ratio).text} times, {chance}"
        yield f"Largest difference of groups, {name}", text


def _with_count(rate: Rate | None) -> Cell | Rate | None:
    """Return a rate with how often it was seen, where that is known."""
    if rate is None or rate.count is None:
        return rate
    made = cell(rate)
    return made._replace(text=f"{made.text}; {rate.count:,} of {rate.of or 0:,}")


def _digests(about: About) -> str:
    """Return the beginning of the SHA-256 of a verifier's network and of its manifest."""
    known = {"network": about.network_sha256, "manifest": about.manifest_sha256}
    return "".join(f", {name} {digest[:12]}" for name, digest in known.items() if digest)


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
        ("SHA-256 of the sums and names of the photos", record.photos_sha256),
        *(
            (f"SHA-256 of the manifest of {one.summary.about.name}", digest)
            for one in found
            if (digest := one.summary.about.manifest_sha256)
        ),
        *((f"SHA-256 of {file}", digest) for file, digest in record.sha256.items()),
    ]
    return facts_of("history", "How this was made", facts)


def _origin(summary: Summary) -> str:
    """Return in words where the scores of a verifier come from."""
    about = summary.about
    if about.scored_by is None:
        return "of unknown origin"
    return f"by {about.scored_by}{_digests(about)}"
