"""`ErrorProfile`, the file `measured.json`: calibration, thresholds and errors of a verifier.

They are measured on people it was not trained on. Thresholds are chosen here: for a pair, for the
photos of a gallery, for the share of strangers who may be misidentified.
"""

import math
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from facepairs.bundles.manifest import parse_json_object
from facepairs.bundles.rates import (
    BALANCED,
    GALLERY,
    GIVEN,
    ErrorTable,
    Finite,
    OperatingPoint,
    Share,
    smallest_fmr,
)
from facepairs.errors import BadBundle, BadConfig, NotEnough
from facepairs.support.validation import validate
from facepairs.support.words import counted

MEASURED = "measured.json"
EQUAL_PRIORS = 0.5
Embeddings = npt.NDArray[np.float32]


def check_prior(prior: float) -> None:
    """Raise BadConfig for a prior outside (0, 1)."""
    if not 0 < prior < 1:
        raise BadConfig(
            f"the prior is {prior:g}; use the expected share of genuine pairs, between 0 and 1, "
            "such as 0.01",
            "prior",
        )


def describe_prior(prior: float) -> str:
    """Return a prior in words: `equal priors` or `prior 0.01`."""
    return "equal priors" if prior == EQUAL_PRIORS else f"prior {prior:g}"


class Calibration(msgspec.Struct, frozen=True, omit_defaults=True):
    """A logistic curve: P(genuine | score) = 1 / (1 + exp(-(scale * score + offset))).

    It is fitted for equally frequent genuine and impostor pairs.

    Attributes:
        scale: Finite and above 0.
        offset: Finite.
        lookalikes: Whether half of the strangers that it was fitted to look alike; if not, they
            were strangers at random.
        ece: Expected calibration error on pairs that it was not fitted to, cross-fitted; None
            where it was not measured.

    Raises:
        BadBundle: The curve does not rise, or a value is not finite.

    References:
        Platt, *Probabilistic Outputs for Support Vector Machines*, 1999.
    """

    scale: Finite
    offset: Finite
    lookalikes: bool = False
    ece: Share | None = None

    def __post_init__(self) -> None:
        """Refuse a curve that does not rise."""
        if not (0 < self.scale < math.inf and math.isfinite(self.threshold)):
            raise BadBundle(
                "a calibration needs a finite scale above 0 and a finite offset, not scale "
                f"{self.scale}, offset {self.offset}; calibrate again"
            )

    @property
    def threshold(self) -> float:
        """The score at which the probability is one half."""
        return -self.offset / self.scale

    def log_likelihood_ratio(self, score: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the natural logarithm of P(score | genuine) / P(score | impostor)."""
        with np.errstate(over="ignore"):  # a score of 1e308 has probability 1
            ratio: npt.NDArray[np.float64] = self.scale * np.asarray(score, np.float64)
        return ratio + self.offset

    def probability(
        self, score: npt.ArrayLike, prior: float = EQUAL_PRIORS
    ) -> npt.NDArray[np.float64]:
        """Return the probability, 0 to 1, of each score: float64 of the shape of `score`.

        Args:
            score: One score or an array.
            prior: Share of genuine pairs among the pairs that are compared, in (0, 1).

        Raises:
            BadConfig: The prior is outside (0, 1).
        """
        check_prior(prior)
        logit = self.log_likelihood_ratio(score) + math.log(prior / (1 - prior))
        small = np.exp(-np.abs(logit))  # at most 1, so it cannot overflow
        probability: npt.NDArray[np.float64] = np.where(logit >= 0, 1.0, small) / (1 + small)
        return probability


class SmallFaces(msgspec.Struct, frozen=True, kw_only=True):
    """Errors of pairs whose smaller face is below a size.

    Attributes:
        below_px: Side of the square around the smaller face, from the brows to the chin.
        errors: What was measured of them.
    """

    below_px: Annotated[float, Meta(gt=0)]
    errors: ErrorTable


class TurnedFaces(msgspec.Struct, frozen=True, kw_only=True):
    """Errors of pairs with a face that is turned sideways.

    Attributes:
        above_yaw: The more turned face's offset of the nose from the middle of the eyes, in eye
            distances, is at least this.
        errors: What was measured of them.
    """

    above_yaw: Annotated[float, Meta(gt=0)]
    errors: ErrorTable


class IncludedModelFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What only the included model has: neither training nor calibration measures it.

    Attributes:
        small_faces: Errors of pairs of small faces, the smallest first.
        turned_faces: Errors of pairs with a face turned sideways, the most turned first.
        cohort_width: Numbers in a row of `cohort`.
        cohort_content: The rows of `cohort` as little-endian float32.

    Raises:
        BadBundle: The cohort is damaged.
    """

    small_faces: tuple[SmallFaces, ...] = ()
    turned_faces: tuple[TurnedFaces, ...] = ()
    cohort_width: Annotated[int, Meta(ge=1, le=4096)]
    cohort_content: Annotated[bytes, Meta(min_length=4)]

    def __post_init__(self) -> None:
        """Refuse a cohort that cannot be used."""
        whole = len(self.cohort_content) % (4 * self.cohort_width) == 0
        if not whole or not np.isfinite(np.frombuffer(self.cohort_content, "<f4")).all():
            raise BadBundle("the cohort is damaged; copy the bundle again")

    @property
    def cohort(self) -> Embeddings:
        """Where embeddings crowd: float32[K, D], see `grouping.linkage`."""
        rows = np.frombuffer(self.cohort_content, "<f4").reshape(-1, self.cohort_width)
        return rows.astype(np.float32)


class ErrorProfile(msgspec.Struct, frozen=True, kw_only=True):
    """Probability, thresholds and errors of a verifier.

    Attributes:
        calibration: From a score to a probability; its threshold is the balanced one. None where
            nothing was measured: all the rest is empty, too.
        thresholds: Thresholds by the false match rate that they promise, without their errors,
            which are in `errors`.
        default_fmr: The target FMR that decides by default; None for the balanced threshold.
        errors: The errors at every threshold; None where they were not measured.
        own_errors: The same on the people whom `calibrate` was given last, if it kept the former
            calibration; else None.
        people: Hashes of the people on whom all this was measured. A bundle has them in
            `identities.json`.
        included: What only the included model has.
    """

    calibration: Calibration | None = None
    thresholds: tuple[OperatingPoint, ...] = ()
    default_fmr: Share | None = msgspec.field(name="promise", default=None)
    errors: ErrorTable | None = None
    own_errors: ErrorTable | None = None
    people: frozenset[str] = frozenset()
    included: IncludedModelFigures | None = None

    @property
    def cohort(self) -> Embeddings | None:
        """Where embeddings crowd: float32[K, D], see `grouping.linkage`; None if not measured."""
        return None if self.included is None else self.included.cohort

    @property
    def balanced_threshold(self) -> float | None:
        """Where the probability is one half; `operating_point` says which threshold decides."""
        return self.calibration.threshold if self.calibration else None

    def to_bytes(self) -> bytes:
        """Return the content of the file: the same bytes for the same figures."""
        values = {**msgspec.to_builtins(self), "people": sorted(self.people)}
        return msgspec.json.format(msgspec.json.encode(values), indent=0) + b"\n"

    def summary(self) -> dict[str, Any]:
        """Return plain values without the long lists of errors and people."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return {name: fields[name] for name in ("calibration", "thresholds", "promise")}


def parse_measured(data: bytes, path: Path) -> ErrorProfile:
    """Parse the content of `measured.json`; raise BadBundle if it is damaged."""
    values = parse_json_object(data, path)
    profile = validate(values, ErrorProfile, str(path), BadBundle, "calibrate again")
    if profile.calibration is None:
        raise BadBundle(f"{path}: calibration is missing; calibrate again")
    return profile


def operating_point(
    profile: ErrorProfile,
    threshold: float | None = None,
    max_fmr: float | None = None,
    balanced: bool = False,
) -> OperatingPoint:
    """Choose a threshold; by default, the one that the model promises.

    Args:
        profile: What was measured of the model.
        threshold: A score.
        max_fmr: A false match rate, 0 to 1, for which the model has a threshold.
        balanced: The threshold at which the probability is one half.

    Raises:
        BadConfig: More than one of them is given, `threshold` is not finite, or the model has no
            threshold for `max_fmr`.
    """
    if (threshold is not None) + (max_fmr is not None) + balanced > 1:
        raise BadConfig("give only one threshold", "threshold", "max_fmr", "balanced")
    if threshold is not None:
        if not math.isfinite(threshold):
            raise BadConfig(f"the threshold is {threshold}; use a finite score", "threshold")
        return _measured(profile, OperatingPoint(float(threshold), GIVEN))
    target = profile.default_fmr if max_fmr is None and not balanced else max_fmr
    if target is None:
        return _measured(profile, OperatingPoint(profile.balanced_threshold, BALANCED))
    for point in profile.thresholds:
        rate = point.max_fmr
        if rate is not None and math.isclose(rate, target):
            if point.threshold is None:
                reason = point.reason or "reason not recorded"
                raise _no_threshold(f"this model cannot promise FMR {rate:g} ({reason})", profile)
            return _measured(profile, point)
    raise _no_threshold(f"this model has no threshold for FMR {target:g}", profile)


def point_for_faces(
    profile: ErrorProfile, point: OperatingPoint, side_px: float, yaw: float
) -> OperatingPoint:
    """Return the same threshold with the errors of pairs of such faces.

    Where small faces and turned ones have been measured, those with more genuine pairs missed.

    Args:
        profile: What was measured of the model.
        point: The threshold.
        side_px: Side of the square around the smaller face, from the brows to the chin.
        yaw: How far the more turned face is turned, as `Face.yaw`.
    """
    figures = profile.included
    if figures is None or point.threshold is None:
        return point
    small = [row.errors for row in figures.small_faces if side_px < row.below_px]
    turned = [row.errors for row in figures.turned_faces if abs(yaw) >= row.above_yaw]
    found = [table.at(point.threshold) for table in (*small[:1], *turned[:1])]
    worst = max(
        found,
        key=lambda one: one.fnmr.value,  # type: ignore[union-attr]  # every table has it
        default=point.errors,
    )
    return msgspec.structs.replace(point, errors=worst)


def gallery_point(profile: ErrorProfile, point: OperatingPoint, photos: int) -> OperatingPoint:
    """Return a threshold for searching a gallery: at most one false match expected in it.

    It is never below that of `point`. Where the measured pairs are too few for a gallery of this
    size, it is the strictest that they support.

    Args:
        profile: What was measured of the model; without errors, `point` is returned.
        point: The threshold for a single pair.
        photos: Number of photos in the gallery, at least 1.
    """
    if profile.errors is None or point.threshold is None:
        return point
    threshold = profile.errors.threshold_for(1 / photos)
    if threshold <= point.threshold:
        return point
    return _measured(profile, OperatingPoint(threshold, GALLERY))


def identification_point(profile: ErrorProfile, max_fpir: float, photos: int) -> OperatingPoint:
    """Return a threshold at which few strangers are misidentified in a gallery.

    A stranger is compared with every photo, so the share of strangers who match any of them is at
    most the false match rate times the number of photos.

    Args:
        profile: What was measured of the model; without errors, there is no threshold.
        max_fpir: The false-positive identification rate to keep to, in (0, 1].
        photos: Number of photos in the gallery, at least 1.

    Raises:
        BadConfig: `max_fpir` is outside (0, 1].
        NotEnough: The measured pairs are too few; the message says what they support.
    """
    if not 0 < max_fpir <= 1:
        raise BadConfig(
            f"max FPIR is {max_fpir:g}; use the share of strangers who may be mistaken for people "
            "of the gallery, such as 0.01",
            "max_fpir",
        )
    table = profile.errors
    if table is None:
        return OperatingPoint(None, GALLERY)
    fmr, least = max_fpir / photos, smallest_fmr(table.impostor_pairs)
    if fmr < least:
        unit = 10.0 ** (math.floor(math.log10(least * photos)) - 1)  # to two digits, upwards
        kept = (math.floor(least * photos / unit) + 1) * unit
        larger = f"max FPIR {kept:.2g} or more, " if kept <= 1 else ""
        raise NotEnough(
            f"max FPIR {max_fpir:g} among {counted(photos, 'photo')} needs a false match rate of "
            f"{fmr:.2g}, but {table.impostor_pairs:,} pairs of strangers ({table.measured_on}) "
            f"support {least:.2g} at best; give {larger}a threshold, or a model measured on more "
            "pairs",
            "max_fpir",
            "threshold",
            "bundle",
        )
    return _measured(profile, OperatingPoint(table.threshold_for(fmr), GALLERY))


def _measured(profile: ErrorProfile, point: OperatingPoint) -> OperatingPoint:
    """Return a point with the errors that the model has there."""
    if point.threshold is None or profile.errors is None:
        return point
    errors, own = profile.errors.at(point.threshold), profile.own_errors
    own_errors = own.at(point.threshold) if own else None
    return msgspec.structs.replace(point, errors=errors, own_errors=own_errors)


def _no_threshold(problem: str, profile: ErrorProfile) -> BadConfig:
    """Return the error for a false match rate; it names those that have a threshold."""
    rates = [f"{point.max_fmr:g}" for point in profile.thresholds if point.threshold is not None]
    if not rates:
        return BadConfig(f"{problem}; it has no thresholds: give one", "threshold")
    return BadConfig(f"{problem}; it has thresholds for {', '.join(rates)}", "max_fmr")
