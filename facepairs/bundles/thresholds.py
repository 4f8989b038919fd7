"""The threshold that decides: the model's own, one that is given, or the one for a target FMR."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from facepairs.bundles.calibration import Count, Finite, Share
from facepairs.errors import BadConfig


class FmrThreshold(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A threshold for a target false match rate, and the errors measured at it.

    Attributes:
        fmr: The target FMR, 0 to 1.
        threshold: Accept scores from here on; None when the pairs were too few for this FMR.
        measured_fmr: FMR measured on the impostor pairs that chose the threshold.
        fmr_interval: 95 % interval of `measured_fmr`.
        fnmr: False non-match rate on the genuine pairs.
        fnmr_interval: 95 % interval of `fnmr`.
        genuine_pairs: Number of genuine pairs.
        impostor_pairs: Number of impostor pairs.
        reason: Why there is no threshold.
    """

    fmr: Share
    threshold: Finite | None
    measured_fmr: Share | None = None
    fmr_interval: tuple[Share, Share] | None = None
    fnmr: Share | None = None
    fnmr_interval: tuple[Share, Share] | None = None
    genuine_pairs: Count | None = None
    impostor_pairs: Count | None = None
    reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the row as a manifest holds it: a plain dict without what is unknown."""
        row: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return row


class HasThresholds(Protocol):
    """What `operating_point` reads of a bundle or an external embedder."""

    @property
    def threshold(self) -> float | None: ...
    @property
    def thresholds(self) -> Sequence[FmrThreshold]: ...


@dataclass(frozen=True)
class OperatingPoint:
    """A threshold on the score (accept from there on), and what is known of its errors.

    Attributes:
        threshold: None for an external embedder without one.
        target: The entry for the target FMR that was asked for; None when none was.
    """

    threshold: float | None
    target: FmrThreshold | None = None

    @property
    def max_fmr(self) -> float | None:
        """The target FMR, or None."""
        return self.target.fmr if self.target else None

    def describe(self) -> str:
        """Return the target FMR, the measured interval and its pairs in words; "" without one."""
        if self.target is None:
            return ""
        interval = "interval unknown"
        if self.target.fmr_interval:
            low, high = (f"{100 * value:.2g} %" for value in self.target.fmr_interval)
            interval = f"95 % interval {low} to {high}"
        count = self.target.impostor_pairs
        pairs = "" if count is None else f", {count:,} impostor pairs"
        return f"FMR at most {100 * self.target.fmr:g} % ({interval}{pairs})"

    def to_json(self) -> dict[str, Any]:
        """Return a plain dict; it holds the threshold alone when no FMR was asked for."""
        if self.target is None:
            return {"threshold": self.threshold}
        names = ("measured_fmr", "fmr_interval", "genuine_pairs", "impostor_pairs")
        row = self.target.to_json()
        rates = {name: row.get(name) for name in names}
        return {"threshold": self.threshold, "max_fmr": self.target.fmr, **rates}


def operating_point(
    model: HasThresholds, threshold: float | None = None, max_fmr: float | None = None
) -> OperatingPoint:
    """Choose a threshold: `threshold` if given, the model's for `max_fmr`, or else its own.

    Args:
        model: A bundle or an external embedder.
        threshold: A score.
        max_fmr: A false match rate, 0 to 1, for which the model has a threshold.

    Raises:
        BadConfig: Both are given, `threshold` is not finite, or the model has no threshold for
            `max_fmr`.
    """
    if max_fmr is None:
        if threshold is None:
            return OperatingPoint(model.threshold)
        if not math.isfinite(threshold):
            raise BadConfig(f"the threshold is {threshold}, not a finite number; give a score")
        return OperatingPoint(float(threshold))
    if threshold is not None:
        raise BadConfig("a threshold and a max_fmr exclude each other; give one of them")
    for entry in model.thresholds:
        if math.isclose(entry.fmr, max_fmr, rel_tol=1e-9):
            if entry.threshold is None:
                raise BadConfig(
                    f"this model cannot promise FMR {entry.fmr:g} "
                    f"({entry.reason or 'reason not recorded'}); {_supported_rates(model)}"
                )
            return OperatingPoint(entry.threshold, entry)
    raise BadConfig(f"this model has no threshold for FMR {max_fmr:g}; {_supported_rates(model)}")


def _supported_rates(model: HasThresholds) -> str:
    rates = [f"{entry.fmr:g}" for entry in model.thresholds if entry.threshold is not None]
    return f"it has thresholds for {', '.join(rates)}" if rates else "it has none; give a threshold"
