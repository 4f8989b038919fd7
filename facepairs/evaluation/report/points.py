"""The operating points of a verifier, with their errors on the pairs of a report."""

from dataclasses import dataclass

from facepairs.bundles.error_table import ExpectedErrors, MeasuredRate
from facepairs.bundles.operating_point import OperatingPoint
from facepairs.evaluation.measurement import OWN_THRESHOLD, Measurement
from facepairs.evaluation.metrics.arrays import Floats
from facepairs.evaluation.metrics.rates import error_rates
from facepairs.evaluation.metrics.summary import FROM_CALLER


@dataclass(frozen=True, kw_only=True)
class PointErrors:
    """A threshold with a name, and its errors.

    Attributes:
        label: Its name in words.
        set_by: Where it comes from.
        threshold, threshold_high: The same, unless parts of the pairs have their own.
        is_default: Whether `verify` decides with it.
        lookalike_fmr: None where no pairs are known to look alike.
    """

    label: str
    set_by: str
    threshold: float
    threshold_high: float
    is_default: bool
    fmr: MeasuredRate
    fnmr: MeasuredRate
    lookalike_fmr: MeasuredRate | None = None

    def describe(self) -> str:
        """Return the errors in words."""
        errors = ExpectedErrors(fmr=self.fmr, lookalike_fmr=self.lookalike_fmr, fnmr=self.fnmr)
        return OperatingPoint(self.threshold, errors=errors).describe()


def operating_points(one: Measurement) -> list[PointErrors]:
    """Return the point that decided, then those of the bundle, from lenient to strict."""
    source = one.summary.threshold_source
    label = "threshold given" if source == FROM_CALLER else "balanced"
    points = [_errors_at(one, label, source, one.threshold, is_default=not one.bundle_thresholds)]
    for row in one.bundle_thresholds:
        if row.threshold is not None:
            among = " among look-alikes" if row.among == "look-alikes" else ""
            label = f"FMR {100 * row.fmr:g} %{among}"
            threshold = one.threshold * 0 + row.threshold
            points.append(_errors_at(one, label, OWN_THRESHOLD, threshold, is_default=False))
    return points


def _errors_at(
    one: Measurement, label: str, set_by: str, threshold: Floats, *, is_default: bool
) -> PointErrors:
    rates = error_rates(one.scores.genuine, one.scores.score >= threshold)
    return PointErrors(
        label=label,
        set_by=set_by,
        threshold=float(threshold.min()),
        threshold_high=float(threshold.max()),
        is_default=is_default,
        fmr=MeasuredRate(rates.fmr, *rates.fmr_interval),
        fnmr=MeasuredRate(rates.fnmr, *rates.fnmr_interval),
    )
