"""How often do the intervals of 95 % contain the truth?

People are drawn from a population whose rates are known, and measured as the product measures
them; the share of intervals that contain the truth should be .95. The population is a model fitted
to LFW's embeddings of the included model: every person has a centre, every photo lies around it,
some people and some photos farther than others, and people have from one to 40 photos, a third of
them one. A second verifier, with more noise, errs as often as a network trained on LFW alone.

    nice -n 10 python scripts/studies/coverage.py --out coverage.json --draws 1000

Draws are added to those that the file has already, so a run that was stopped goes on; the table is
printed from the file. `--people 60 250` and `--rates pairs` (or `identification`, `groups`) do a
part of it. Groups of 1,000 people take long: a tenth of the draws has them. A coverage in
parentheses is of a rate of which fewer than ten independent events are expected: people, or pairs
of people, who err, fewer where those with many photos count more than others.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.bundles.error_profile import Calibration, ErrorProfile
from facepairs.bundles.rates import ErrorTable, OperatingPoint
from facepairs.data.pairs import PairList
from facepairs.errors import NotEnough
from facepairs.evaluation.decisions import decide, decide_at
from facepairs.evaluation.error_rates import errors_by_group
from facepairs.evaluation.fitting import measure_errors
from facepairs.evaluation.grouping import (
    Cells,
    agreement,
    effective_people_pairs,
    measure_grouping,
)
from facepairs.evaluation.identification import Split, identification_figures, split_people
from facepairs.evaluation.lookalikes import find_lookalikes
from facepairs.evaluation.metrics.arrays import Interval
from facepairs.evaluation.metrics.comparison import PairwiseComparison, compare
from facepairs.evaluation.metrics.curves import threshold_at_fmr
from facepairs.evaluation.metrics.intervals import PeopleOfPairs, effective_number
from facepairs.evaluation.pair_scores import FaceHeap
from facepairs.evaluation.summary import summarise
from facepairs.grouping.linkage import average_linkage
from facepairs.support.atomic import atomic_file

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
VERIFIERS = ("included", "noisier")
PEOPLE = [30, 60, 250, 1000]
MOST_PAIRS = 10  # genuine ones, of a person
IMPOSTORS = 30_000
FARS = (0.1, 0.01, 0.001)
POOL, POOL_PAIRS = 150_000, 8_000_000
GALLERIES = 400
CUT = 0.05  # height up to which photos are grouped
FEW = 10  # independent events
SAVED = 25  # draws
SLOW = {("groups", 1000)}  # of which a tenth of the draws is made


class Photos(NamedTuple):
    """Photos of people: whose each is, int64[N], rising, and embeddings of both verifiers.

    Hard photos, bool[N], lie farther from their person's centre than most, as turned faces do.
    """

    person: Ints
    first: Rows
    second: Rows
    hard: Bools


def draw_photos(random: np.random.Generator, people: int) -> Photos:
    """Draw people and their photos."""
    counts = random.choice(PHOTOS, people)
    person = np.repeat(np.arange(people), counts)
    spread = OF_PERSON * random.standard_normal(people)[person]
    scale = np.exp(spread + OF_PHOTO * random.standard_normal(len(person)))[:, None]
    centre = random.standard_normal((people, len(BETWEEN))) * np.sqrt(BETWEEN)
    noise = (random.standard_normal((len(person), len(WITHIN))) for _ in range(2))
    own, other = (one * np.sqrt(WITHIN) * scale for one in noise)
    rows = centre[person] + NOISE * own
    both = [_with_offset(rows), _with_offset(rows + MORE_NOISE * other)]
    return Photos(person, *both, scale[:, 0] > HARD)


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


class Outcomes(dict[str, list[float]]):
    """What one draw gave: low, high, truth and expected independent events, by rate.

    Where the truth is a ratio over all draws, the draw's share of both its parts follows.
    """

    def note(
        self, name: str, interval: Interval, truth: float, events: float, *ratio: float
    ) -> None:
        """Note the interval of a rate."""
        self[name] = [*interval, float(truth), float(events), *ratio]


def fewer(rate: float, trials: float) -> float:
    """Return the expected number of independent events, or of their absence if that is smaller."""
    return min(rate, 1 - rate) * trials


def study_pairs(random: np.random.Generator, people: int) -> Outcomes:
    """Measure the rates of pairs as `evaluate` and `calibrate` do."""
    known, out = truth(), Outcomes()
    photos = draw_photos(random, people)
    pairs = draw_pairs(random, photos.person, IMPOSTORS)
    genuine, sides = pairs.genuine, (photos.person[pairs.left], photos.person[pairs.right])
    of = PeopleOfPairs(sides, len(genuine))
    trials, strangers = of.trials(genuine), of.trials(~genuine)
    scores, accepted = [], []
    for verifier, name in enumerate(VERIFIERS):
        score = score_pairs(photos[1 + verifier], pairs.left, pairs.right)
        cuts = [true_threshold(verifier), *(known.threshold(verifier, far) for far in FARS)]
        decisions = [decide_at(score, OperatingPoint(cut)) for cut in cuts]
        found = summarise(genuine, score, decisions, people=sides)
        right = known.balanced_accuracy(verifier, cuts[0])
        events = (1 - right) * 2 * trials
        out.note(f"balanced accuracy, {name}", found.balanced_accuracy.interval, right, events)
        auc = true_auc(verifier)
        out.note(f"AUC, {name}", found.auc.interval, auc, (1 - auc) * 2 * trials)
        rate = true_eer(verifier)
        events = fewer(rate, min(trials, strangers))
        out.note(f"EER, {name}", found.eer.interval, rate, events)
        for far, point, cut in zip(FARS, found.operating_points[1:], cuts[1:], strict=True):
            fmr, fnmr = known.fmr(verifier, cut), known.fnmr(verifier, cut)
            passed, missed, tar = point.errors.fmr, point.errors.fnmr, found.true_accepts(str(far))
            assert passed
            assert missed
            out.note(f"FMR {far:g}, {name}", passed.interval, fmr, fewer(fmr, strangers))
            events = fewer(fnmr, trials)
            out.note(f"FNMR at FMR {far:g}, {name}", missed.interval, fnmr, events)
            if tar:
                events = min(events, far * strangers)
                out.note(f"TAR at FAR {far:g}, {name}", tar.interval, 1 - fnmr, events)
        own = threshold_at_fmr(score[~genuine], 0.01)
        table = measure_errors(genuine, score, people=sides, thresholds=[own], measured_on="")
        fmr, fnmr = known.fmr(verifier, own), known.fnmr(verifier, own)
        row = table.thresholds.index(own)
        kind = f"bundle promising FMR 0.01, {name}"
        out.note(f"FMR of a {kind}", table.fmr[row][1:], fmr, fewer(fmr, strangers))
        out.note(f"FNMR of a {kind}", table.fnmr[row][1:], fnmr, fewer(fnmr, trials))
        scores.append(score)
        accepted.append(score >= cuts[0])
    _note_look_alikes(out, photos, pairs, of, scores[0])
    _note_group(out, photos, pairs, of, scores[1])
    _note_hard(out, photos, pairs, scores[0])
    _note_folds(out, pairs, photos.person, scores[1])
    (gaps,) = compare(VERIFIERS, genuine, scores, accepted, FARS, sides).differences
    _note_differences(out, gaps, trials, strangers)
    return out


def _note_differences(out: Outcomes, gaps: PairwiseComparison, trials: int, strangers: int) -> None:
    """Note the differences of both verifiers, of so many independent pairs of each class."""
    known = truth()
    rights = [known.balanced_accuracy(v, true_threshold(v)) for v in (0, 1)]
    areas = [true_auc(v) for v in (0, 1)]
    kinds = [("balanced accuracy", gaps.balanced_accuracy, rights), ("AUC", gaps.auc, areas)]
    for far in FARS:
        tars = [1 - known.fnmr(v, known.threshold(v, far)) for v in (0, 1)]
        if gap := gaps.tar_at_far.get(str(far)):
            events = min((1 - tars[0]) * trials, far * strangers)
            out.note(f"difference of TAR at FAR {far:g}", gap.interval, tars[0] - tars[1], events)
    for kind, gap, (first, second) in kinds:
        events = (1 - first) * 2 * trials
        out.note(f"difference of {kind}", gap.interval, first - second, events)


def _note_look_alikes(
    out: Outcomes, photos: Photos, pairs: Pairs, of: PeopleOfPairs, score: Floats
) -> None:
    """Note rates among look-alikes; the truth is that of all draws, as fewer people have other
    clusters."""
    left, right = pairs.left.astype(np.int32), pairs.right.astype(np.int32)
    alike = find_lookalikes(photos.first, photos.person, PairList.of(left, right, pairs.genuine))
    if alike is None:
        return
    number = float(alike.pairs.sum())
    for far in FARS:
        accepted = score >= truth().threshold(0, far)
        interval = of.interval(alike.pairs, accepted, list(alike.again))
        rate = float(accepted[alike.pairs].mean())
        events = fewer(rate, of.trials(alike.pairs))
        kind = f"FMR among look-alikes at FMR {far:g}"
        out.note(kind, interval, math.nan, events, rate * number, number)


def _note_group(
    out: Outcomes, photos: Photos, pairs: Pairs, of: PeopleOfPairs, score: Floats
) -> None:
    """Note the errors within a group of people."""
    inside = in_group(photos)
    accepted = score >= truth().threshold(1, 0.01)
    within = inside[pairs.left] & inside[pairs.right]
    people = photos.person[pairs.left], photos.person[pairs.right]
    errors = errors_by_group({"": within}, pairs.genuine, accepted, people)[""]
    rates = true_group()
    for kind, rate, wrong, members in (
        ("FMR", errors.fmr, rates[0], within & ~pairs.genuine),
        ("FNMR", errors.fnmr, rates[1], within & pairs.genuine),
    ):
        if rate is not None:
            events = fewer(wrong, of.trials(members))
            out.note(f"{kind} in a group, noisier", rate.interval, wrong, events)


def _note_hard(out: Outcomes, photos: Photos, pairs: Pairs, score: Floats) -> None:
    """Note the errors of pairs with a hard photo, as bundles have those of turned faces."""
    shown = photos.hard[pairs.left] | photos.hard[pairs.right]
    genuine, score, cut = pairs.genuine[shown], score[shown], truth().threshold(0, 0.01)
    if genuine.all() or not genuine.any():
        return
    people = photos.person[pairs.left][shown], photos.person[pairs.right][shown]
    table = measure_errors(genuine, score, people=people, thresholds=[cut], measured_on="")
    found, of = table.at(cut), PeopleOfPairs(people, len(score))
    for kind, rate, wrong, members in zip(
        ("FMR", "FNMR"), (found.fmr, found.fnmr), true_hard(), (~genuine, genuine), strict=True
    ):
        assert rate
        events = fewer(wrong, of.trials(members))
        out.note(f"{kind} of pairs with a hard photo", rate.interval, wrong, events)


def _note_folds(out: Outcomes, pairs: Pairs, person: Ints, score: Floats) -> None:
    """Note the mean of ten folds of people, each decided with the threshold of the others."""
    fold = person % 10 + 1
    inside = fold[pairs.left] == fold[pairs.right]
    genuine, score, fold = pairs.genuine[inside], score[inside], fold[pairs.left][inside]
    people = person[pairs.left][inside], person[pairs.right][inside]
    with suppress(NotEnough):
        found = summarise(genuine, score, [decide(genuine, score, None, fold)], people=people)
        if found.balanced_accuracy.standard_error is not None:
            cuts = [part.threshold for part in found.folds if part.threshold is not None]
            right = np.mean([truth().balanced_accuracy(1, cut) for cut in cuts])
            events = (1 - right) * 2 * PeopleOfPairs(people, len(score)).trials(genuine)
            interval = found.balanced_accuracy.interval
            out.note("balanced accuracy over ten folds, noisier", interval, float(right), events)


def model_at(threshold: float, fmr: float = 1e-9) -> ErrorProfile:
    """Return what was measured of a model that keeps to a low FMR from a threshold on."""
    rows = ((1.0, 1.0, 1.0), (fmr, fmr, fmr))
    errors = ErrorTable(
        measured_on="",
        people=None,
        genuine_pairs=10**9,
        impostor_pairs=10**12,
        lookalike_pairs=None,
        thresholds=(-1.0, threshold),
        fmr=rows,
        lookalike_fmr=None,
        fnmr=rows,
    )
    return ErrorProfile(calibration=Calibration(1.0, 0.0, False, None), errors=errors)


def study_identification(random: np.random.Generator, people: int) -> Outcomes:
    """Measure identification as `evaluate --identification` does."""
    out, (cut, dir_at_cut) = Outcomes(), true_identification(people)
    photos = draw_photos(random, people)
    split = split_people(photos.person)
    model, rows = model_at(cut), photos.second
    found = identification_figures(model, rows, photos.person, split, _dot)  # type: ignore[arg-type]
    score, first, known, strangers = _probes(photos, split)
    fpir = _shares(photos.person[split.strangers], score[len(split.known) :] >= cut)
    reached = _shares(photos.person[split.known], first & (score[: len(split.known)] >= cut))
    ranked = _shares(photos.person[split.known], first)
    events = fewer(dir_at_cut, known)
    rank1 = found.cmc[1]
    out.note("rank-1 rate", rank1.interval, math.nan, fewer(rank1.value, known), *ranked)
    for point in found.points:
        if point.max_fpir != 0.1 or point.fpir is None or point.dir is None:
            continue
        if point.set_by == "gallery":
            out.note("FPIR at a threshold", point.fpir.interval, math.nan, 0.1 * strangers, *fpir)
            out.note("DIR at a threshold", point.dir.interval, math.nan, events, *reached)
        else:
            least = min(events, 0.1 * strangers)
            out.note("DIR at FPIR 0.1", point.dir.interval, dir_at_cut, least)
    return out


def _dot(left: Rows, right: Rows) -> Rows:
    return np.einsum("ij,ij->i", left, right)


def _probes(photos: Photos, split: Split) -> tuple[Floats, Bools, int, int]:
    """Return the best score of each photo asked for, first of known people; which of these rank
    first; and the numbers of known people and of strangers."""
    enrolled, starts = np.unique(photos.person[split.enrolled], return_index=True)
    asked = np.concatenate([split.known, split.strangers])
    scores = photos.second[asked] @ photos.second[split.enrolled].T
    best = np.maximum.reduceat(scores, starts, axis=1)
    first = enrolled[best[: len(split.known)].argmax(axis=1)] == photos.person[split.known]
    strangers = len(np.unique(photos.person[split.strangers]))
    return best.max(axis=1).astype(np.float64), first, len(enrolled), strangers


def _shares(person: Ints, events: Bools) -> tuple[float, int]:
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
        score, first, _, _ = _probes(photos, split)
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


def study_groups(random: np.random.Generator, people: int) -> Outcomes:
    """Group photos, compare groups with people, and measure how often strangers are joined."""
    out, photos = Outcomes(), draw_photos(random, people)
    merges = average_linkage(photos.first, CUT)
    found = agreement(photos.person, merges.labels(CUT))
    cells = Cells.of(photos.person, merges.labels(CUT))
    genuine, joined, impostor, mixed = (float(part.sum()) for part in cells.pairs)
    mixed, impostor, faces = mixed / 2, impostor / 2, float(cells.count.sum())
    of_person = cells.sum_by_person(cells.count)
    by_pair, by_face = map(effective_number, (cells.pairs.genuine, of_person))
    for name, rate in found.figures.items():
        if rate is not None:
            ratio = {
                "pair_precision": (joined, joined + mixed),
                "pair_recall": (joined, genuine),
                "pair_f1": (2 * joined, joined + mixed + genuine),
                "v_measure": (rate.value, 1.0),
            }.get(name, (rate.value * faces, faces))
            events = fewer(rate.value, by_pair if name.startswith("pair") else by_face)
            words = name.replace("_", " ").replace("b3", "B³")
            out.note(f"groups: {words}", rate.interval, math.nan, events, *ratio)
    of_photos = model_at(1 - 2 * CUT, fmr=0.001).errors  # heights up to twice `CUT` are measured
    assert of_photos
    errors = measure_grouping([FaceHeap(photos.first, photos.person)], of_photos)
    for share in (0.4, 0.6):
        row = int(share * len(errors.cuts))
        value, *interval = errors.linked[row]
        events = value * effective_people_pairs(of_person[:, None])
        kind = f"strangers joined at height {errors.cuts[row]:.3f}"
        out.note(kind, (interval[0], interval[1]), math.nan, events, value * impostor, impostor)
    return out


STUDIES: dict[str, Callable[[np.random.Generator, int], Outcomes]] = {
    "pairs": study_pairs,
    "identification": study_identification,
    "groups": study_groups,
}


def run(out: Path, studies: list[str], people: list[int], draws: int) -> None:
    """Add draws to the file until it has as many as asked for."""
    done = json.loads(out.read_text()) if out.exists() else {}
    for study in studies:
        for count in people:
            rows = done.setdefault(f"{study} {count}", [])
            wanted = draws // 10 if (study, count) in SLOW else draws
            while len(rows) < wanted:
                for _ in range(min(SAVED, wanted - len(rows))):
                    random = np.random.default_rng([count, len(rows), len(study)])
                    rows.append(STUDIES[study](random, count))
                with atomic_file(out) as handle:
                    json.dump(done, handle)
                print(f"{study}, {count} people: {len(rows)} of {wanted} draws", flush=True)


def coverage(rows: list[list[float]]) -> str:
    """Return the share of intervals that contain the truth, with its standard error."""
    low, high, true, events, *ratio = np.array(rows).T
    if ratio:
        true = np.full(len(low), ratio[0].sum() / ratio[1].sum())
    share = float(((low <= true) & (true <= high)).mean())
    error = math.sqrt(max(share * (1 - share), 1 / len(low)) / len(low))
    text = f"{share:.3f} ± {error:.3f}"
    return f"({text})" if np.mean(events) < FEW else text


def table(out: Path, people: list[int]) -> Iterator[str]:
    """Yield the lines of the table."""
    done = json.loads(out.read_text())
    yield "| rate | " + " | ".join(f"{count:,} people" for count in people) + " |"
    yield "| --- |" + " --- |" * len(people)
    for study in STUDIES:
        columns = [done.get(f"{study} {count}", []) for count in people]
        names = dict.fromkeys(name for draws in columns for draw in draws for name in draw)
        for name in names:
            cells = []
            for draws in columns:
                rows = [draw[name] for draw in draws if name in draw]
                cells.append(coverage(rows) if len(rows) > len(draws) / 2 else "")
            yield f"| {name} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="File of the draws so far.")
    parser.add_argument("--draws", type=int, default=1_000)
    parser.add_argument("--people", type=int, nargs="+", default=PEOPLE)
    parser.add_argument("--rates", nargs="+", choices=list(STUDIES), default=list(STUDIES))
    given = parser.parse_args()
    run(given.out, given.rates, given.people, given.draws)
    print("\n".join(table(given.out, given.people)))


if __name__ == "__main__":
    main()
