"""How an evaluation was made: what a reader must know to judge it, and to repeat it."""

import datetime
from collections.abc import Sequence
from pathlib import Path

import msgspec

from facepairs.evaluation.measurement import Measurement
from facepairs.evaluation.protocols import PairSelection
from facepairs.support.machine import package_versions
from facepairs.support.places import file_sha256
from facepairs.version import __version__

LIMITS = (
    "The rates are those of people and photos like these; others have others.",
    "Attacks with pictures, screens or masks were not tested (ISO/IEC 30107).",
    "When, where and by whom the photos were taken is not known to facepairs.",
)


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
