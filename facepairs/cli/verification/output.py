"""Format what `facepairs verify` found: rows of text, and objects for JSON."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from facepairs.support.words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from facepairs.bundles.rates import OperatingPoint
    from facepairs.verification.ranking import Match, Ranking
    from facepairs.verification.score_list import PairsReport
    from facepairs.verification.verdict import Verdict

Rows = list[tuple[str, str]]
MAX_FAILURES_SHOWN = 5
MATCH = {True: "yes", False: "no", None: ""}


def comparison_table(verdicts: "Sequence[Verdict]", top: int | None) -> list[list[str]]:
    """Return the `top` best comparisons of faces, located by their boxes; None for all."""
    best_first = sorted(verdicts, key=lambda one: -one.score)[:top]
    rows = [
        [
            str(rank),
            f"{one.score:.4f}",
            MATCH[one.same],
            *(face.describe_box() if face else "" for face in (one.left, one.right)),
        ]
        for rank, one in enumerate(best_first, 1)
    ]
    return [["rank", "score", "match", "face of A", "face of B"], *rows]


def verdict_warnings(verdict: "Verdict", left: "Path", right: "Path") -> Iterator[str]:
    """Yield what makes the photos hard to judge, or the verdict hard to believe."""
    for path, face in ((left, verdict.left), (right, verdict.right)):
        for hint in face.hints if face else ():
            yield f"warning: {path}: {hint.text}"
    if verdict.same and verdict.probability is not None and verdict.probability < 0.5:
        yield (
            "warning: by the probability these are more likely two people, but the threshold is so "
            "low that they pass; for a stricter one: --max-fmr or --threshold"
        )


def batch_rows(report: "PairsReport", point: "OperatingPoint", prior: str) -> Rows:
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
    """Return how many photos match, and how many would by chance."""
    photos = counted(len(ranking.compared), "photo")
    rows = [("searched", photos)]
    if ranking.matches is not None:
        rows.append(("matches", f"{ranking.matches:,}"))
    expected = ranking.expected
    text = expected.describe("photos") if expected else ranking.point.describe()
    return [*rows, ("false matches", text), *_threshold_rows(ranking.point, errors=False)]


def ranking_table(ranking: "Ranking", top: int) -> list[list[str]]:
    """Return the header and the `top` best photos."""
    rows = [
        [str(one.rank), f"{one.score:.4f}", _match(one), one.path] for one in ranking.compared[:top]
    ]
    return [["rank", "score", "match", "photo"], *rows]


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
