"""What the commands that compare faces share: their photos, warnings, and rows of text."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from facepairs.cli.shared.output import NEGATIVE, OK, UNDECIDED, log
from facepairs.errors import BadData
from facepairs.support.words import counted

if TYPE_CHECKING:
    from facepairs.bundles.rates import OperatingPoint
    from facepairs.verification.ranking import Match, Ranking
    from facepairs.verification.score_list import PairsReport
    from facepairs.verification.verdict import Verdict
    from facepairs.verification.verifier import Verifier

Rows = list[tuple[str, str]]
SCHEMA = 3
EXIT_CODES = {True: OK, False: NEGATIVE, None: UNDECIDED}
MAX_FAILURES_SHOWN = 5
MATCH = {True: "yes", False: "no", None: ""}


def photo_path(word: str) -> Path:
    """Return the path of a photo; raise BadData for what is none but is often tried."""
    if word == "-":
        raise BadData("-: standard input is not read; save the photo and give its file")
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+://", word):
        raise BadData(f"{word}: not a file of this machine; download the photo and give its file")
    if Path(word).is_dir():
        raise BadData(
            f"{word}: a folder; give a photo, or look for a person in all photos of the folder: "
            f"facepairs search A.jpg {word}"
        )
    return Path(word)


def note_source(verifier: "Verifier", json: bool) -> None:
    """Tell people, not programs, how to have errors that were measured on photos like theirs."""
    from facepairs.verification.loading import model_name, source_note

    note = source_note(verifier.bundle, model_name(verifier.bundle))
    if note and not json:
        log(note)


def warn_of_known(verifier: "Verifier", bundle: str, photos: Iterable[Path]) -> None:
    """Warn of people on whom the model was trained or calibrated, by their photos' folders."""
    from facepairs.data.pairs import person_name

    names = sorted({person_name(str(photo.absolute())) for photo in photos})
    known = [name for name, known in zip(names, verifier.bundle.knows(names), strict=True) if known]
    if known:
        people = " and ".join(known) if len(known) < 3 else f"{len(known):,} of these people"
        log(
            f"warning: {bundle} was trained or calibrated on {people}: with others it may make "
            "more errors"
        )


def verdict_warnings(
    verdict: "Verdict", left: Path, right: Path, chosen: bool = False
) -> Iterator[str]:
    """Yield what makes the photos hard to judge, or the verdict hard to believe.

    Args:
        verdict: The verdict with both faces.
        left: The first photo.
        right: The second photo.
        chosen: Whether the user has chosen the faces.
    """
    for path, face, other in (
        (left, verdict.left, "--face 2"),
        (right, verdict.right, "--face 1 --face 2"),
    ):
        if face and (face.faces or 0) > 1 and not chosen:
            yield (
                f"warning: {path}: {face.faces} faces: perhaps not the one you mean; for the next: "
                f"{other}"
            )
        for hint in face.hints if face else ():
            yield f"warning: {path}: {hint.text}"
    if verdict.same and verdict.probability is not None and verdict.probability < 0.5:
        yield (
            "warning: by the probability these are more likely two people, but the threshold is so "
            "low that they pass; for a stricter one: --max-fmr or --threshold"
        )


def report_warnings(report: "PairsReport", pairs: Path, out: Path, bundle: str) -> Iterator[str]:
    """Yield what a reader of scores must know."""
    if report.failed:
        counts = f"{report.failed:,} of {report.pairs:,} pairs"
        advice = f"; --root names the folder that the paths in {pairs} count from"
        advice = advice if 0 < report.images == report.images_failed else ""
        yield f"warning: {counts} could not be scored; see column error of {out}{advice}"
    if report.same_content:
        yield (
            f"warning: {counted(report.same_content, 'pair')} of a photo and itself or a copy "
            "(hint same-content): that they match says nothing"
        )
    if report.pairs_with_known_people:
        yield (
            f"warning: {counted(report.pairs_with_known_people, 'pair')} with people that "
            f"{bundle} was trained or calibrated on: with others it may make more errors"
        )


def report_rows(report: "PairsReport", point: "OperatingPoint", prior: str) -> Rows:
    """Return the counts of a scored list of pairs; `prior` names that of the probabilities."""
    rows = [("pairs", f"{report.pairs:,}"), ("images", f"{report.images:,}, each read once")]
    if report.same is not None:
        rows.append(("same person", f"{report.same:,}"))
    return [
        *rows,
        ("failed", f"{report.failed:,}"),
        ("several faces", f"{counted(report.several_faces, 'image')}: the most prominent was used"),
        *((f"hint: {kind}", counted(images, "image")) for kind, images in report.hints.items()),
        ("seconds", f"{report.seconds:.1f}"),
        *_threshold_rows(point),
        ("probability", f"at {prior}"),
    ]


def ranking_rows(ranking: "Ranking") -> Rows:
    """Return how many photos match, and how many faces would by chance."""
    photos, faces = counted(len(ranking.compared), "photo"), counted(ranking.faces, "face")
    rows = [("searched", f"{faces} in {photos}")]
    if ranking.matches is not None:
        rows.append(("matches", counted(ranking.matches, "photo")))
    expected = ranking.expected
    text = expected.describe("faces") if expected else ranking.point.describe()
    return [*rows, ("false matches", text), *_threshold_rows(ranking.point, errors=False)]


def ranking_table(ranking: "Ranking", top: int) -> list[list[str]]:
    """Return the header and the `top` best photos."""
    rows = [
        [str(one.rank), f"{one.score:.4f}", _match(one), one.path, one.describe_face()]
        for one in ranking.compared[:top]
    ]
    return [["rank", "score", "match", "photo", "face"], *rows]


def ranking_warnings(ranking: "Ranking") -> Iterator[str]:
    """Yield what a reader of the ranking must know, and the photos that could not be used."""
    if ranking.copies:
        yield (
            f"warning: {counted(ranking.copies, 'photo')} with the same content as "
            f"{ranking.photo}: that they match says nothing"
        )
    failed = len(ranking.failed)
    if not failed:
        return
    total = counted(failed + len(ranking.compared), "photo")
    yield f"warning: {failed:,} of {total} could not be used:"
    for _, error in ranking.failed[:MAX_FAILURES_SHOWN]:
        yield f"  {error}"
    if failed > MAX_FAILURES_SHOWN:
        yield f"  and {failed - MAX_FAILURES_SHOWN:,} more; --json and --out list them all"


def _match(one: "Match") -> str:
    return "copy" if one.same_content else MATCH[one.match]


def _threshold_rows(point: "OperatingPoint", errors: bool = True) -> Rows:
    from facepairs.verification.verdict import error_rows

    threshold = "none" if point.threshold is None else f"{point.threshold:.4f} ({point.label})"
    return [("threshold", threshold), *(error_rows(point) if errors else [])]
