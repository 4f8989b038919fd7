"""Measure the errors at every threshold, as bundles keep them (`bundles.rates`)."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from facepairs.bundles.rates import Errors, ErrorTable, Rate, Row
from facepairs.evaluation.metrics.arrays import Bools, Floats, PairPeople
from facepairs.evaluation.metrics.people import (
    independent_pairs,
    people_weights,
    rate_intervals,
    wider,
)
from facepairs.evaluation.metrics.rates import clopper_pearson

QUANTILES = 48  # of either kind of pair; rates between two thresholds are rounded upwards
EXTREMES = 64  # thresholds among the highest impostor scores, denser towards the highest
DIGITS = 8


def measure_errors(
    genuine: Bools,
    score: Floats,
    *,
    cluster: npt.NDArray[np.integer] | None = None,
    people: PairPeople | None = None,
    thresholds: Sequence[float] = (),
    measured_on: str,
) -> ErrorTable:
    """Measure the errors of decisions at thresholds over the whole range of scores.

    Args:
        genuine: bool[N], with both classes.
        score: float64[N], finite.
        cluster: int[N], the cluster that both photos of a pair are in, 0 where theirs differ; None
            where it is not known.
        people: Of the pairs, for intervals that know that people recur.
        thresholds: Thresholds that the table must have.
        measured_on: The pairs, in words.
    """
    grid = threshold_grid(score[genuine], score[~genuine], thresholds)
    place = np.searchsorted(grid, score, side="right")  # accepted at the first `place` thresholds
    alike = np.zeros(len(score), bool) if cluster is None else (cluster > 0) & ~genuine
    kinds = {"fmr": ~genuine, "fnmr": genuine} | ({"alike": alike} if alike.any() else {})
    draws: dict[str, list[Floats]] = {name: [] for name in kinds}
    for weight in people_weights(people) if people is not None else ():
        for name, members in kinds.items():
            if weight[members].any():
                draws[name].append(_accepted(place[members], weight[members], len(grid)))
    columns = {}
    for name, members in kinds.items():
        shares = np.array([_accepted(place[members], None, len(grid)), *draws[name]])
        shares = 1 - shares if name == "fnmr" else shares
        counts = int(members.sum()), independent_pairs(members, people)
        columns[name] = measured_rates(shares, *counts)
    return ErrorTable(
        measured_on=measured_on,
        people=None if people is None else len(np.unique(np.concatenate(people))),
        genuine_pairs=int(genuine.sum()),
        impostor_pairs=int((~genuine).sum()),
        lookalike_pairs=int(alike.sum()) if "alike" in kinds else None,
        thresholds=tuple(grid.tolist()),
        fmr=columns["fmr"],
        lookalike_fmr=columns.get("alike"),
        fnmr=columns["fnmr"],
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


def _accepted(place: npt.NDArray[np.integer], weight: Floats | None, thresholds: int) -> Floats:
    """Return the share of pairs accepted at each threshold, float64[thresholds]."""
    counts = np.bincount(place, weight, thresholds + 1).astype(np.float64)
    shares: Floats = np.cumsum(counts[::-1])[::-1][1:] / counts.sum()
    return shares


def measured_rates(shares: Floats, pairs: int, independent: int) -> tuple[Row, ...]:
    """Return the rate at each threshold and both ends of its interval.

    Args:
        shares: float64[1 + draws, thresholds]: the measured shares, then those of bootstrap draws.
        pairs: Number of pairs.
        independent: The same, where pairs of the same two people count once.
    """
    return tuple(_measured(values[0], pairs, independent, values[1:]) for values in shares.T)


def _measured(share: float, pairs: int, independent: int, draws: npt.ArrayLike) -> Row:
    """Return a rate with its interval; see `people.exact_interval` for `independent`."""
    count = pairs if 0 < share < 1 else independent
    low, high = wider(clopper_pearson(round(share * count), count), draws)
    return round(float(share), DIGITS), round(low, DIGITS), round(high, DIGITS)


def errors_by_group(
    groups: Mapping[str, Bools], genuine: Bools, accepted: Bools, people: PairPeople | None
) -> dict[str, Errors]:
    """Return the errors within groups of pairs, the highest FMR first.

    Args:
        groups: bool[N], the pairs of each group, by its name.
        genuine: bool[N].
        accepted: bool[N], the decisions.
        people: Of the pairs.
    """
    parts = {}
    for name, members in groups.items():
        parts[name, "fmr"] = members & ~genuine, accepted
        parts[name, "fnmr"] = members & genuine, ~accepted
    measurable = {key: part for key, part in parts.items() if part[0].any()}
    rates: dict[tuple[str, str], Rate] = {}
    intervals = rate_intervals(list(measurable.values()), people)
    for (key, (members, events)), interval in zip(measurable.items(), intervals, strict=True):
        low, high = (round(end, DIGITS) for end in interval)
        value = round(float(events[members].mean()), DIGITS)
        rates[key] = Rate(value, (low, high), int((members & events).sum()), int(members.sum()))
    found = {
        name: Errors(
            fmr=rates.get((name, "fmr")),
            fnmr=rates.get((name, "fnmr")),
            people=None
            if people is None
            else len(np.unique(np.concatenate([side[members] for side in people]))),
        )
        for name, members in groups.items()
    }
    return dict(sorted(found.items(), key=lambda row: -row[1].fmr.value if row[1].fmr else 1.0))
