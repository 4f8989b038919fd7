"""A verdict in rows of text, for the command line and the web page."""

from facepairs.bundles.default import DEFAULT
from facepairs.bundles.operating_point import OperatingPoint
from facepairs.support.words import command_line
from facepairs.verification.loading import DLIB, Model
from facepairs.verification.verdict import NOT_CONFIRMED, Verdict

Rows = list[tuple[str, str]]


def verdict_rows(verdict: Verdict) -> Rows:
    """Return the verdict on two photos, the best of some comparisons, and the face of each."""
    unsure = verdict.words == "not confirmed"
    sides = (("A", verdict.left), ("B", verdict.right))
    return [
        ("verdict", verdict.words + (f": {NOT_CONFIRMED}" if unsure else "")),
        *detail_rows(verdict),
        *((name, face.describe(verdict.chosen)) for name, face in sides if face),
    ]


def detail_rows(verdict: Verdict) -> Rows:
    """Return the probability, the errors to expect, and the score."""
    several = verdict.comparisons > 1
    return [
        ("probability", verdict.describe_probability()),
        *(_false_match_rows(verdict) if several else error_rows(verdict.point)),
        ("score", f"{verdict.score:.4f}{_threshold(verdict.point)}"),
    ]


def error_rows(point: OperatingPoint) -> Rows:
    """Return the errors at the threshold, strangers and genuine pairs on a line each."""
    known = "at this threshold " if point.errors.fmr else ""
    lines = f"{known}{point.describe()}".split("; ")
    labels = ["errors", *[""] * len(lines)]
    return list(zip(labels, lines, strict=False))


def source_note(model: Model, name: str) -> str:
    """Return how to measure errors on one's own photos; "" where they are."""
    if model.errors is not None and name not in (DEFAULT, DLIB):
        return ""
    known = "are not known for this model" if model.errors is None else "were measured on LFW"
    calibrate = command_line("calibrate", name, "photos/", "--out", "mine")
    return f"note: errors {known}; on your photos run: {calibrate}"


def _false_match_rows(verdict: Verdict) -> Rows:
    expected = verdict.expected_matches
    text = expected.describe("comparisons") if expected else verdict.point.describe()
    return [("false matches", text)]


def _threshold(point: OperatingPoint) -> str:
    if point.threshold is None:
        return ""
    return f" (threshold {point.threshold:.4f}: {point.label})"
