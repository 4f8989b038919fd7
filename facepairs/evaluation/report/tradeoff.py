"""How many genuine pairs are missed where strangers pass more rarely: thresholds to choose from."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from facepairs.bundles.thresholds import Among
from facepairs.evaluation.metrics.arrays import Bools, Floats, Interval
from facepairs.evaluation.metrics.thresholds import tar_at_far

ONE_IN = (10, 30, 100, 300, 1000, 3000)


@dataclass(frozen=True, kw_only=True)
class TradeOff:
    """The lowest threshold at which at most one in `one_in` impostor pairs is accepted.

    Attributes:
        among: Which impostor pairs: all, or those that look alike.
        impostor_pairs: Their number.
        fnmr: Share of the genuine pairs missed there.
    """

    one_in: int
    among: Among
    impostor_pairs: int
    threshold: float
    fnmr: float
    fnmr_interval: Interval


def trade_offs(
    genuine: Bools, score: Floats, cluster: npt.NDArray[np.integer] | None = None
) -> list[TradeOff]:
    """Return the trade-offs that the pairs support: at least three false accepts are expected.

    Args:
        genuine: bool[N].
        score: float64[N].
        cluster: int[N], the cluster that both photos of a pair are in, 0 where theirs differ; None
            where it is not known.
    """
    chosen: list[tuple[Among, Bools]] = [("strangers", ~genuine)]
    if cluster is not None and (cluster[~genuine] > 0).any():
        chosen.append(("look-alikes", (cluster > 0) & ~genuine))
    rows = []
    for among, impostor in chosen:
        used = genuine | impostor
        for one_in in ONE_IN:
            point = tar_at_far(genuine[used], score[used], 1 / one_in)
            if point.threshold is None or point.tar is None or point.tar_interval is None:
                continue
            low, high = point.tar_interval
            rows.append(
                TradeOff(
                    one_in=one_in,
                    among=among,
                    impostor_pairs=point.impostor_pairs,
                    threshold=point.threshold,
                    fnmr=1 - point.tar,
                    fnmr_interval=(1 - high, 1 - low),
                )
            )
    return rows
