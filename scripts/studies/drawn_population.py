"""People drawn from a population whose rates are known, for studies of intervals.

The population is a model fitted to LFW's embeddings of the included model: every person has a
centre, every photo lies around it, some people and some photos farther than others, and people have
from one to 40 photos, a third of them one. A second verifier, with more noise, errs as often as a
network trained on LFW alone.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.evaluation.identification import Split, split_people

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Of LFW's embeddings by the included model, along the axes in which people differ most: variances
# between people and within a person. The mean has the length OFFSET.
BETWEEN = (
    0.01478, 0.01045, 0.00768, 0.00655, 0.00533, 0.00502, 0.00432, 0.00343, 0.00324, 0.00296,
    0.00285, 0.00272, 0.00267, 0.00237, 0.00215, 0.0021, 0.00187, 0.00185, 0.00172, 0.00159,
    0.00154, 0.00147, 0.00142, 0.00138, 0.00131, 0.00117, 0.00115, 0.00111, 0.00109, 0.00102,
    0.00096, 0.00092,
)  # fmt: skip
WITHIN = (
    0.0006, 0.00086, 0.00087, 0.00089, 0.0009, 0.00086, 0.00092, 0.00094, 0.00088, 0.00082,
    0.00096, 0.00085, 0.00078, 0.00088, 0.00081, 0.00075, 0.00077, 0.0008, 0.00078, 0.00073,
    0.00079, 0.0007, 0.00069, 0.00064, 0.0006, 0.0007, 0.0007, 0.00064, 0.00063, 0.00066, 0.00066,
    0.00058,
)  # fmt: skip
OFFSET = 0.916
OF_PERSON, OF_PHOTO = 0.13, 0.15  # standard deviations of the logarithm of a photo's noise
HARD = 1.29  # noise of one photo in ten is above
NOISE, MORE_NOISE = 0.95, 0.9  # of the first verifier, and what the second one adds
PHOTOS = np.repeat(
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 40],
    [30, 32, 12, 8, 5, 3, 2, 2, 1, 1, 1, 1, 1, 1],
)
MOST_PAIRS = 10  # genuine ones, of a person
POOL, POOL_PAIRS = 150_000, 8_000_000
GALLERIES = 400


class Photos(NamedTuple):
    """Photos of people: whose each is, int64[N], rising, and embeddings of both verifiers.

    Hard photos, bool[N], lie farther from their person's centre than most, as turned faces do:
    their noise, float64[N], is larger.
    """

    person: Ints
    first: Rows
    second: Rows
    hard: Bools
    noise: Floats


def draw_photos(random: np.random.Generator, people: int, photos: int | None = None) -> Photos:
    """Draw people and their photos: so many of each, or as LFW has."""
    counts = random.choice(PHOTOS, people) if photos is None else np.full(people, photos)
    person = np.repeat(np.arange(people), counts)
    spread = OF_PERSON * random.standard_normal(people)[person]
    scale = np.exp(spread + OF_PHOTO * random.standard_normal(len(person)))[:, None]
    centre = random.standard_normal((people, len(BETWEEN))) * np.sqrt(BETWEEN)
    noise = (random.standard_normal((len(person), len(WITHIN))) for _ in range(2))
    own, other = (one * np.sqrt(WITHIN) * scale for one in noise)
    rows = centre[person] + NOISE * own
    both = [_with_offset(rows), _with_offset(rows + MORE_NOISE * other)]
    return Photos(person, *both, scale[:, 0] > HARD, scale[:, 0])


def _with_offset(rows: Floats) -> Rows:
    rows = np.hstack([np.full((len(rows), 1), OFFSET), rows])
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


class Pairs(NamedTuple):
    """Pairs of photos: at most ten genuine ones of a person, and impostor pairs at random."""

    left: Ints
    right: Ints
    genuine: Bools


def draw_pairs(random: np.random.Generator, person: Ints, impostors: int) -> Pairs:
    """Draw distinct pairs; of impostors, first the people, then a photo of each."""
    people, first, count = np.unique(person, return_index=True, return_counts=True)
    left, right = [], []
    for photos in np.unique(count[count > 1]).tolist():
        one, other = np.triu_indices(photos, 1)
        begins = first[count == photos][:, None]
        order = random.random((len(begins), len(one))).argsort(axis=1)[:, :MOST_PAIRS]
        left.append((begins + one[order]).ravel())
        right.append((begins + other[order]).ravel())
    genuine = sum(map(len, left))
    one = random.integers(0, len(people), 2 * impostors)
    other = random.integers(0, len(people) - 1, 2 * impostors)
    other += other >= one
    photo, partner = (
        first[side] + (random.random(len(side)) * count[side]).astype(np.int64)
        for side in (one, other)
    )
    keys = np.minimum(photo, partner) * len(person) + np.maximum(photo, partner)
    kept = np.sort(np.unique(keys, return_index=True)[1])[:impostors]
    return Pairs(
        np.concatenate([*left, photo[kept]]),
        np.concatenate([*right, partner[kept]]),
        np.arange(genuine + len(kept)) < genuine,
    )


def score_pairs(rows: Rows, left: Ints, right: Ints) -> Floats:
    """Return the cosine similarity of pairs of rows."""
    chunks = (slice(at, at + 500_000) for at in range(0, len(left), 500_000))
    parts = [np.einsum("ij,ij->i", rows[left[c]], rows[right[c]]) for c in chunks]
    return np.concatenate(parts).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Truth:
    """The rates of the population: those of many people."""

    photos: Photos
    pairs: Pairs
    scores: tuple[Floats, Floats]
    genuine: tuple[Floats, Floats]
    impostor: tuple[Floats, Floats]
    group: Bools

    def fmr(self, verifier: int, threshold: float) -> float:
        """Return the share of impostor pairs at or above a threshold."""
        scores = self.impostor[verifier]
        return 1 - float(np.searchsorted(scores, threshold)) / len(scores)

    def fnmr(self, verifier: int, threshold: float) -> float:
        """Return the share of genuine pairs below a threshold."""
        scores = self.genuine[verifier]
        return float(np.searchsorted(scores, threshold)) / len(scores)

    def threshold(self, verifier: int, far: float) -> float:
        """Return the threshold of a FAR."""
        scores = self.impostor[verifier]
        return float(scores[round((1 - far) * len(scores))])

    def balanced_accuracy(self, verifier: int, threshold: float) -> float:
        """Return the mean of 1 - FMR and 1 - FNMR."""
        return 1 - (self.fmr(verifier, threshold) + self.fnmr(verifier, threshold)) / 2


@cache
def truth() -> Truth:
    """Draw the people who stand for the population."""
    random = np.random.default_rng(1)
    photos = draw_photos(random, POOL)
    pairs = draw_pairs(random, photos.person, POOL_PAIRS)
    scores = [score_pairs(rows, pairs.left, pairs.right) for rows in photos[1:3]]
    genuine = [np.sort(score[pairs.genuine]) for score in scores]
    impostor = [np.sort(score[~pairs.genuine]) for score in scores]
    group = in_group(photos)
    return Truth(photos, pairs, tuple(scores), tuple(genuine), tuple(impostor), group)


@cache
def true_threshold(verifier: int) -> float:
    """Return the threshold of the highest balanced accuracy."""
    genuine, impostor = truth().genuine[verifier], truth().impostor[verifier]
    passed = 1 - np.searchsorted(impostor, genuine) / len(impostor)
    return float(genuine[(passed + np.arange(len(genuine)) / len(genuine)).argmin()])


@cache
def true_auc(verifier: int) -> float:
    """Return the area under the ROC curve."""
    impostor = truth().impostor[verifier]
    return float(np.searchsorted(impostor, truth().genuine[verifier]).mean()) / len(impostor)


@cache
def true_eer(verifier: int) -> float:
    """Return the error rate where both are equal."""
    genuine, impostor = truth().genuine[verifier], truth().impostor[verifier]
    passed = 1 - np.searchsorted(impostor, genuine) / len(impostor)
    return float(passed[(passed <= np.arange(len(genuine)) / len(genuine)).argmax()])


def in_group(photos: Photos) -> Bools:
    """Return which photos are of people of a group: one side of the axis of most variance."""
    sums = np.bincount(photos.person, photos.first[:, 1])
    return (sums > 0)[photos.person]


@cache
def true_hard() -> tuple[float, float]:
    """Return FMR and FNMR of pairs with a hard photo, by the first verifier where FMR is .01."""
    known = truth()
    shown = known.photos.hard[known.pairs.left] | known.photos.hard[known.pairs.right]
    accepted = known.scores[0] >= known.threshold(0, 0.01)
    fmr = accepted[shown & ~known.pairs.genuine].mean()
    return float(fmr), 1 - float(accepted[shown & known.pairs.genuine].mean())


@cache
def true_group() -> tuple[float, float]:
    """Return FMR and FNMR within the group, by the noisier verifier where FMR is .01."""
    known = truth()
    within = known.group[known.pairs.left] & known.group[known.pairs.right]
    accepted = known.scores[1] >= known.threshold(1, 0.01)
    fmr = accepted[within & ~known.pairs.genuine].mean()
    return float(fmr), 1 - float(accepted[within & known.pairs.genuine].mean())


def probe_scores(photos: Photos, split: Split) -> tuple[Floats, Bools, int, int]:
    """Return the best score of each photo asked for, first of known people; which of these rank
    first; and the numbers of known people and of strangers."""
    enrolled, starts = np.unique(photos.person[split.enrolled], return_index=True)
    asked = np.concatenate([split.known, split.strangers])
    scores = photos.second[asked] @ photos.second[split.enrolled].T
    best = np.maximum.reduceat(scores, starts, axis=1)
    first = enrolled[best[: len(split.known)].argmax(axis=1)] == photos.person[split.known]
    strangers = len(np.unique(photos.person[split.strangers]))
    return best.max(axis=1).astype(np.float64), first, len(enrolled), strangers


def shares_of_people(person: Ints, events: Bools) -> tuple[float, int]:
    """Return the sum over people of the share of their photos with an event, and the people."""
    people, number, photos = np.unique(person, return_inverse=True, return_counts=True)
    return float((events / photos[number]).sum()), len(people)


@cache
def true_identification(people: int) -> tuple[float, float]:
    """Return the threshold at which FPIR is .1 over many galleries, and DIR there."""
    random = np.random.default_rng(people)
    columns: list[list[Floats]] = [[], [], [], []]
    for _ in range(GALLERIES):
        photos = draw_photos(random, people)
        split = split_people(photos.person)
        score, first, _, _ = probe_scores(photos, split)
        weights = []
        for places in (split.known, split.strangers):
            _, number, count = np.unique(
                photos.person[places], return_inverse=True, return_counts=True
            )
            weights.append(1 / count[number] / len(count))
        known = np.where(first, score[: len(first)], -np.inf)
        parts = (known, weights[0], score[len(first) :], weights[1])
        for column, part in zip(columns, parts, strict=True):
            column.append(part)
    found, of_known, taken, of_strangers = map(np.concatenate, columns)
    order = np.argsort(-taken)
    above = np.cumsum(of_strangers[order]) / of_strangers.sum()
    cut = float(taken[order][np.searchsorted(above, 0.1)])
    return cut, float(of_known[found >= cut].sum() / of_known.sum())
