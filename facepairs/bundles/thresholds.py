"""Which threshold decides: the model's own, one that was given, or the one for a promised rate."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from facepairs.errors import BadBundle, BadConfig


class HasThresholds(Protocol):
    """What a bundle, or what stands for one, knows of thresholds."""

    @property
    def threshold(self) -> float | None: ...
    @property
    def thresholds(self) -> Sequence[Mapping[str, Any]]: ...


@dataclass(frozen=True)
class OperatingPoint:
    """A threshold on the score (accept from there on), and what is known of its errors.

    `max_fmr` is the false match rate it was chosen for; `measured_fmr` and `fmr_interval` (95 %)
    are those of the `impostor_pairs` it was chosen on. All but `threshold` are None where no rate
    was asked for or the bundle does not tell; `threshold` is None for an embedder without one.
    """

    threshold: float | None
    max_fmr: float | None = None
    measured_fmr: float | None = None
    fmr_interval: tuple[float, float] | None = None
    genuine_pairs: int | None = None
    impostor_pairs: int | None = None

    def told(self) -> str:
        """Say in words where a threshold for a rate comes from; empty without a rate."""
        if self.max_fmr is None:
            return ""
        low_high = "interval not told"
        if self.fmr_interval:
            low_high = "95 % interval {:.2g} to {:.2g}".format(*self.fmr_interval)
        pairs = "" if self.impostor_pairs is None else f", {self.impostor_pairs:,} impostor pairs"
        return f"FMR at most {self.max_fmr:g} ({low_high}{pairs})"

    def to_json(self) -> dict[str, Any]:
        """Give a plain dict; without a rate it holds the threshold alone."""
        if self.max_fmr is None:
            return {"threshold": self.threshold}
        return {
            "threshold": self.threshold,
            "max_fmr": self.max_fmr,
            "measured_fmr": self.measured_fmr,
            "fmr_interval": None if self.fmr_interval is None else list(self.fmr_interval),
            "genuine_pairs": self.genuine_pairs,
            "impostor_pairs": self.impostor_pairs,
        }


def operating_point(
    model: HasThresholds, threshold: float | None = None, max_fmr: float | None = None
) -> OperatingPoint:
    """Choose a threshold: `threshold` as given, the model's for `max_fmr`, or else its own.

    Raises BadConfig for both at once, a threshold that is no finite number, and a rate that the
    model has no threshold for; BadBundle where what it tells of the rate cannot be used.
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
        rate: Any = entry.get("fmr")
        if _is_number(rate) and math.isclose(rate, max_fmr, rel_tol=1e-9):
            return _point(entry, model)
    raise BadConfig(f"this model has no threshold for FMR {max_fmr:g}; {_supported(model)}")


def _point(entry: Mapping[str, Any], model: HasThresholds) -> OperatingPoint:
    rate, threshold = float(entry["fmr"]), entry.get("threshold")
    if threshold is None:
        reason = entry.get("reason") or "it does not say why"
        raise BadConfig(f"this model cannot promise FMR {rate:g} ({reason}); {_supported(model)}")
    measured, interval = entry.get("measured_fmr"), entry.get("fmr_interval")
    counts = [entry.get(name) for name in ("genuine_pairs", "impostor_pairs")]
    sound = (
        _is_number(threshold)
        and (measured is None or _is_number(measured))
        and (interval is None or _is_interval(interval))
        and all(count is None or (type(count) is int and count >= 0) for count in counts)
    )
    if not sound:
        raise BadBundle(
            f"thresholds: what the manifest tells of FMR {rate:g} cannot be used; calibrate again"
        )
    return OperatingPoint(
        float(threshold),
        rate,
        measured,
        None if interval is None else (float(interval[0]), float(interval[1])),
        *counts,
    )


def _supported(model: HasThresholds) -> str:
    rates = [entry for entry in model.thresholds if entry.get("threshold") is not None]
    told = ", ".join(f"{entry['fmr']:g}" for entry in rates if _is_number(entry.get("fmr")))
    return f"it has them for {told}" if told else "it has them for no rate; give a threshold"


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_interval(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))
