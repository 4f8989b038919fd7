"""The operating point: the threshold that decides, and what is known of its errors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from facepairs.bundles.error_table import (
    ErrorTable,
    ExpectedErrors,
    MeasuredRate,
    smallest_fmr,
)
from facepairs.bundles.thresholds import FmrThreshold
from facepairs.bundles.words import one_in
from facepairs.errors import BadConfig, NotEnough
from facepairs.support.words import counted

BALANCED, GIVEN, GALLERY = "balanced", "threshold", "gallery"
NOTHING_KNOWN = ExpectedErrors()


class HasThresholds(Protocol):
    """What is read of a bundle or an external embedder."""

    @property
    def threshold(self) -> float | None: ...
    @property
    def thresholds(self) -> Sequence[FmrThreshold]: ...
    @property
    def operating_point(self) -> float | None: ...
    @property
    def errors(self) -> ErrorTable | None: ...


@dataclass(frozen=True)
class OperatingPoint:
    """A threshold on the score (accept from there on), and its errors.

    Attributes:
        threshold: None for an external embedder without one.
        name: `balanced` (probability one half), `threshold` (one that was given), `gallery` (by
            the size of a gallery), or a promise such as `fmr-0.01`.
        target: The entry for the false match rate that is promised; None without a promise.
        errors: What was measured at the threshold.
        measured_on: On which pairs, in words; "" where nothing was measured.
    """

    threshold: float | None
    name: str = GIVEN
    target: FmrThreshold | None = None
    errors: ExpectedErrors = NOTHING_KNOWN
    measured_on: str = ""

    def for_face(self, errors: ErrorTable | None, side_px: float) -> "OperatingPoint":
        """Return the same threshold with the errors of pairs whose smaller face has that side.

        Args:
            errors: Those of the model.
            side_px: Side of the square around the face, from the brows to the chin.
        """
        table = errors and errors.for_face(side_px)
        if table is None or table is errors or self.threshold is None:
            return self
        return replace(self, errors=table.at(self.threshold), measured_on=table.measured_on)

    @property
    def max_fmr(self) -> float | None:
        """The false match rate that is promised, or None."""
        return self.target.fmr if self.target else None

    @property
    def label(self) -> str:
        """The name in words: `balanced`, `FMR 1 % among look-alikes`, …"""
        if self.target is None:
            return {GIVEN: "the threshold given", GALLERY: "by the gallery's size"}.get(
                self.name, self.name
            )
        among = " among look-alikes" if self.target.among == "look-alikes" else ""
        return f"FMR {100 * self.target.fmr:g} %{among}"

    def describe(self) -> str:
        """Return the errors in words, with the pairs that they were measured on."""
        fmr, alike, fnmr = self.errors.fmr, self.errors.lookalike_fmr, self.errors.fnmr
        if fmr is None:
            return "unknown: this model brings no measured errors"
        text = f"{one_in(fmr, 'strangers')} would pass"
        if alike is not None:
            text += f", {one_in(alike, 'of those who look alike')}"
        if fnmr is not None:
            text += f"; {one_in(fnmr, 'genuine pairs')} would be missed"
        return f"{text} ({self.measured_on})" if self.measured_on else text

    def to_json(self) -> dict[str, Any]:
        """Return a plain dict; what is not known is None."""
        rates = {
            "fmr": self.errors.fmr,
            "lookalike_fmr": self.errors.lookalike_fmr,
            "fnmr": self.errors.fnmr,
        }
        values: dict[str, Any] = {
            "operating_point": self.name,
            "threshold": self.threshold,
            "max_fmr": self.max_fmr,
        }
        for name, rate in rates.items():
            values[name] = rate.rate if rate else None
            values[f"{name}_interval"] = list(rate.interval) if rate else None
        return {**values, "measured_on": self.measured_on or None}


def operating_point(
    model: HasThresholds,
    threshold: float | None = None,
    max_fmr: float | None = None,
    balanced: bool = False,
) -> OperatingPoint:
    """Choose a threshold; without a wish, the one that the model promises by default.

    Args:
        model: A bundle or an external embedder.
        threshold: A score.
        max_fmr: A false match rate, 0 to 1, for which the model has a threshold.
        balanced: The threshold at which the probability is one half.

    Raises:
        BadConfig: More than one wish is given, `threshold` is not finite, or the model has no
            threshold for `max_fmr`.
    """
    if (threshold is not None) + (max_fmr is not None) + balanced > 1:
        raise BadConfig("threshold, max FMR and balanced exclude each other; give one of them")
    if threshold is not None:
        if not math.isfinite(threshold):
            raise BadConfig(f"the threshold is {threshold}, not a finite number; give a score")
        return _point(model, float(threshold), GIVEN)
    promise = model.operating_point if max_fmr is None and not balanced else max_fmr
    if promise is None:
        return _point(model, model.threshold, BALANCED)
    for entry in model.thresholds:
        if math.isclose(entry.fmr, promise, rel_tol=1e-9):
            if entry.threshold is None:
                raise BadConfig(
                    f"this model cannot promise FMR {entry.fmr:g} "
                    f"({entry.reason or 'reason not recorded'}); {_supported_rates(model)}"
                )
            return _point(model, entry.threshold, f"fmr-{entry.fmr:g}", entry)
    raise BadConfig(f"this model has no threshold for FMR {promise:g}; {_supported_rates(model)}")


def gallery_point(model: HasThresholds, point: OperatingPoint, photos: int) -> OperatingPoint:
    """Return a threshold for searching a gallery: at most one false match expected in it.

    It is never below that of `point`. Where the measured pairs are too few for a gallery of this
    size, it is the strictest that they support.

    Args:
        model: A bundle or an external embedder; without measured errors, `point` is returned.
        point: The threshold for a single pair.
        photos: Number of photos in the gallery, at least 1.
    """
    if model.errors is None or point.threshold is None:
        return point
    threshold = model.errors.threshold_for(1 / photos)
    return point if threshold <= point.threshold else _point(model, threshold, GALLERY)


def identification_point(model: HasThresholds, max_fpir: float, photos: int) -> OperatingPoint:
    """Return a threshold at which few strangers are taken for somebody in a gallery.

    A stranger is compared with every photo, so the share of strangers who match any of them is at
    most the false match rate times the number of photos.

    Args:
        model: A bundle or an external embedder; without measured errors, there is no threshold.
        max_fpir: The false-positive identification rate to keep to, in (0, 1].
        photos: Number of photos in the gallery, at least 1.

    Raises:
        BadConfig: `max_fpir` is outside (0, 1].
        NotEnough: The measured pairs are too few; the message says what they support.
    """
    if not 0 < max_fpir <= 1:
        raise BadConfig(
            f"max FPIR is {max_fpir:g}; give the share of strangers who may be taken for somebody "
            "in the gallery, such as 0.01"
        )
    errors = model.errors
    if errors is None:
        return OperatingPoint(None)
    fmr, least = max_fpir / photos, smallest_fmr(errors.impostor_pairs)
    if fmr < least:
        possible = math.ceil(1e4 * least * photos) / 1e4
        wider = f"give {possible:g} or more, " if possible <= 1 else "give "
        raise NotEnough(
            f"max FPIR {max_fpir:g} among {counted(photos, 'photo')} needs a false match rate of "
            f"{fmr:.2g}, but {errors.impostor_pairs:,} pairs of strangers ({errors.measured_on}) "
            f"support {least:.2g} at best; {wider}a threshold, or a model calibrated on more pairs"
        )
    return _point(model, errors.threshold_for(fmr), GALLERY)


def _point(
    model: HasThresholds, threshold: float | None, name: str, entry: FmrThreshold | None = None
) -> OperatingPoint:
    if threshold is not None and model.errors is not None:
        errors, measured_on = model.errors.at(threshold), model.errors.measured_on
        return OperatingPoint(threshold, name, entry, errors, measured_on)
    return OperatingPoint(threshold, name, entry, _errors_of(entry))


def _errors_of(entry: FmrThreshold | None) -> ExpectedErrors:
    """Return what a row of an older bundle, which has no table of errors, tells."""
    if entry is None:
        return ExpectedErrors()
    fmr, fnmr = entry.measured_fmr, entry.fnmr
    return ExpectedErrors(
        fmr=MeasuredRate(fmr, *entry.fmr_interval) if fmr is not None and entry.fmr_interval
        else None,
        fnmr=MeasuredRate(fnmr, *entry.fnmr_interval) if fnmr is not None and entry.fnmr_interval
        else None,
    )  # fmt: skip


def _supported_rates(model: HasThresholds) -> str:
    rates = [f"{entry.fmr:g}" for entry in model.thresholds if entry.threshold is not None]
    return f"it has thresholds for {', '.join(rates)}" if rates else "it has none; give a threshold"
