"""Whether one verifier is better than another on the same pairs, or merely luckier.

Both have answered the very same questions, so only the pairs on which they differ tell. Pairs are
taken for independent; pairs that share people are less so, and real doubt is somewhat larger.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadData
from facepairs.evaluation.metrics import Bools, Counts, Floats, both_classes, pairs_needed
from facepairs.support.random_streams import Stream, generator

DRAWS = 1_000
LEAST_DRAWS = 200
MOST_WORK = 400_000_000  # pairs times draws, for each verifier: some ten seconds


class McNemar(NamedTuple):
    """Pairs that only one of two verifiers decides rightly, and the exact two-sided p-value."""

    only_first_right: int
    only_second_right: int
    p: float


def mcnemar(first_right: npt.ArrayLike, second_right: npt.ArrayLike) -> McNemar:
    """Test whether two verifiers are right equally often: bool[N] each, on the same pairs.

    Exact and two-sided: each pair on which they differ is a fair coin if they are equally good; 1
    where they never differ. Raises BadData unless both are flat and of one length.
    Sources: McNemar, Psychometrika 12, 1947; Dietterich, Neural Computation 10, 1998.
    """
    from scipy.stats import binomtest

    first, second = np.asarray(first_right, np.bool_), np.asarray(second_right, np.bool_)
    if first.ndim != 1 or first.shape != second.shape:
        raise BadData(f"answers of shapes {first.shape} and {second.shape} are not paired")
    only_first, only_second = int((first & ~second).sum()), int((second & ~first).sum())
    differing = only_first + only_second
    p = float(binomtest(only_first, differing).pvalue) if differing else 1.0
    return McNemar(only_first, only_second, p)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for their number, so that any false alarm among them stays as rare.

    Source: Holm, Scandinavian Journal of Statistics 6, 1979.
    """
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    adjusted = np.maximum.accumulate(np.asarray(p_values, np.float64)[order] * factors)
    back = np.empty(len(p_values))
    back[order] = np.minimum(adjusted, 1.0)
    return [float(value) for value in back]


class _Ranked(NamedTuple):
    """A verifier's pairs by falling score: the group (of equal scores) of each, and how many."""

    group: Counts
    groups: int


def _ranked(score: Floats) -> _Ranked:
    values, rising = np.unique(score, return_inverse=True)
    return _Ranked(len(values) - 1 - rising, len(values))


def _figures(
    ranked: _Ranked, genuine: Bools, weight: Counts, fars: Sequence[float]
) -> tuple[float, ...]:
    """Give the AUC, then the TAR at each FAR, of pairs that count `weight` times."""
    hits = np.bincount(ranked.group, weight * genuine, ranked.groups)
    misses = np.bincount(ranked.group, weight * ~genuine, ranked.groups)
    accepted, false_accepts = np.cumsum(hits), np.cumsum(misses)
    wins = float(np.sum(misses * (accepted - hits / 2)))
    area = wins / (accepted[-1] * false_accepts[-1])
    tars = []
    for far in fars:
        # As `threshold_at_fmr`: the last place at which the rate still keeps to its target.
        place = int(np.searchsorted(false_accepts / false_accepts[-1], far, "right"))
        tars.append(float(accepted[place - 1] / accepted[-1]) if place else 0.0)
    return (float(area), *tars)


def paired_bootstrap(
    genuine: npt.ArrayLike,
    scores: Sequence[npt.ArrayLike],
    fars: Sequence[float] = (),
    draws: int = DRAWS,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> npt.NDArray[np.float64]:
    """Draw the pairs anew, with replacement and each class by itself, the same for all verifiers.

    `scores` holds float[N] for each verifier. Gives float64[draws, verifiers, 1 + fars]: AUC and
    TAR at each FAR, whose threshold comes from the drawn pairs. A pure function of the seed.
    Source: Efron and Tibshirani, *An Introduction to the Bootstrap*, 1993. Raises as `roc`.
    """
    ranked = []
    for score in scores:
        labels, values = both_classes(genuine, score)
        ranked.append(_ranked(values))
    found = np.empty((draws, len(ranked), 1 + len(fars)))
    for draw in range(draws):
        weight = _weights(labels, seed, draw)
        for number, each in enumerate(ranked):
            found[draw, number] = _figures(each, labels, weight, fars)
        if progress:
            progress(draw + 1, draws)
    return found


def _weights(genuine: Bools, seed: int, draw: int) -> Counts:
    """Say how often each pair is drawn: int64[N], each class as often in all as it has pairs."""
    random = generator(seed, Stream.BOOTSTRAP, draw)
    weight = np.empty(len(genuine), np.int64)
    for kind in (genuine, ~genuine):
        members = np.flatnonzero(kind)
        picked = random.integers(len(members), size=len(members))
        weight[members] = np.bincount(picked, minlength=len(members))
    return weight


def compare(
    names: Sequence[str],
    genuine: npt.ArrayLike,
    scores: Sequence[npt.ArrayLike],
    right: Sequence[npt.ArrayLike],
    fars: Sequence[float],
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Compare every two verifiers on the same pairs; gives a dict ready for JSON.

    `scores` float[N] and `right` bool[N] for each name. Keys: `pairs`, `draws`, `seed`,
    `fars_left_out` (too few impostor pairs), and `tests`, a dict for every two verifiers: `first`,
    `second`, `accuracy_difference` (first less second, over all pairs), `only_first_right`,
    `only_second_right`, `p` (McNemar), `p_adjusted` (Holm), and `auc` and `tar_at_far` (by FAR)
    with `difference`, `interval` (95 %, percentiles of the bootstrap) and `p`. Raises as `roc`.
    """
    labels, _ = both_classes(genuine, scores[0])
    impostors = int((~labels).sum())
    kept = [far for far in fars if pairs_needed(far) <= impostors]
    draws = max(LEAST_DRAWS, min(DRAWS, MOST_WORK // len(labels)))
    drawn = paired_bootstrap(labels, scores, kept, draws, seed, progress)
    whole = np.array(
        [
            _figures(_ranked(np.asarray(s, np.float64)), labels, np.ones(len(labels), int), kept)
            for s in scores
        ]
    )
    answers = [np.asarray(each, np.bool_) for each in right]
    tests: list[dict[str, Any]] = []
    for a in range(len(names)):
        for b in range(a + 1, len(names)):
            gaps, seen = drawn[:, a] - drawn[:, b], whole[a] - whole[b]
            told = [_difference(seen[k], gaps[:, k]) for k in range(len(kept) + 1)]
            test = mcnemar(answers[a], answers[b])
            tests.append(
                {
                    "first": names[a],
                    "second": names[b],
                    "accuracy_difference": float(answers[a].mean() - answers[b].mean()),
                    **test._asdict(),
                    "auc": told[0],
                    "tar_at_far": {str(far): gap for far, gap in zip(kept, told[1:], strict=True)},
                }
            )
    for test_row, adjusted in zip(tests, holm([row["p"] for row in tests]), strict=True):
        test_row["p_adjusted"] = adjusted
    left_out = [far for far in fars if far not in kept]
    return {
        "pairs": len(labels),
        "draws": draws,
        "seed": seed,
        "fars_left_out": left_out,
        "tests": tests,
    }


def _difference(seen: float, drawn: Floats) -> dict[str, Any]:
    """Give a difference, the middle 95 % of its draws, and how rarely they reach beyond 0."""
    low, high = np.quantile(drawn, [0.025, 0.975])
    beyond = min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
    p = min(1.0, 2 * (beyond + 1) / (len(drawn) + 1))
    return {"difference": float(seen), "interval": [float(low), float(high)], "p": p}
