"""The errors of two models on the same pairs: of the people of a gallery that was migrated."""

import numpy as np

from facepairs.bundles.scorer import pair_scores
from facepairs.data.sampler import distinct_pairs
from facepairs.errors import NotEnough
from facepairs.evaluation.metrics.arrays import Interval
from facepairs.evaluation.metrics.comparison import Difference
from facepairs.evaluation.metrics.curves import pairs_needed
from facepairs.evaluation.metrics.estimates import difference, tar_at_far
from facepairs.evaluation.metrics.intervals import PeopleOfPairs
from facepairs.gallery.gallery import Gallery
from facepairs.support.extras import require_extra
from facepairs.support.results import Result

PAIRS, FARS = 20_000, (0.001, 0.01, 0.1)


class ModelsCompared(Result, frozen=True, kw_only=True):
    """Genuine pairs that two models miss, each at its own threshold for a false match rate.

    Attributes:
        fmr: The false match rate: the smallest of .001, .01 and .1 for which the pairs suffice.
        fnmr: The share of genuine pairs missed, of the old model and of the new one.
        intervals: Their intervals of 95 %, over people.
        difference: The old model's share less that of the new one.
        people: Number of people in the pairs.
        genuine_pairs: Number of genuine pairs.
        impostor_pairs: Number of impostor pairs.
    """

    fmr: float
    fnmr: tuple[float, float]
    intervals: tuple[Interval, Interval]
    difference: Difference
    people: int
    genuine_pairs: int
    impostor_pairs: int


def compare_models(old: Gallery, new: Gallery) -> ModelsCompared:
    """Compare the models of two galleries on the photos that both have.

    Raises:
        NotEnough: They have too few in common.
        MissingExtra: The extra `measure` is not installed.
    """
    require_extra("measure", "comparing the models")
    former = {face.digest: face for face in old.store.faces()}
    both = [face for face in new.store.faces() if face.digest in former]
    both.sort(key=lambda face: (face.person, face.digest))
    names, first = np.unique([face.person for face in both], return_index=True)
    ends = np.append(first, len(both)).astype(np.int64)
    pairs = distinct_pairs(ends, np.arange(len(names)), PAIRS, seed=0)
    genuine, person = pairs.genuine, np.repeat(np.arange(len(names)), np.diff(ends))
    impostors = int((~genuine).sum())
    fmr = next((far for far in FARS if pairs_needed(far) <= impostors), None)
    if fmr is None:
        raise NotEnough(f"{impostors:,} impostor pairs are too few; enrol more people")
    scores = []
    for faces in ([former[face.digest] for face in both], both):
        rows = np.stack([face.vector for face in faces]).astype(np.float32)
        scores.append(pair_scores(rows[pairs.left], rows[pairs.right]).astype(np.float64))
    sides = person[pairs.left], person[pairs.right]
    sample = PeopleOfPairs(sides, len(pairs))
    tars = [tar_at_far(sample, genuine, score, fmr) for score in scores]
    gap = difference(tars[1], tars[0], sample, genuine)  # of what is missed, the old less the new
    lows, highs = zip(*(tar.interval(sample, genuine) for tar in tars), strict=True)
    return ModelsCompared(
        fmr=fmr,
        fnmr=(1 - tars[0].value, 1 - tars[1].value),
        intervals=((1 - highs[0], 1 - lows[0]), (1 - highs[1], 1 - lows[1])),
        difference=Difference(*gap),
        people=len(names),
        genuine_pairs=int(genuine.sum()),
        impostor_pairs=impostors,
    )
