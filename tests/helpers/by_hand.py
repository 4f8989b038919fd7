"""Figures that tests compute again, in a slower and simpler way."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class ErrorRates:
    """Errors of decisions."""

    false_accepts: int
    false_rejects: int
    fmr: float
    fnmr: float


def error_rates(genuine: npt.ArrayLike, accepted: npt.ArrayLike) -> ErrorRates:
    pairs = list(zip(np.asarray(genuine, bool), np.asarray(accepted, bool), strict=True))
    impostor = [taken for same, taken in pairs if not same]
    own = [taken for same, taken in pairs if same]
    passed, missed = sum(impostor), len(own) - sum(own)
    return ErrorRates(passed, missed, passed / len(impostor), missed / len(own))


def accuracy(genuine: npt.ArrayLike, score: npt.ArrayLike, threshold: float) -> float:
    return float(np.mean((np.asarray(score) >= threshold) == np.asarray(genuine)))
