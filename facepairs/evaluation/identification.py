"""Open-set identification: how often known people are found, and strangers taken for somebody.

Half of the people with several photos are known: up to three photos of each are enrolled, and the
others are asked for. Everybody else is a stranger. As in a gallery, a person's score is that of the
most similar enrolled photo, and the highest score decides. Every person counts once, however many
photos there are.

References:
    Phillips, Grother and Micheals, "Evaluation Methods in Face Recognition", in: Handbook of Face
    Recognition, Springer 2011.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

import numpy as np

from facepairs.bundles.measured import MeasuredModel, identification_point
from facepairs.bundles.rates import Rate
from facepairs.data.index import FaceIndex
from facepairs.data.minimums import MIN_EXPECTED_FALSE_ACCEPTS
from facepairs.errors import BadBundle, NotEnough
from facepairs.evaluation.metrics.arrays import Floats, Ints
from facepairs.evaluation.metrics.intervals import DRAWS, clopper_pearson, wider
from facepairs.evaluation.pair_scores import embed_images, refuse_unusable
from facepairs.support.random_streams import Stream, raw_words, unit
from facepairs.verification.fitting_faces import FittingFaces
from facepairs.verification.loading import Model, model_name
from facepairs.verification.scorer import ScoreArray
from facepairs.verification.verifier import Verifier

SEED = 0
MOST_ENROLLED = 3
FPIRS = (0.01, 0.1)
RANKS = (1, 2, 3, 5, 10, 20)
DIGITS = 12  # of a rate; sums of weights end a little above or below 1
OWN: Final = "strangers"
GALLERY: Final = "gallery"


@dataclass(frozen=True, kw_only=True)
class IdentificationPoint:
    """The errors at one threshold; intervals of 95 % know that photos of a person recur.

    Attributes:
        max_fpir: The false-positive identification rate that was asked for.
        set_by: `strangers`, whose highest scores here give the threshold, a point of a curve; or
            `gallery`, as `gallery identify` sets it, from the model's own errors and the number of
            enrolled photos.
        threshold: None where the data or the model do not support the rate.
        fpir: Share of strangers taken for somebody (false-positive identification rate).
        dir: Share of known people who rank first and reach the threshold (detection and
            identification rate).
        reason: Why there is no threshold, or "".
    """

    max_fpir: float
    set_by: Literal["strangers", "gallery"]
    threshold: float | None = None
    fpir: Rate | None = None
    dir: Rate | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class IdentificationFigures:
    """How well people are identified; photos that were asked for are probes.

    Attributes:
        known: Number of known people.
        enrolled: Number of their enrolled photos.
        known_probes: Number of their other photos.
        strangers: Number of unknown people.
        stranger_probes: Number of their photos.
        cmc: By rank, the share of known people who are among that many best candidates
            (cumulative match characteristic); that of rank 1 is the rank-1 rate.
        points: The errors at thresholds.
    """

    known: int
    enrolled: int
    known_probes: int
    strangers: int
    stranger_probes: int
    cmc: Mapping[int, Rate]
    points: Sequence[IdentificationPoint]


class Split(NamedTuple):
    """Which photos are enrolled, and which are asked for: int64 each, rising."""

    enrolled: Ints
    known: Ints
    strangers: Ints


class Probes(NamedTuple):
    """Photos asked for: whose each is, int[N] from 0, its best score, and the rank of its person.

    Strangers have rank 0.
    """

    person: Ints
    score: Floats
    rank: Ints

    def weights(self, times: Floats) -> Floats:
        """Return float64[N] of sum 1, where person p counts `times[p]` times."""
        weight = (times / np.bincount(self.person))[self.person]
        normalised: Floats = weight / weight.sum()
        return normalised


def measure_identification(
    model: Model, index: FaceIndex, faces: FittingFaces, skip_bad: bool
) -> IdentificationFigures:
    """Measure a model on the people whom it does not know.

    Args:
        model: A bundle or an external embedder.
        index: The photos.
        faces: Which face of each photo it sees.
        skip_bad: Leave photos out that cannot be used, instead of raising.

    Raises:
        BadBundle: The model has no embeddings.
        BadImage: A photo cannot be used, and `skip_bad` is false.
        NotEnough: There are no two people with several photos, or nobody else.
    """
    if model.kind != "embedding":
        raise BadBundle(f"{model_name(model)}: scores pairs, has no embeddings to identify with")
    images = np.flatnonzero(~model.knows(list(index.people))[index.person_of])
    errors: dict[int, str] = {}
    verifier = Verifier(model)
    rows = embed_images(verifier, index, images, errors, faces)
    refuse_unusable(errors, skip_bad)
    usable = ~np.isin(images, list(errors))
    person = index.person_of[images[usable]].astype(np.int64)
    split = split_people(person)
    return identification_figures(model, rows[usable], person, split, verifier.compare)


def split_people(person: Ints) -> Split:
    """Split photos; the same for the same people and numbers of photos.

    Args:
        person: int64[N], whose each photo is, rising.

    Raises:
        NotEnough: There are no two people with several photos.
    """
    _, first, counts = np.unique(person, return_index=True, return_counts=True)
    several = np.flatnonzero(counts > 1)
    if len(several) < 2:
        raise NotEnough(
            "identification needs two people or more with several photos, unknown to the model: "
            f"half of them are enrolled, the others are strangers; there are {len(several)}"
        )
    order = np.argsort(raw_words(SEED, Stream.IDENTIFICATION, 0, 0, len(several)))
    enrolled, known = [], []
    for number in np.sort(several[order[: len(several) // 2]]).tolist():
        count = int(counts[number])
        words = raw_words(SEED, Stream.IDENTIFICATION, 1, number, count)
        photos = first[number] + np.argsort(words)
        enrolled += sorted(photos[: min(MOST_ENROLLED, count - 1)].tolist())
        known += sorted(photos[min(MOST_ENROLLED, count - 1) :].tolist())
    strangers = np.flatnonzero(~np.isin(person, person[enrolled]))
    return Split(np.array(enrolled), np.array(known), strangers)


def identification_figures(
    model: MeasuredModel,
    embeddings: ScoreArray,
    person: Ints,
    split: Split,
    compare: Callable[[ScoreArray, ScoreArray], ScoreArray],
) -> IdentificationFigures:
    """Compute the figures of embedded photos.

    Args:
        model: Its errors set the threshold of `gallery identify`.
        embeddings: float32[N, D].
        person: int64[N], rising.
        split: Positions in both.
        compare: Scores embeddings row by row.
    """
    enrolled = embeddings[split.enrolled]
    people, starts = np.unique(person[split.enrolled], return_index=True)

    def ask(places: Ints, own: Ints | None) -> Probes:
        probes = embeddings[places]
        rows = (compare(np.broadcast_to(row, enrolled.shape), enrolled) for row in probes)
        scores = np.array([np.maximum.reduceat(row, starts) for row in rows], np.float64)
        rank = np.zeros(len(places), np.int64)
        if own is not None:  # equal scores count against the right person
            rank = (scores >= scores[np.arange(len(own)), own][:, None]).sum(axis=1)
        return Probes(np.unique(person[places], return_inverse=True)[1], scores.max(axis=1), rank)

    known = ask(split.known, np.searchsorted(people, person[split.known]))
    strangers = ask(split.strangers, None)
    points = [
        *(_at_quantile(strangers, fpir) for fpir in FPIRS),
        *(_at_promise(model, fpir, len(enrolled)) for fpir in FPIRS),
    ]
    ranks = [rank for rank in RANKS if rank <= len(people)]
    counts = len(people), int(strangers.person.max()) + 1

    def figures(*times: Floats) -> list[float]:
        """Return the CMC, then FPIR and DIR of each point; people count so many times."""
        of_known, of_strangers = known.weights(times[0]), strangers.weights(times[1])
        values = [float(of_known @ (known.rank <= rank)) for rank in ranks]
        for point in points:
            cut = np.inf if point.threshold is None else point.threshold
            if point.threshold is not None and point.set_by == OWN:
                cut = _threshold(strangers.score, of_strangers, point.max_fpir)
            values.append(float(of_strangers @ (strangers.score >= cut)))
            values.append(float(of_known @ ((known.rank == 1) & (known.score >= cut))))
        return values

    measured = np.round(figures(*map(np.ones, counts)), DIGITS)
    drawn = np.round([figures(*_draw(counts, draw)) for draw in range(DRAWS)], DIGITS)
    of = [counts[0]] * len(ranks) + [counts[1], counts[0]] * len(points)
    rates = [
        Rate(float(rate), wider(clopper_pearson(float(rate) * count, count), column))
        for rate, count, column in zip(measured, of, drawn.T, strict=True)
    ]
    pairs = rates[len(ranks) :]
    return IdentificationFigures(
        known=counts[0],
        enrolled=len(enrolled),
        known_probes=len(split.known),
        strangers=counts[1],
        stranger_probes=len(split.strangers),
        cmc=dict(zip(ranks, rates, strict=False)),
        points=[
            point if point.threshold is None else replace(point, fpir=fpir, dir=found)
            for point, fpir, found in zip(points, pairs[::2], pairs[1::2], strict=True)
        ],
    )  # fmt: skip


def _draw(counts: tuple[int, int], draw: int) -> list[Floats]:
    """Return how often each known person and each stranger is drawn, with replacement."""
    numbers = unit(raw_words(SEED, Stream.IDENTIFICATION, 2, draw, sum(counts)))
    parts = np.split(numbers, [counts[0]])
    return [
        np.bincount((part * count).astype(np.int64), minlength=count).astype(np.float64)
        for part, count in zip(parts, counts, strict=True)
    ]


def _threshold(score: Floats, weight: Floats, fpir: float) -> float:
    """Return the lowest threshold that scores of at most this share of weight reach."""
    order = np.argsort(-score, kind="stable")
    above = np.cumsum(weight[order])
    first_below = order[np.searchsorted(above, fpir * (1 + 1e-9), side="right")]
    return float(np.nextafter(score[first_below], np.inf))


def _at_quantile(strangers: Probes, fpir: float) -> IdentificationPoint:
    people = int(strangers.person.max()) + 1
    if people * fpir < MIN_EXPECTED_FALSE_ACCEPTS:
        least = round(MIN_EXPECTED_FALSE_ACCEPTS / fpir)
        reason = f"needs {least:,} strangers, there are {people:,}"
        return IdentificationPoint(max_fpir=fpir, set_by=OWN, reason=reason)
    threshold = _threshold(strangers.score, strangers.weights(np.ones(people)), fpir)
    return IdentificationPoint(max_fpir=fpir, set_by=OWN, threshold=threshold)


def _at_promise(model: MeasuredModel, fpir: float, enrolled: int) -> IdentificationPoint:
    threshold, reason = None, f"too few pairs behind the model's errors for {enrolled:,} photos"
    with suppress(NotEnough):
        threshold = identification_point(model, fpir, enrolled).threshold
        reason = "" if model.errors else "the model brings no measured errors"
    return IdentificationPoint(max_fpir=fpir, set_by=GALLERY, threshold=threshold, reason=reason)
