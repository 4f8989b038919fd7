"""Error rates of decisions, and intervals for them.

FMR is the share of impostor pairs accepted, FNMR the share of genuine pairs rejected
(ISO/IEC 19795-1). Intervals are of 95 % and assume independent pairs. Pairs that share people vary
more; the standard error over folds of people includes that.
"""

import math

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadConfig, BadData, NotEnough
from facepairs.evaluation.metrics.arrays import Interval, check_pairs
from facepairs.evaluation.metrics.beta import beta_quantile, student_quantile_975


def accuracy(genuine: npt.ArrayLike, score: npt.ArrayLike, threshold: float) -> float:
    """Return the share of pairs decided correctly at a threshold; one class alone is allowed.

    Args:
        genuine: bool[N] or 0 and 1.
        score: float[N], finite.
        threshold: Pairs that score at least this are accepted.

    Raises:
        NotEnough: There is no pair.
        BadData: A score is not finite, or the arrays do not fit together.
        BadConfig: The threshold is NaN.
    """
    labels, scores = check_pairs(genuine, score)
    if math.isnan(threshold):
        raise BadConfig("threshold is NaN; give a number")
    return float(np.mean((scores >= threshold) == labels))


def clopper_pearson(k: int, n: int) -> Interval:
    """Return the exact interval of 95 %, (low, high), of a share that was observed k times in n.

    Args:
        k: Observations, 0 to n.
        n: Trials, at least 1.

    Raises:
        NotEnough: n is 0.
        BadConfig: k is outside 0..n.

    References:
        Clopper and Pearson, Biometrika 26, 1934.
    """
    if n == 0:
        raise NotEnough("an interval needs at least 1 pair, has 0")
    if not 0 <= k <= n:
        raise BadConfig(f"k must be from 0 to n = {n}, not {k}")
    return beta_interval(k, n)


def beta_interval(k: float, n: int) -> Interval:
    """Return the Clopper-Pearson interval of a share, of 95 %.

    Args:
        k: Observations, 0 to n; not necessarily a whole number.
        n: Trials, at least 1.
    """
    low = beta_quantile(0.025, k, n - k + 1) if k > 0 else 0.0
    high = beta_quantile(0.975, k + 1, n - k) if k < n else 1.0
    return low, high


def mean_and_standard_error(values: npt.ArrayLike) -> tuple[float, float]:
    """Return the mean and its standard error: standard deviation (n - 1) over the root of n.

    Raises:
        NotEnough: There are fewer than two values.
        BadData: A value is not finite.
    """
    numbers = np.asarray(values, np.float64).ravel()
    if len(numbers) < 2:
        raise NotEnough(f"a standard error needs at least 2 values, has {len(numbers)}")
    if not np.isfinite(numbers).all():
        raise BadData("a mean needs finite values; one of these is not")
    return float(numbers.mean()), float(numbers.std(ddof=1) / math.sqrt(len(numbers)))


def student_interval(mean: float, error: float, count: int) -> Interval:
    """Return Student's interval of 95 % of a rate over folds.

    Args:
        mean: Mean over the folds, 0 to 1.
        error: Its standard error.
        count: How many folds, at least 2.
    """
    reach = student_quantile_975(count - 1) * error
    return max(0.0, mean - reach), min(1.0, mean + reach)
