"""How often do the intervals of 95 % contain the truth?

People are drawn from a population whose rates are known, and measured as the product measures
them (`drawn_population.py`); the share of intervals that contain the truth should be .95.

    nice -n 10 python scripts/studies/coverage.py --out coverage.json --draws 1000

Draws are added to those that the file has already, so a run that was stopped goes on; the table is
printed from the file. `--people 60 250` and `--rates pairs` (or `identification`, `groups`,
`parts`) do a part of it. Groups of 1,000 people take long: a tenth of the draws has them. A
coverage in parentheses is of a rate of which fewer than ten independent events are expected:
people, or pairs of people, who err, fewer where those with many photos count more than others.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
from coverage_of_parts import note_parts
from drawn_population import (
    Floats,
    Ints,
    Pairs,
    Photos,
    Rows,
    draw_pairs,
    draw_photos,
    in_group,
    probe_scores,
    score_pairs,
    shares_of_people,
    true_auc,
    true_eer,
    true_group,
    true_hard,
    true_identification,
    true_threshold,
    truth,
)

from facepairs.bundles.error_profile import Calibration, ErrorProfile
from facepairs.bundles.rates import ErrorTable, OperatingPoint
from facepairs.data.pairs import PairList
from facepairs.errors import NotEnough
from facepairs.evaluation.error_rates import decide, decide_at, errors_by_group
from facepairs.evaluation.fitting import measure_errors
from facepairs.evaluation.grouping import Cells, agreement
from facepairs.evaluation.identification import identification_figures, split_people
from facepairs.evaluation.lookalikes import find_lookalikes
from facepairs.evaluation.metrics.arrays import Interval
from facepairs.evaluation.metrics.comparison import PairwiseComparison, compare
from facepairs.evaluation.metrics.curves import threshold_at_fmr
from facepairs.evaluation.metrics.intervals import PeopleOfPairs, effective_number
from facepairs.evaluation.summary import summarise
from facepairs.grouping.linkage import average_linkage
from facepairs.support.atomic import atomic_file

VERIFIERS = ("included", "noisier")
PEOPLE = [30, 60, 250, 1000]
IMPOSTORS = 30_000
FARS = (0.1, 0.01, 0.001)
CUT = 0.05  # height up to which photos are grouped
FEW = 10  # independent events
SAVED = 25  # draws
SLOW = {("groups", 1000)}  # of which a tenth of the draws is made


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
        found = summarise(genuine, score, decisions, of)
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
        table = measure_errors(genuine, score, of, thresholds=[own], measured_on="")
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
    (gaps,) = compare(VERIFIERS, genuine, scores, accepted, FARS, of).differences
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
    cuts = [true_threshold(verifier) for verifier in (0, 1)]
    for kind, gap, of, trials_of in (
        ("FMR", gaps.fmr, known.fmr, strangers),
        ("FNMR", gaps.fnmr, known.fnmr, trials),
    ):
        rates = [of(verifier, cut) for verifier, cut in enumerate(cuts)]
        events = fewer(min(rates), trials_of)
        out.note(f"difference of {kind}", gap.interval, rates[0] - rates[1], events)
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
    errors = errors_by_group({"": within}, pairs.genuine, accepted, of)[""]
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
    of = PeopleOfPairs(people, len(score))
    found = measure_errors(genuine, score, of, thresholds=[cut], measured_on="").at(cut)
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
    of = PeopleOfPairs((person[pairs.left][inside], person[pairs.right][inside]), len(score))
    with suppress(NotEnough):
        found = summarise(genuine, score, [decide(genuine, score, None, fold)], of)
        if found.balanced_accuracy.standard_error is not None:
            cuts = [part.threshold for part in found.folds if part.threshold is not None]
            right = np.mean([truth().balanced_accuracy(1, cut) for cut in cuts])
            events = (1 - right) * 2 * of.trials(genuine)
            interval = found.balanced_accuracy.interval
            out.note("balanced accuracy over ten folds, noisier", interval, float(right), events)


def model_at(threshold: float) -> ErrorProfile:
    """Return what was measured of a model that keeps to a low FMR from a threshold on."""
    rows = ((1.0, 1.0, 1.0), (1e-9, 1e-9, 1e-9))
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
    score, first, known, strangers = probe_scores(photos, split)
    fpir = shares_of_people(photos.person[split.strangers], score[len(split.known) :] >= cut)
    passed = score[: len(split.known)] >= cut
    reached = shares_of_people(photos.person[split.known], first & passed)
    ranked = shares_of_people(photos.person[split.known], first)
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


def study_groups(random: np.random.Generator, people: int) -> Outcomes:
    """Group photos, and compare groups with people."""
    out, photos = Outcomes(), draw_photos(random, people)
    merges = average_linkage(photos.first, CUT)
    found = agreement(photos.person, merges.labels(CUT))
    cells = Cells.of(photos.person, merges.labels(CUT))
    genuine, joined, _, mixed = (float(part.sum()) for part in cells.pairs)
    mixed, faces = mixed / 2, float(cells.count.sum())
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
    return out


def study_parts(random: np.random.Generator, people: int) -> Outcomes:
    """Measure failures, groups and factors as `evaluate --groups --factors` does."""
    out, photos = Outcomes(), draw_photos(random, people)
    note_parts(out.note, random, photos, draw_pairs(random, photos.person, IMPOSTORS))
    return out


STUDIES: dict[str, Callable[[np.random.Generator, int], Outcomes]] = {
    "pairs": study_pairs,
    "identification": study_identification,
    "groups": study_groups,
    "parts": study_parts,
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
