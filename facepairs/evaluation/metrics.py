"""Error rates of scored pairs, from arrays only.

Everywhere `genuine` is bool[N], `score` is float[N], a higher score means more alike, and a pair is
accepted when `score >= threshold`. FMR is the share of impostor pairs accepted, FNMR the share of
genuine pairs refused (ISO/IEC 19795-1), TMR = 1 - FNMR. Intervals take pairs for independent;
pairs that share people vary more, which the standard error over folds of people does show.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadConfig, BadData, NotEnough

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

# A rate is reported only where at least this many false accepts are expected: with fewer, one pair
# more or less moves the figure by half. LFW's 3,000 impostor pairs thus just reach a FAR of .001.
MIN_EXPECTED_FALSE_ACCEPTS = 3


class Roc(NamedTuple):
    """Points of the curve, thresholds falling: `thresholds`, `fmr`, `tmr`, each float64[points]."""

    thresholds: Floats
    fmr: Floats
    tmr: Floats


@dataclass(frozen=True)
class ErrorRates:
    """What a threshold does: the counts, and the rates and 95 % intervals that follow from them."""

    false_accepts: int
    false_rejects: int
    genuine_pairs: int
    impostor_pairs: int

    @property
    def fmr(self) -> float:
        """The share of impostor pairs accepted."""
        return self.false_accepts / self.impostor_pairs

    @property
    def fnmr(self) -> float:
        """The share of genuine pairs refused."""
        return self.false_rejects / self.genuine_pairs

    @property
    def fmr_interval(self) -> tuple[float, float]:
        """The FMR's Clopper-Pearson interval."""
        return clopper_pearson(self.false_accepts, self.impostor_pairs)

    @property
    def fnmr_interval(self) -> tuple[float, float]:
        """The FNMR's Clopper-Pearson interval."""
        return clopper_pearson(self.false_rejects, self.genuine_pairs)


@dataclass(frozen=True)
class TarAtFar:
    """TAR at a target FAR; all that was measured is None where there are too few impostor pairs.

    `needed` is how many impostor pairs the target takes. Intervals are Clopper-Pearson, 95 %; they
    take the threshold for given, though it comes from the same impostor pairs.
    """

    far: float
    genuine_pairs: int
    impostor_pairs: int
    needed: int
    tar: float | None = None
    threshold: float | None = None
    false_accepts: int | None = None
    tar_interval: tuple[float, float] | None = None
    far_interval: tuple[float, float] | None = None

    @property
    def reason(self) -> str | None:
        """Why there is no figure, or None where there is one."""
        if self.tar is not None:
            return None
        return f"not enough pairs: needs {self.needed} impostor pairs, has {self.impostor_pairs}"


def checked_pairs(genuine: npt.ArrayLike, score: npt.ArrayLike) -> tuple[Bools, Floats]:
    """Give `genuine` as bool[N] and `score` as float64[N].

    Raises BadData unless both are flat and of one length, `genuine` is of truth values (or 1 and
    0) and every score is finite; NotEnough without a pair.
    """
    labels, scores = np.asarray(genuine), _checked_scores(score)
    if labels.shape != scores.shape:
        raise BadData(f"genuine {labels.shape} and score {scores.shape} must be of one length")
    if labels.dtype != np.bool_ and not np.isin(labels, (0, 1)).all():
        raise BadData("genuine must be True (1) or False (0) for every pair")
    return labels.astype(np.bool_), scores


def _checked_scores(score: npt.ArrayLike) -> Floats:
    scores = np.asarray(score, np.float64)
    if scores.ndim != 1:
        raise BadData(f"scores must be a flat array, not one of shape {scores.shape}")
    if not len(scores):
        raise NotEnough("has 0 pairs; needs at least 1 to measure anything")
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        raise BadData(f"score {bad[0]} is {scores[bad[0]]}; every score must be a finite number")
    return scores


def both_classes(genuine: npt.ArrayLike, score: npt.ArrayLike) -> tuple[Bools, Floats]:
    """Do as `checked_pairs`, and raise NotEnough unless there is a pair of either class."""
    labels, scores = checked_pairs(genuine, score)
    count = int(labels.sum())
    if count in (0, len(labels)):
        raise NotEnough(
            "needs at least 1 genuine and 1 impostor pair, "
            f"has {count} genuine and {len(labels) - count} impostor"
        )
    return labels, scores


def _accepted(genuine: Bools, score: Floats) -> tuple[Floats, Counts, Counts]:
    """Give the distinct scores, falling, and the genuine and impostor pairs accepted at each."""
    order = np.argsort(score)[::-1]
    ranked = score[order]
    last = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1)
    genuine_accepted = np.cumsum(genuine[order], dtype=np.int64)[last]
    return ranked[last], genuine_accepted, last + 1 - genuine_accepted


