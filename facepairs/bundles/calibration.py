"""From a score to a probability: what a bundle's manifest holds and `verify` applies."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadBundle


@dataclass(frozen=True)
class Calibration:
    """A logistic curve: P(genuine | score) = 1 / (1 + exp(-(scale * score + offset))).

    The probability holds at the prior it was fitted for, equal classes unless said otherwise.
    Raises BadBundle unless `scale` is above 0 and all is finite. Source: Platt, *Probabilistic
    Outputs for Support Vector Machines*, 1999.
    """

    scale: float
    offset: float

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

    @overload
    def probability(self, score: float) -> float: ...
    @overload
    def probability(self, score: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]: ...
    def probability(
        self, score: float | npt.NDArray[np.floating]
    ) -> float | npt.NDArray[np.float64]:
        """Give the probability, 0 to 1, of one score or of each of an array, in float64."""
        with np.errstate(over="ignore"):  # a score of 1e308 is surely accepted
            logit = self.scale * np.asarray(score, np.float64) + self.offset
        small = np.exp(-np.abs(logit))  # at most 1: it cannot overflow
        probability = np.where(logit >= 0, 1.0, small) / (1 + small)
        return probability if isinstance(score, np.ndarray) else float(probability)

    def to_json(self) -> dict[str, float]:
        """Give a plain dict; `from_json` reads it back exactly."""
        return {"scale": float(self.scale), "offset": float(self.offset)}

    @classmethod
    def from_json(cls, data: object) -> "Calibration":
        """Read a manifest's `calibration`, whatever else it holds.

        Raises BadBundle when `scale` or `offset` is missing or unusable.
        """
        fields: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
        return cls(_number(fields, "scale"), _number(fields, "offset"))


def _number(fields: Mapping[str, Any], name: str) -> float:
    value: Any = fields.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or abs(value) > 1e300:  # whole numbers in JSON know no limit, floats do
        raise BadBundle(f"calibration: {name} is {value!r}, not a usable number; calibrate again")
    return float(value)
