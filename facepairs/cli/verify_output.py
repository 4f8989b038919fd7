"""Format what `facepairs verify` found: rows of text, and objects for JSON."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from facepairs.bundles.operating_point import OperatingPoint
    from facepairs.verification.ranking import Match, Ranking
    from facepairs.verification.verifier import Verdict
    from facepairs.verification.verify_pairs import PairsReport

Rows = list[tuple[str, str]]
MAX_FAILURES_SHOWN = 5
DECISIONS = {True: "same person", False: "different people", None: "none: no threshold"}


def verdict_rows(verdict: "Verdict", point: "OperatingPoint", comparisons: int = 1) -> Rows:
    """Return the verdict on two photos, the best of some comparisons, and the face of each."""
    chosen = "the most prominent" if comparisons == 1 else "the best match"
    probability = "none: not calibrated"
    if verdict.probability is not None:
        probability = f"{verdict.probability:.3f} (calibrated, at equal priors)"
    threshold = "" if verdict.threshold is None else f" (threshold {verdict.threshold:.4f})"
    sides = (("A", verdict.left), ("B", verdict.right))
    return [
        ("verdict", DECISIONS[verdict.same]),
        ("probability", probability),
        ("score", f"{verdict.score:.4f}{threshold}"),
        *_rate_rows(point),
        *((name, face.describe(chosen)) for name, face in sides if face),
    ]


def comparison_rows(verdicts: "Sequence[Verdict]") -> Rows:
    """Return all comparisons of faces, best first, located by the corners of their boxes."""
    return [
        _score_row(
            verdict,
            " and ".join(face.describe_box() for face in (verdict.left, verdict.right) if face),
        )
        for verdict in sorted(verdicts, key=lambda one: -one.score)
    ]


def warnings_of(verdict: "Verdict", left: "Path", right: "Path") -> Iterator[str]:
    """Yield what makes the photos hard to judge."""
    for path, face in ((left, verdict.left), (right, verdict.right)):
        for hint in face.hints if face else ():
            yield f"warning: {path}: {hint.text}"


def verdict_json(verdict: "Verdict") -> dict[str, Any]:
    """Return a verdict as plain values."""
    return {
        "same": verdict.same,
        "probability": verdict.probability,
        "score": verdict.score,
        "faces": verdict.faces_json(),
    }


def batch_rows(report: "PairsReport", point: "OperatingPoint", out: str) -> Rows:
    """Return the counts of a scored list of pairs."""
    rows = [("pairs", f"{report.pairs:,}"), ("images", f"{report.images:,}, each read once")]
    if report.same is not None:
        rows.append(("same person", f"{report.same:,}"))
    return [
        *rows,
        ("failed", f"{report.failed:,}"),
        ("several faces", f"{report.several_faces:,} images: the most prominent was used"),
        *((f"hint: {kind}", f"{images:,} images") for kind, images in report.hints.items()),
        ("seconds", f"{report.seconds:.1f}"),
        *threshold_rows(point),
        ("scores", out),
    ]


def ranking_rows(ranking: "Ranking", top: int) -> Rows:
    """Return the `top` best matches."""
    return [_score_row(match, match.path) for match in ranking.matches[:top]]


def ranking_warnings(ranking: "Ranking") -> Iterator[str]:
    """Yield the photos that could not be used, the first few by name."""
    count = len(ranking.failed)
    if not count:
        return
    yield f"warning: {count:,} of {count + len(ranking.matches):,} photos could not be used:"
    for _, error in ranking.failed[:MAX_FAILURES_SHOWN]:
        yield f"  {error}"
    if count > MAX_FAILURES_SHOWN:
        yield f"  and {count - MAX_FAILURES_SHOWN:,} more; --json and --out list them all"


def threshold_rows(point: "OperatingPoint") -> Rows:
    """Return the threshold, and its false match rate where one was asked for."""
    threshold = "none" if point.threshold is None else f"{point.threshold:.4f}"
    return [("threshold", threshold), *_rate_rows(point)]


def _rate_rows(point: "OperatingPoint") -> Rows:
    return [("rate", point.describe())] if point.max_fmr is not None else []


def _score_row(verdict: "Verdict | Match", text: str) -> tuple[str, str]:
    probability = "" if verdict.probability is None else f"{verdict.probability:.3f}  "
    decision = "" if verdict.same is None else DECISIONS[verdict.same]
    return f"{verdict.score:.4f}", f"{probability}{decision:<16}  {text}"
