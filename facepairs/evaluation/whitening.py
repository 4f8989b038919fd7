"""Fit a linear map of embeddings to photos of other people, and tell whether it helps.

Within-class whitening: directions in which the photos of one person differ count less, in the
measure in which they do. A network that was trained on photos of this kind gains nothing by it.

References:
    Hatch, Kajarekar, Stolcke: Within-Class Covariance Normalization for SVM-based Speaker
    Recognition. Interspeech, 2006.
    Ledoit, Wolf: A Well-Conditioned Estimator for Large-Dimensional Covariance Matrices. Journal of
    Multivariate Analysis 88, 2004: why a covariance of few people is shrunk towards a multiple of
    the identity.
"""

import itertools
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.bundles.embedding_map import EmbeddingMap
from facepairs.evaluation.error_rates import find_lookalikes
from facepairs.evaluation.metrics.arrays import Bools, Floats, Ints
from facepairs.evaluation.metrics.curves import share_below
from facepairs.evaluation.pair_scores import FaceHeap, ScoredPairs

# Chosen on drawn faces: with 20 people AUC .930 at .1, .937 at .3 and .5, .929 at .8 (.862 without
# the map), with 140 people .941, .943, .941 and .931.
SHRINKAGE = 0.3
PARTS = 5  # of the people; pairs of two parts are scored by a map of the others
MIN_PEOPLE = 10  # with genuine pairs
STANDARD_ERRORS = 2.0  # that the gain of the mean person must exceed


class Whitened(NamedTuple):
    """A map, and pairs scored by maps that were fitted without their people.

    Attributes:
        map: Of all people.
        scored: The pairs.
        auc: With the map, on people that it was not fitted to.
        auc_before: Without it.
    """

    map: EmbeddingMap
    scored: ScoredPairs
    auc: float
    auc_before: float


def whiten(scored: ScoredPairs) -> Whitened | None:
    """Return the pairs with a map of their people, or None where the map does not help.

    It helps where the mean person's genuine pairs rank higher among all impostor pairs by more
    than two standard errors, scored by maps that never saw the two people of a pair.

    Args:
        scored: Pairs with embeddings.
    """
    if scored.embeddings is None:
        return None
    rows, person = scored.embeddings, scored.index.person_of.astype(np.int64)
    usable: Bools = np.asarray(np.isfinite(rows).all(axis=1))
    genuine, owner = scored.pairs.genuine, scored.people[0]
    _, number, pairs = np.unique(owner[genuine], return_inverse=True, return_counts=True)
    if len(pairs) < MIN_PEOPLE:
        return None
    score, heaps = _cross_fitted(rows, person, usable, scored)
    before, after = (
        share_below(np.sort(value[~genuine]), value[genuine]) for value in (scored.score, score)
    )
    gain = np.bincount(number, after - before) / pairs
    if gain.mean() <= STANDARD_ERRORS * gain.std(ddof=1) / np.sqrt(len(gain)):
        return None
    fitted = fit_map(rows[usable], person[usable])
    mapped = np.full_like(rows, np.nan)
    mapped[usable] = fitted(rows[usable])
    alike = find_lookalikes(mapped, person, scored.pairs)
    result = replace(scored, score=score, alike=alike, embeddings=mapped, heaps=heaps)
    return Whitened(fitted, result, float(after.mean()), float(before.mean()))


def fit_map(embeddings: npt.NDArray[np.float32], person: Ints) -> EmbeddingMap:
    """Fit a map to photos of people of whom some have two photos or more.

    Args:
        embeddings: float32[N, D], rows of length 1.
        person: int64[N].
    """
    rows = embeddings.astype(np.float64)
    _, number = np.unique(person, return_inverse=True)
    photos = np.bincount(number)
    centres = np.zeros((len(photos), rows.shape[1]))
    np.add.at(centres, number, rows)
    within = rows - (centres / photos[:, None])[number]
    covariance = within.T @ within / max(1, int((photos - 1).sum()))
    mean_variance = np.trace(covariance) / len(covariance)
    shrunk = (1 - SHRINKAGE) * covariance + SHRINKAGE * mean_variance * np.eye(len(covariance))
    variance, directions = np.linalg.eigh(shrunk)
    matrix = directions / np.sqrt(variance) @ directions.T * np.sqrt(mean_variance)
    return EmbeddingMap(rows.mean(axis=0).astype(np.float32), matrix.astype(np.float32))


def _cross_fitted(
    rows: npt.NDArray[np.float32], person: Ints, usable: Bools, scored: ScoredPairs
) -> tuple[Floats, tuple[FaceHeap, ...]]:
    """Score every pair by a map that was fitted without its two people's parts.

    Returns:
        float64[N], and the embeddings of every two parts by their map.
    """
    several = np.bincount(person[usable], minlength=person.max() + 1) > 1
    part = (np.cumsum(several) % PARTS)[person]  # all parts have as many people to fit to
    sides = [part[side] for side in (scored.pairs.left, scored.pairs.right)]
    low, high = np.minimum(*sides), np.maximum(*sides)
    heaps: list[FaceHeap] = []
    score = np.empty(len(scored.score))
    for first, second in itertools.combinations_with_replacement(range(PARTS), 2):
        members = (low == first) & (high == second)
        inside = (part == first) | (part == second)
        fitted = fit_map(rows[usable & ~inside], person[usable & ~inside])
        if first != second:
            heaps.append(FaceHeap(fitted(rows[usable & inside]), person[usable & inside]))
        if not members.any():
            continue
        left, right = (
            fitted(rows[side[members]]) for side in (scored.pairs.left, scored.pairs.right)
        )
        score[members] = (left * right).sum(axis=1)
    return score, tuple(heaps)