def roc(genuine: npt.ArrayLike, score: npt.ArrayLike) -> Roc:
    """Give the ROC curve: one point a distinct score, after a first one that accepts no pair.

    Tied pairs are accepted together. The first threshold is +inf. Raises NotEnough when a class is
    missing, BadData for scores that are not finite.
    """
    labels, scores = both_classes(genuine, score)
    thresholds, hits, false_accepts = _accepted(labels, scores)
    return Roc(
        np.append(np.inf, thresholds),
        np.append(0, false_accepts) / false_accepts[-1],
        np.append(0, hits) / hits[-1],
    )


def auc(genuine: npt.ArrayLike, score: npt.ArrayLike) -> float:
    """Give the area under the ROC curve: P(genuine > impostor) + P(genuine = impostor) / 2.

    Counted in whole numbers, hence exact up to the last division; constant scores give 0.5.
    Raises as `roc`. Source: Hanley and McNeil, Radiology 143, 1982.
    """
    labels, scores = both_classes(genuine, score)
    _, hits, false_accepts = _accepted(labels, scores)
    wins_twice = np.sum(np.diff(false_accepts, prepend=0) * (hits + np.append(0, hits[:-1])))
    return int(wins_twice) / (2 * int(hits[-1]) * int(false_accepts[-1]))


def eer(genuine: npt.ArrayLike, score: npt.ArrayLike) -> float:
    """Give the equal error rate: where the ROC curve, points joined by lines, has FMR = FNMR.

    (Not the ROC's convex hull, which is lower.) Constant scores give 0.5. Raises as `roc`.
    """
    _, fmr, tmr = roc(genuine, score)
    gap = fmr - (1 - tmr)  # rises from -1 to 1, and at every point
    after = int(np.argmax(gap >= 0))
    share = gap[after] / (gap[after] - gap[after - 1])
    return float(fmr[after] - share * (fmr[after] - fmr[after - 1]))


def accuracy(genuine: npt.ArrayLike, score: npt.ArrayLike, threshold: float) -> float:
    """Give the share of pairs decided rightly at a threshold; one class alone will do.

    Raises BadData for scores that are not finite, BadConfig for a threshold that is no number.
    """
    labels, scores = checked_pairs(genuine, score)
    return float(np.mean((scores >= _checked_threshold(threshold)) == labels))


def _checked_threshold(threshold: float) -> float:
    if math.isnan(threshold):
        raise BadConfig("threshold is NaN; give a number")
    return float(threshold)


