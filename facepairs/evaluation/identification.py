"""Open-set identification: how often known people are found, and strangers mistaken for them.

Half of the people with several photos are known: up to three photos of each are enrolled, and the
others are asked for. All others are strangers. As in a gallery, a person's score is that of the
most similar enrolled photo, and the highest score decides. Every person counts once, however many
photos there are.

References:
    Phillips, Grother and Micheals, "Evaluation Methods in Face Recognition", in: Handbook of Face
    Recognition, Springer 2011.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.bundles.error_profile import ErrorProfile, identification_point
from facepairs.bundles.rates import Rate
from facepairs.bundles.scorer import ScoreArray
from facepairs.data.index import FaceIndex
from facepairs.data.minimums import MIN_EXPECTED_FALSE_ACCEPTS
from facepairs.errors import NotEnough
from facepairs.evaluation.metrics.arrays import Floats, Ints
from facepairs.evaluation.metrics.estimates import thresholds_around
from facepairs.evaluation.metrics.intervals import (
    Spread,
    rate_interval,
    rate_intervals,
    spread_over_people,
)
from facepairs.evaluation.pair_scores import embed_images
from facepairs.photos.subject_faces import SubjectFaces
from facepairs.support.random_streams import Stream, raw_words
from facepairs.verification.verifier import Verifier

SEED = 0
MOST_ENROLLED = 3
FPIRS = (0.01, 0.1)
RANKS = (1, 2, 3, 5, 10, 20)
DIGITS = 12  # of a rate; sums of weights end a little above or below 1
OWN: Final = "strangers"
GALLERY: Final = "gallery"
STEPS = 128  # thresholds at which the slope of DIR over FPIR is looked for


class IdentificationPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The errors at one threshold; intervals of 95 % know that photos of a person recur.

    Attributes:
        max_fpir: The false-positive identification rate that was asked for.
        set_by: `strangers`, whose highest scores here give the threshold, a point of a curve; or
            `gallery`, as `gallery identify` sets it, from the model's own errors and the number of
            enrolled photos.
        threshold: None where the data or the model do not support the rate.
        fpir: Share of strangers misidentified (false-positive identification rate).
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


class IdentificationFigures(msgspec.Struct, frozen=True, kw_only=True):
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
    """Photos asked for.

    Attributes:
        person: int64[N], whose each is, from 0.
        score: float64[N], the best score.
        best: int64[N], who of the enrolled people has it.
        rank: int64[N], the rank of the photo's own person; 0 for strangers.
    """

    person: Ints
    score: Floats
    best: Ints
    rank: Ints

    def reach(self, threshold: float) -> npt.NDArray[np.bool_]:
        """Return which photos rank first, if their person is enrolled, and reach a threshold."""
        reached: npt.NDArray[np.bool_] = (self.rank <= 1) & (self.score >= threshold)
        return reached

    def by_person(self, events: npt.NDArray[np.bool_]) -> Floats:
        """Return the share of each person's photos with an event: bool[N, ...] to [people, ...]."""
        photos = np.bincount(self.person)
        sums = np.zeros((len(photos), *events.shape[1:]))
        np.add.at(sums, self.person, events)
        return (sums.T / photos).T


def measure_identification(
    verifier: Verifier, index: FaceIndex, faces: SubjectFaces
) -> IdentificationFigures:
    """Measure a model on the people whom it does not know.

    Args:
        verifier: The model.
        index: The photos.
        faces: Which face of each photo it sees; photos without a usable one are left out.

    Raises:
        BadBundle: The model has no embeddings.
        NotEnough: Fewer than two people have several photos, or there are no strangers.
    """
    model = verifier.model
    model.check_embeds("identification compares them")
    images = np.flatnonzero(~model.origin.identities.knows(list(index.people))[index.person_of])
    rows, failures = embed_images(verifier, index, images, faces)
    usable = ~np.isin(images, list(failures))
    person = index.person_of[images[usable]].astype(np.int64)
    split = split_people(person)
    return identification_figures(model.profile, rows[usable], person, split, verifier.compare)


