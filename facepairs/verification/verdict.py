"""`Verdict`: what comparing two faces gave, with the threshold and the errors to expect there."""

import math
from dataclasses import replace

import msgspec

from facepairs.bundles.error_profile import EQUAL_PRIORS, describe_prior
from facepairs.bundles.model import Model
from facepairs.bundles.rates import OperatingPoint
from facepairs.errors import BadData
from facepairs.photos.face_sample import FaceResult, FaceSample
from facepairs.photos.hints import Hint
from facepairs.support.results import Result

Rows = list[tuple[str, str]]  # label and text
SEVERAL_FACES, SAME_CONTENT = "several-faces", "same-content"  # kinds of hints on a pair

NOT_CONFIRMED = "probably one person, but below the threshold"


class Verdict(Result, frozen=True, kw_only=True, dict=True):
    """The result of `Verifier.verify`; true in an `if` when both photos show one person.

    Attributes:
        words: `same person`, `different people`, or `not confirmed`, in between: a score below the
            threshold, although one person is more likely than two. In JSON it is called `verdict`.
        same: score >= threshold; None without a threshold.
        probability: P(same person) at `prior`; None without a calibration.
        prior: Share of genuine pairs among those that are compared, for which `probability` holds.
        log10_likelihood_ratio: How many times as likely this score is of one person as of two, as a
            decimal logarithm, whatever the prior; None without a calibration.
        score: The network's score; higher is more alike.
        point: The threshold on the score, what it promises, and the errors measured at it. In JSON
            it is called `operating_point`.
        left: The face of the first photo and its quality hints; None for a score alone.
        right: The face of the second photo.
        model: The model's place, such as `default`.
        description: The verdict in rows of text; only if it was asked for.
    """

    words: str = msgspec.field(name="verdict")
    same: bool | None
    probability: float | None
    prior: float
    log10_likelihood_ratio: float | None
    score: float
    point: OperatingPoint = msgspec.field(name="operating_point")
    left: FaceResult | None = None
    right: FaceResult | None = None
    model: str
    description: list[tuple[str, str]] | msgspec.UnsetType = msgspec.UNSET

    @classmethod
    def of(
        cls,
        model: Model,
        score: float,
        point: OperatingPoint,
        prior: float = EQUAL_PRIORS,
        faces: tuple[FaceSample, FaceSample] | None = None,
    ) -> "Verdict":
        """Return the verdict for a score: whether it reaches a threshold, and its probability."""
        calibration = model.profile.calibration
        probability = float(calibration.probability(score, prior)) if calibration else None
        ratio = float(calibration.log_likelihood_ratio(score)) if calibration else None
        same = None if point.threshold is None else score >= point.threshold
        left, right = (face.to_result() for face in faces) if faces else (None, None)
        verdict = cls(
            words=_words(same, probability),
            same=same,
            probability=probability,
            prior=prior,
            log10_likelihood_ratio=None if ratio is None else ratio / math.log(10),
            score=score,
            point=point,
            left=left,
            right=right,
            model=model.place,
        )
        # For notebooks: no field, because images of people belong in no result.
        verdict.__dict__["crops"] = [face.crop for face in faces or () if face.crop is not None]
        return verdict

    def __bool__(self) -> bool:
        """Return `same`; raise BadData where it is None. A verdict must not be true by default."""
        if self.same is None:
            raise BadData("without a threshold there is no verdict; give one, or use the score")
        return self.same

    @property
    def threshold(self) -> float | None:
        """The threshold on the score; None for an external embedder without one."""
        return self.point.threshold

    def describe_probability(self) -> str:
        """Return the probability and its prior in words: `0.970 (at equal priors)`."""
        if self.probability is None:
            return "none: not calibrated"
        edge = f"{self.probability:.3f}"
        edge = {"1.000": "above 0.999", "0.000": "below 0.001"}.get(edge, edge)
        return f"{edge} (at {describe_prior(self.prior)})"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: both faces as the network saw them, and the verdict."""
        from facepairs.support.html import html_image, html_table

        crops = self.__dict__.get("crops", ())
        images = (html_image(crop, side) for crop, side in zip(crops, "AB", strict=False))
        return " ".join(images) + html_table(verdict_rows(self))


def _words(same: bool | None, probability: float | None) -> str:
    if same is None:
        return "none: no threshold"
    if same:
        return "same person"
    likely = probability is not None and probability >= 0.5
    return "not confirmed" if likely else "different people"


def with_hint_of_others(face: FaceSample, chosen: int | None) -> FaceSample:
    """Return a face with the hint SEVERAL_FACES if it was not chosen among several.

    Args:
        face: The face.
        chosen: The number that the user gave; None without one.
    """
    if chosen is not None or face.faces in (None, 1):
        return face
    text = f"shows {face.faces} faces, the most prominent was used"
    return replace(face, hints=(*face.hints, Hint(SEVERAL_FACES, text)))


def are_copies(left: FaceSample, right: FaceSample) -> bool:
    """Return whether two faces are one face of one file, or of a file and its copy."""
    is_known = left is right or bool(left.digest)  # an image in memory is not hashed
    return is_known and (left.digest, left.number) == (right.digest, right.number)


def with_hint_of_copies(left: FaceSample, right: FaceSample) -> tuple[FaceSample, FaceSample]:
    """Return two faces with the hint SAME_CONTENT if they are one face of one file."""
    if not are_copies(left, right):
        return left, right
    hint = Hint(SAME_CONTENT, "a copy of the other photo, so a match says nothing")
    return replace(left, hints=(*left.hints, hint)), replace(right, hints=(*right.hints, hint))


def verdict_rows(verdict: Verdict) -> Rows:
    """Return the verdict, the probability, the errors to expect, the score, and both faces."""
    point, score = verdict.point, f"{verdict.score:.4f}"
    if point.threshold is not None:
        score += f" (threshold {point.threshold:.4f}: {point.label})"
    unsure = verdict.words == "not confirmed"
    sides = (("A", verdict.left), ("B", verdict.right))
    return [
        ("verdict", verdict.words + (f": {NOT_CONFIRMED}" if unsure else "")),
        ("probability", verdict.describe_probability()),
        *error_rows(verdict.point),
        ("score", score),
        *((name, face.description) for name, face in sides if face),
    ]


def error_rows(point: OperatingPoint) -> Rows:
    """Return the errors at the threshold, strangers and genuine pairs on a line each."""
    first, *others = point.lines()
    known = "at this threshold " if point.errors.fmr else ""
    return [("errors", known + first), *(("", line) for line in others)]


def threshold_text(point: OperatingPoint) -> str:
    """Return a threshold in words: `0.9238 (FMR 1 % among look-alikes)`."""
    return "none" if point.threshold is None else f"{point.threshold:.4f} ({point.label})"