def best_threshold(genuine: npt.ArrayLike, score: npt.ArrayLike) -> float:
    """Give the threshold of highest accuracy on these pairs, midway between neighbouring scores.

    Of several as good, the one in the middle. The accuracy it has on these very pairs flatters:
    report it on others. Raises as `roc`.
    """
    labels, scores = both_classes(genuine, score)
    values, hits, false_accepts = _accepted(labels, scores)
    right = np.append(0, hits - false_accepts)  # less the impostor pairs, the same at every place
    best = np.flatnonzero(right == right.max())
    place = int(best[(len(best) - 1) // 2])  # how many of the highest scores are accepted
    if place == 0:
        return math.nextafter(float(values[0]), math.inf)
    lowest_accepted = float(values[place - 1])
    if place == len(values):
        return lowest_accepted
    highest_refused = float(values[place])
    middle = lowest_accepted / 2 + highest_refused / 2
    return middle if highest_refused < middle <= lowest_accepted else lowest_accepted


def fmr_fnmr(genuine: npt.ArrayLike, score: npt.ArrayLike, threshold: float) -> ErrorRates:
    """Count the errors at a threshold. Raises as `roc`, and BadConfig for a NaN threshold."""
    labels, scores = both_classes(genuine, score)
    accepted = scores >= _checked_threshold(threshold)
    return ErrorRates(
        false_accepts=int((accepted & ~labels).sum()),
        false_rejects=int((~accepted & labels).sum()),
        genuine_pairs=int(labels.sum()),
        impostor_pairs=int((~labels).sum()),
    )


def clopper_pearson(k: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Give the exact interval of a share of which k in n were seen.

    Raises NotEnough for n = 0, BadConfig for k outside 0..n or a confidence outside (0, 1).
    Source: Clopper and Pearson, Biometrika 26, 1934.
    """
    if n == 0:
        raise NotEnough("an interval needs at least 1 pair, has 0")
    if not 0 <= k <= n:
        raise BadConfig(f"k must be from 0 to n = {n}, not {k}")
    return _beta_interval(k, n, confidence)


def _beta_interval(k: float, n: int, confidence: float) -> tuple[float, float]:
    from scipy.stats import beta

    tail = (1 - _checked_confidence(confidence)) / 2
    low = float(beta.ppf(tail, k, n - k + 1)) if k > 0 else 0.0
    high = float(beta.ppf(1 - tail, k + 1, n - k)) if k < n else 1.0
    return low, high


def _checked_confidence(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise BadConfig(f"confidence must lie between 0 and 1, not be {confidence}")
    return confidence


def threshold_at_fmr(impostor_scores: npt.ArrayLike, fmr: float) -> float:
    """Give the smallest threshold whose FMR on these impostor pairs is at most `fmr`.

    It is the float64 just above the first impostor score that may not be accepted; impostor pairs
    tied with that one are refused too, so that the FMR never exceeds its target. Compare in
    float64. Raises BadConfig unless 0 <= fmr < 1, NotEnough without scores, BadData for scores
    that are not finite.
    """
    if not 0 <= fmr < 1:
        raise BadConfig(f"fmr must be from 0 to below 1, not {fmr}")
    scores = _checked_scores(impostor_scores)
    allowed = int(fmr * len(scores))
    while (allowed + 1) / len(scores) <= fmr:  # fmr * n may round to either side of a whole number
        allowed += 1
    while allowed / len(scores) > fmr:
        allowed -= 1
    place = len(scores) - 1 - allowed
    return math.nextafter(float(np.partition(scores, place)[place]), math.inf)


def pairs_needed(far: float) -> int:
    """Give how many impostor pairs a target FAR takes; BadConfig unless 1e-12 <= far < 1."""
    if not 1e-12 <= far < 1:
        raise BadConfig(f"far must be from 1e-12 to below 1, not {far}")
    return math.ceil(MIN_EXPECTED_FALSE_ACCEPTS / far)


def tar_at_far(genuine: npt.ArrayLike, score: npt.ArrayLike, far: float) -> TarAtFar:
    """Give the TAR at the smallest threshold whose FMR is at most `far`.

    The threshold comes from the same pairs, as is the convention: a point of the ROC, no promise
    for other pairs. Without `MIN_EXPECTED_FALSE_ACCEPTS / far` impostor pairs the result has no
    `tar` but a `reason`. Raises as `roc`, and BadConfig unless 1e-12 <= far < 1.
    """
    labels, scores = both_classes(genuine, score)
    genuine_pairs = int(labels.sum())
    sizes = TarAtFar(far, genuine_pairs, len(labels) - genuine_pairs, pairs_needed(far))
    if sizes.impostor_pairs < sizes.needed:
        return sizes
    threshold = threshold_at_fmr(scores[~labels], far)
    rates = fmr_fnmr(labels, scores, threshold)
    hits = genuine_pairs - rates.false_rejects
    return replace(
        sizes,
        tar=hits / genuine_pairs,
        threshold=threshold,
        false_accepts=rates.false_accepts,
        tar_interval=clopper_pearson(hits, genuine_pairs),
        far_interval=rates.fmr_interval,
    )


def auc_interval(
    genuine: npt.ArrayLike, score: npt.ArrayLike, confidence: float = 0.95
) -> tuple[float, float]:
    """Give the AUC's interval: DeLong's variance, a normal interval on the logit scale.

    Where DeLong's variance is 0 (classes wholly apart, constant scores) the interval is the exact
    binomial one of min(genuine, impostor) disjoint comparisons; with a single pair of a class it is
    (0, 1). Raises as `roc`, and BadConfig for a confidence outside (0, 1). Source: DeLong, DeLong
    and Clarke-Pearson, Biometrics 44, 1988; in O(n log n) as Sun and Xu, IEEE SPL 21, 2014.
    """
    from scipy.special import ndtri

    labels, scores = both_classes(genuine, score)
    _checked_confidence(confidence)
    positive, negative = np.sort(scores[labels]), np.sort(scores[~labels])
    fewest = min(len(positive), len(negative))
    if fewest == 1:
        return 0.0, 1.0
    beaten = _midrank_share(negative, positive)  # by each genuine pair, of the impostor pairs
    beating = 1 - _midrank_share(positive, negative)  # each impostor pair, of the genuine pairs
    area = auc(labels, scores)
    variance = beaten.var(ddof=1) / len(positive) + beating.var(ddof=1) / len(negative)
    if not variance:
        return _beta_interval(area * fewest, fewest, confidence)
    centre = math.log(area / (1 - area))
    reach = float(ndtri(0.5 + confidence / 2)) * math.sqrt(variance) / (area * (1 - area))
    low, high = ((1 + math.tanh(end / 2)) / 2 for end in (centre - reach, centre + reach))
    return low, high


def _midrank_share(sorted_scores: Floats, of: Floats) -> Floats:
    """Give, for each of `of`, the share of `sorted_scores` below it, ties counting half."""
    below = np.searchsorted(sorted_scores, of, "left")
    return (below + np.searchsorted(sorted_scores, of, "right")) / (2 * len(sorted_scores))


def mean_and_standard_error(values: npt.ArrayLike) -> tuple[float, float]:
    """Give the mean and its standard error: the standard deviation (n - 1) over the root of n.

    Raises NotEnough for fewer than two values, BadData for values that are not finite.
    """
    numbers = np.asarray(values, np.float64).ravel()
    if len(numbers) < 2:
        raise NotEnough(f"a standard error needs at least 2 values, has {len(numbers)}")
    if not np.isfinite(numbers).all():
        raise BadData("a mean needs finite values; one of these is not")
    return float(numbers.mean()), float(numbers.std(ddof=1) / math.sqrt(len(numbers)))