def split_people(person: Ints) -> Split:
    """Split photos; the same for the same people and numbers of photos.

    Args:
        person: int64[N], whose each photo is, rising.

    Raises:
        NotEnough: Fewer than two people have several photos.
    """
    _, first, counts = np.unique(person, return_index=True, return_counts=True)
    several = np.flatnonzero(counts > 1)
    if len(several) < 2:
        raise NotEnough(
            "identification needs at least two people with several photos, unknown to the model: "
            f"half of them are enrolled, the others are strangers; the folder has {len(several)}"
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
    profile: ErrorProfile,
    embeddings: ScoreArray,
    person: Ints,
    split: Split,
    compare: Callable[[ScoreArray, ScoreArray], ScoreArray],
) -> IdentificationFigures:
    """Compute the figures of embedded photos.

    Args:
        profile: Its errors set the threshold of `gallery identify`.
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
        whose = np.unique(person[places], return_inverse=True)[1]
        return Probes(whose, scores.max(axis=1), scores.argmax(axis=1), rank)

    known = ask(split.known, np.searchsorted(people, person[split.known]))
    strangers = ask(split.strangers, None)
    points = [
        *(_at_quantile(strangers, fpir) for fpir in FPIRS),
        *(_at_promise(profile, fpir, len(enrolled)) for fpir in FPIRS),
    ]
    ranks = [rank for rank in RANKS if rank <= len(people)]
    measured = [_measure(point, known, strangers) for point in points]
    return IdentificationFigures(
        known=len(people),
        enrolled=len(enrolled),
        known_probes=len(split.known),
        strangers=int(strangers.person.max()) + 1,
        stranger_probes=len(split.strangers),
        cmc={rank: _mean(known.by_person(known.rank <= rank)) for rank in ranks},
        points=measured,
    )


def _mean(shares: Floats) -> Rate:
    """Return the mean over people of shares, float64[people], with its interval."""
    value = float(np.round(shares.mean(), DIGITS))
    return Rate(value, rate_interval(value, _spread(shares), 1 / len(shares)))


def _spread(shares: Floats, *others: Floats) -> Spread:
    """Return the spread of a mean over people, plus that of deviations of other people, if any."""
    people = len(shares)
    influence = np.concatenate([(shares - shares.mean(axis=0)) / people, *others])
    leverage = np.full(len(influence), 1 / people)
    return spread_over_people(influence, leverage)


def _measure(point: IdentificationPoint, known: Probes, strangers: Probes) -> IdentificationPoint:
    """Return a point with its rates, if it has a threshold."""
    if point.threshold is None:
        return point
    taken = strangers.by_person(strangers.reach(point.threshold))
    found = known.by_person(known.reach(point.threshold))
    rate = _mean(found)
    if point.set_by == OWN:  # the threshold is uncertain, too
        influence = (taken - taken.mean()) / len(taken)
        slopes = _slopes(point.threshold, point.max_fpir, known, strangers)
        spreads = [_spread(found, -slope * influence) for slope in slopes]
        ends = [rate_interval(rate.value, spread, 1 / len(found)) for spread in spreads]
        rate = Rate(rate.value, (ends[0][0], ends[1][1]))
    return msgspec.structs.replace(point, fpir=_fpir(taken, point.threshold, strangers), dir=rate)


def _fpir(taken: Floats, threshold: float, strangers: Probes) -> Rate:
    """Return the FPIR; strangers who are taken for the same enrolled person err together."""
    photos = np.bincount(strangers.person)[strangers.person] * len(taken)
    weight = (strangers.score >= threshold) / photos
    of_enrolled = np.bincount(strangers.best, weight)
    of_both = np.bincount(strangers.person * len(of_enrolled) + strangers.best, weight)
    mean = weight.sum() / len(of_enrolled)
    together = ((of_enrolled - mean) ** 2).sum() - (of_both**2).sum()
    spread = _spread(taken)
    spread = Spread(spread.variance + max(0.0, together), spread.degrees)
    value = float(np.round(taken.mean(), DIGITS))
    return Rate(value, rate_interval(value, spread, 1 / len(taken)))


def _slopes(
    threshold: float, max_fpir: float, known: Probes, strangers: Probes
) -> tuple[float, float]:
    """Return how fast DIR rises with FPIR towards stricter thresholds, and towards laxer ones.

    As for TAR at FAR, see `metrics.estimates.tar_at_far`.
    """
    grid = np.nextafter(np.unique(np.quantile(strangers.score, np.linspace(0, 1, STEPS))), np.inf)
    taken = strangers.by_person(strangers.score[:, None] >= grid)
    low, high = rate_intervals(taken.mean(axis=0), _spread(taken), 1 / len(taken))
    slopes = []
    for end in thresholds_around(grid, low, high, max_fpir):
        changes = [
            probes.by_person(probes.reach(end)).mean()
            - probes.by_person(probes.reach(threshold)).mean()
            for probes in (known, strangers)
        ]
        slopes.append(changes[0] / changes[1] if changes[1] else 0.0)
    return slopes[0], slopes[1]


def _at_quantile(strangers: Probes, fpir: float) -> IdentificationPoint:
    """Return the lowest threshold that keeps to an FPIR on these strangers."""
    people = int(strangers.person.max()) + 1
    if people * fpir < MIN_EXPECTED_FALSE_ACCEPTS:
        least = round(MIN_EXPECTED_FALSE_ACCEPTS / fpir)
        reason = f"needs {least:,} strangers, there are {people:,}"
        return IdentificationPoint(max_fpir=fpir, set_by=OWN, reason=reason)
    order = np.argsort(-strangers.score, kind="stable")
    weight = (np.ones(people) / np.bincount(strangers.person))[strangers.person]
    above = np.cumsum((weight / weight.sum())[order])
    first_below = order[np.searchsorted(above, fpir * (1 + 1e-9), side="right")]
    threshold = float(np.nextafter(strangers.score[first_below], np.inf))
    return IdentificationPoint(max_fpir=fpir, set_by=OWN, threshold=threshold)


def _at_promise(profile: ErrorProfile, fpir: float, enrolled: int) -> IdentificationPoint:
    """Return the threshold of `gallery identify`, or why the model supports none."""
    threshold, reason = None, "the model brings no measured errors"
    if profile.errors:
        try:
            threshold, reason = identification_point(profile, fpir, enrolled).threshold, ""
        except NotEnough:
            reason = f"too few pairs behind the model's errors for {enrolled:,} photos"
    return IdentificationPoint(max_fpir=fpir, set_by=GALLERY, threshold=threshold, reason=reason)
