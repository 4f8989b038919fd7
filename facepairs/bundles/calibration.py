"""The calibration curve: from a score to a probability."""

import math
from typing import overload

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.bundles.rates import Count, Finite, Share
from facepairs.errors import BadBundle, BadConfig

EQUAL_PRIORS = 0.5


def check_prior(prior: float) -> None:
    """Raise BadConfig for a prior outside (0, 1)."""
    if not 0 < prior < 1:
        raise BadConfig(
            f"the prior is {prior:g}; give the share of genuine pairs among those you compare, "
            "between 0 and 1, such as 0.01",
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
        ece: Expected calibration error on people that it was not fitted to, cross-fitted; None
            where it was not measured.
        genuine_pairs: Number of genuine pairs on which it was fitted; None when not recorded.
        impostor_pairs: Number of impostor pairs on which it was fitted; None when not recorded.

    Raises:
        BadBundle: The curve does not rise, or a value is not finite.

    References:
        Platt, *Probabilistic Outputs for Support Vector Machines*, 1999.
    """

    scale: Finite
    offset: Finite
    lookalikes: bool = False
    ece: Share | None = None
    genuine_pairs: Count | None = None
    impostor_pairs: Count | None = None

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
    def probability(self, score: float, prior: float = EQUAL_PRIORS) -> float: ...
    @overload
    def probability(
        self, score: npt.NDArray[np.floating], prior: float = EQUAL_PRIORS
    ) -> npt.NDArray[np.float64]: ...
    def probability(
        self, score: float | npt.NDArray[np.floating], prior: float = EQUAL_PRIORS
    ) -> float | npt.NDArray[np.float64]:
        """Return the probability, 0 to 1, of one score or of each score of an array (float64).

        Args:
            score: One score or an array.
            prior: Share of genuine pairs among the pairs that are compared, in (0, 1).

        Raises:
            BadConfig: The prior is outside (0, 1).
        """
        check_prior(prior)
        with np.errstate(over="ignore"):  # a score of 1e308 has probability 1
            logit = self.scale * np.asarray(score, np.float64) + self.offset
        logit = logit + math.log(prior / (1 - prior))
        small = np.exp(-np.abs(logit))  # at most 1, so it cannot overflow
        probability = np.where(logit >= 0, 1.0, small) / (1 + small)
        return probability if isinstance(score, np.ndarray) else float(probability)
