"""Fit a verifier's probability, choose its thresholds and measure their errors.

All on pairs of people that the network was not trained on.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from facepairs.bundles.error_profile import Calibration, ErrorProfile
from facepairs.bundles.rates import Among, ErrorTable, OperatingPoint, Row
from facepairs.data.minimums import MIN_PAIRS
from facepairs.errors import NotEnough
from facepairs.evaluation.error_rates import parts_of
from facepairs.evaluation.lookalikes import LookAlikes
from facepairs.evaluation.metrics.arrays import Bools, Floats, PairPeople, check_two_classes
from facepairs.evaluation.metrics.curves import FARS, pairs_needed, threshold_at_fmr
from facepairs.evaluation.metrics.intervals import PeopleOfPairs
from facepairs.evaluation.metrics.reliability import equal_weights, expected_calibration_error

QUANTILES = 48  # of either kind of pair; rates between two thresholds are rounded upwards
EXTREMES = 64  # thresholds among the highest impostor scores, denser towards the highest
DIGITS = 8
MIN_GAP = 1e-5  # between the classes' mean scores, in standard deviations; less is only rounding
DEFAULT_FMRS = (0.01, 0.1)
"""Target FMRs for a bundle's default threshold; the first that is possible decides. On LFW, .01
among look-alikes accepts 1 of 550 strangers at random and misses 3 % of the genuine pairs of the
included model, and 22 % of those of `fisher`, of which .001 would miss most."""
MOST_MISSED = 0.5  # of the genuine pairs, by a default threshold


def calibrate(
    genuine: Bools,
    score: Floats,
    pairs: PeopleOfPairs,
    *,
    lookalike: LookAlikes | None = None,
    measured_on: str = "held-out people",
) -> ErrorProfile:
    """Fit a bundle's probability, choose its thresholds and measure their errors.

    The balanced threshold is where the probability is one half. Where it is known which strangers
    look alike, they make up half of the strangers that the probability is fitted to, and the
    thresholds by FMR keep to it among them. The calibration error is measured on each half of the
    pairs with the curve of the other half.

    Args:
        genuine: bool[N].
        score: float64[N], of people that the network was not trained on.
        pairs: Who is in the pairs.
        lookalike: Strangers who look alike; None where that is not known.
        measured_on: The pairs, in words.

    Raises:
        NotEnough: The pairs do not suffice to fit a curve.
        BadData: A score is not finite, or the arrays do not fit together.
    """
    alike = None if lookalike is None else lookalike.pairs
    curve = fit_logistic(genuine, score, lookalike=alike)
    try:
        probability = cross_fitted_probability(genuine, score, lookalike=alike)
    except NotEnough:  # a half alone does not suffice to fit a curve
        ece = None
    else:
        ece = expected_calibration_error(genuine, probability, alike)
    rows = thresholds_for(genuine, score, pairs, alike)
    kept = [row.threshold for row in rows if row.threshold is not None]
    errors = measure_errors(
        genuine,
        score,
        pairs,
        lookalike=lookalike,
        thresholds=[curve.threshold, *kept],
        measured_on=measured_on,
    )
    return ErrorProfile(
        calibration=Calibration(curve.scale, curve.offset, lookalike is not None, ece),
        thresholds=tuple(rows),
        default_fmr=choose_default_fmr(rows, curve.threshold, errors),
        errors=errors,
    )


def thresholds_for(
    genuine: Bools,
    score: Floats,
    pairs: PeopleOfPairs,
    lookalike: Bools | None = None,
) -> list[OperatingPoint]:
    """Return, for each FMR of `FARS`, the smallest threshold that keeps to it on these pairs.

    Args:
        genuine: bool[N], with both classes.
        score: float64[N].
        pairs: Who is in the pairs; pairs of the same two people count once towards the number of
            pairs that a target needs.
        lookalike: bool[N], the impostor pairs that look alike: the FMR among them keeps to the
            target. None where they are not known: that of all impostor pairs does.
    """
    hard = ~genuine if lookalike is None else lookalike
    available = pairs.trials(hard)
    among: Among = "strangers" if lookalike is None else "look-alikes"
    rows = []
    for far in FARS:
        threshold = reason = None
        if available < pairs_needed(far):
            needed = pairs_needed(far)
            counted = "; photos of the same two people count once" if pairs.known else ""
            reason = (
                f"not enough pairs: needs {needed:,} pairs of {among}, has {available:,}{counted}"
            )
        else:
            threshold = threshold_at_fmr(score[hard], far)
        rows.append(OperatingPoint(threshold, f"fmr-{far:g}", far, among, reason=reason))
    return rows


def measure_errors(
    genuine: Bools,
    score: Floats,
    pairs: PeopleOfPairs,
    *,
    lookalike: LookAlikes | None = None,
    thresholds: Sequence[float],
    measured_on: str,
) -> ErrorTable:
    """Measure the errors of decisions at thresholds over the whole range of scores.

    Args:
        genuine: bool[N], with both classes.
        score: float64[N], finite.
        pairs: Who is in the pairs.
        lookalike: Strangers who look alike; None where that is not known.
        thresholds: Thresholds that the table must have.
        measured_on: The pairs, in words.
    """
    grid = threshold_grid(score[genuine], score[~genuine], thresholds)
    place = np.searchsorted(grid, score, side="right")  # accepted at the first `place` thresholds
    fmr = pairs.rates_at(~genuine, place, len(grid))
    tmr, lowest, highest = pairs.rates_at(genuine, place, len(grid))
    alike = None
    if lookalike is not None:
        alike = pairs.rates_at(lookalike.pairs, place, len(grid), list(lookalike.again))
    return ErrorTable(
        measured_on=measured_on,
        people=pairs.people(np.ones(len(score), np.bool_)) if pairs.known else None,
        genuine_pairs=int(genuine.sum()),
        impostor_pairs=int((~genuine).sum()),
        lookalike_pairs=None if lookalike is None else int(lookalike.pairs.sum()),
        thresholds=tuple(grid.tolist()),
        fmr=rate_rows(*fmr),
        lookalike_fmr=None if alike is None else rate_rows(*alike),
        fnmr=rate_rows(1 - tmr, 1 - highest, 1 - lowest),
    )


def threshold_grid(genuine: Floats, impostor: Floats, wanted: Sequence[float]) -> Floats:
    """Return rising thresholds: quantiles of both kinds of scores, the extremes, and those wanted.

    At the first everything is accepted, at the last nothing.
    """
    shares = np.linspace(0, 1, QUANTILES)
    ranks = np.geomspace(1, max(1, len(impostor) / QUANTILES), EXTREMES).astype(np.int64)
    low = float(min(genuine.min(), impostor.min()))
    high = float(max(genuine.max(), impostor.max()))
    return np.unique(
        np.concatenate(
            [
                [low, np.nextafter(high, np.inf)],
                np.quantile(genuine, shares),
                np.quantile(impostor, shares),
                np.nextafter(np.sort(impostor)[-ranks], np.inf),
                np.asarray(wanted, np.float64),
            ]
        )
    )


def rate_rows(rates: Floats, low: Floats, high: Floats) -> tuple[Row, ...]:
    """Return rates and both ends of their intervals, float64[T] each, as a table has them."""
    columns = np.stack([rates, low, high], axis=1).round(DIGITS)
    return tuple((rate, begin, end) for rate, begin, end in columns.tolist())


def choose_default_fmr(
    rows: Sequence[OperatingPoint], balanced: float, errors: ErrorTable
) -> float | None:
    """Return the target FMR that decides by default, or None for the balanced threshold.

    The first of `DEFAULT_FMRS` that the pairs support, whose threshold is above the balanced one
    and still accepts most genuine pairs.
    """
    thresholds = {row.max_fmr: row.threshold for row in rows}
    for target in DEFAULT_FMRS:
        threshold = thresholds.get(target)
        if threshold is not None and threshold >= balanced:
            missed = errors.at(threshold).fnmr
            if missed is not None and missed.value <= MOST_MISSED:
                return target
    return None


def is_no_better(
    former: Calibration,
    genuine: Bools,
    score: Floats,
    people: PairPeople,
    lookalike: Bools | None = None,
) -> bool:
    """Return whether a calibration of some people is no better on others than a former one.

    One is fitted to each half of the people and compared on the other half, by its log loss at
    equal priors. False where half of the people is too few for a calibration.

    Args:
        former: The calibration to compare with.
        genuine: bool[N].
        score: float64[N].
        people: Of the pairs; pairs across the halves are left out.
        lookalike: bool[N], as for `fit_logistic`.
    """
    _, numbers = np.unique(np.concatenate(people), return_inverse=True)
    left, right = np.split(numbers % 2, 2)
    halves: list[Bools] = [(left == half) & (right == half) for half in (0, 1)]
    if any(min(genuine[m].sum(), (~genuine[m]).sum()) < MIN_PAIRS for m in halves):
        return False
    gain = 0.0
    for fitting, testing in (halves, halves[::-1]):
        alike = [None if lookalike is None else lookalike[m] for m in (fitting, testing)]
        try:
            new = fit_logistic(genuine[fitting], score[fitting], lookalike=alike[0])
        except NotEnough:
            return False
        weight = equal_weights(genuine[testing], alike[1])
        sign = np.where(genuine[testing], 1.0, -1.0)
        logits = [sign * (c.scale * score[testing] + c.offset) for c in (former, new)]
        losses = [float(np.mean(weight * np.logaddexp(0, -logit))) for logit in logits]
        gain += losses[0] - losses[1]
    return gain <= 0


def cross_fitted_probability(
    genuine: Bools,
    score: Floats,
    fold: npt.ArrayLike | None = None,
    lookalike: Bools | None = None,
) -> Floats:
    """Return P(genuine | score) of each part of the pairs by the curve fitted to the other parts.

    Args:
        genuine: bool[N].
        score: float64[N].
        fold: int[N]; parts are the folds where there are two or more, and otherwise two halves.
        lookalike: bool[N], as for `fit_logistic`.

    Returns:
        float64[N], probabilities at equal priors.

    Raises:
        NotEnough: The other parts of a part do not suffice to fit a curve.
    """
    parts, _ = parts_of(genuine, fold)
    probability = np.empty(len(genuine))
    for number in np.unique(parts):
        held_out = parts == number
        alike = None if lookalike is None else lookalike[~held_out]
        curve = fit_logistic(genuine[~held_out], score[~held_out], lookalike=alike)
        probability[held_out] = curve.probability(score[held_out])
    return probability


def fit_logistic(
    genuine: npt.ArrayLike,
    score: npt.ArrayLike,
    lookalike: Bools | None = None,
) -> Calibration:
    """Fit P(genuine | score) by logistic regression, for equal priors.

    Classes weigh the same, whatever their numbers. Targets are Platt's, (n + 1) / (n + 2) and
    1 / (n + 2), rather than 1 and 0: they bound the slope when scores separate the classes fully.

    Args:
        genuine: bool[N] or 0 and 1.
        score: float[N], finite.
        lookalike: As for `equal_weights`.

    Raises:
        NotEnough: A class is missing, or genuine pairs do not score higher on average.
        BadData: A score is not finite, or the arrays do not fit together.

    References:
        Platt, *Probabilistic Outputs for Support Vector Machines*, 1999.
    """
    labels, scores = check_two_classes(genuine, score)
    half = scores / 2  # the range of float64's largest scores would overflow
    low = float(half.min())
    spread = float(half.max()) - low
    unit = (half - low) / (spread or 1.0)
    mean, deviation = float(unit.mean()), float(unit.std())
    # The slope has the sign of the gap of the means: the loss's gradient at slope 0 has it, too.
    weight = equal_weights(labels, lookalike)
    means = (np.average(unit[side], weights=weight[side]) for side in (labels, ~labels))
    if next(means) - next(means) <= MIN_GAP * deviation:
        half_alike = "" if lookalike is None else ", half of which weigh as look-alikes"
        raise NotEnough(
            f"{int(labels.sum())} genuine pairs do not score higher on average than "
            f"{int((~labels).sum())} impostor pairs{half_alike}; train longer, or check that "
            "higher means more alike"
        )
    slope, intercept = _regress(labels, (unit - mean) / deviation, weight)
    scale = slope / deviation / spread / 2
    return Calibration(scale, intercept - slope / deviation * (mean + low / spread))


def _regress(genuine: Bools, x: Floats, weight: Floats) -> tuple[float, float]:
    """Return slope and intercept of the logit over standardised scores.

    A soft target t is the same pair twice: genuine with weight t, impostor with 1 - t. The smoothed
    targets alone keep the line finite: a penalty would depend on the scale of scores.
    """
    from sklearn.linear_model import LogisticRegression

    smoothed = 1 / (np.where(genuine, genuine.sum(), (~genuine).sum()) + 2)
    target = np.where(genuine, 1 - smoothed, smoothed)
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12)
    model.fit(
        np.tile(x, 2)[:, None],
        np.repeat([True, False], len(x)),
        sample_weight=np.concatenate([weight * target, weight * (1 - target)]) / weight.sum(),
    )
    return float(model.coef_[0, 0]), float(model.intercept_[0])
