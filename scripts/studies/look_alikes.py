"""How many clusters of look-alikes, and what a threshold promises to groups of people.

    python scripts/studies/look_alikes.py BUNDLE DATA --lists LISTS --groups groups.csv

On the people of LFW's View 1 test set, for a bundle that was trained for View 1. One photo of every
person forms the impostor pairs, all of them; at most ten pairs of each person are genuine. Tells,
for a promised FMR of .01 over all strangers and among look-alikes with 2 to 32 clusters: the
threshold, the share of genuine pairs missed, the FMR over all strangers, within each group of
`groups.csv` (person,group), and within the best and the worst of 8 clusters, without those of a few
people. The last rows normalise scores with a cohort of other people of the set: half the sum of
(score - mean) / deviation of each photo's 20 highest scores with the cohort (adaptive symmetric
normalisation, Matejka et al., Interspeech 2017).
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.cli.shared.output import ERROR, log, print_error, showing_on_stderr
from facepairs.data.groups import read_groups
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import list_path, read_people
from facepairs.data.minimums import limit_pairs_per_person
from facepairs.data.sampler import distinct_pairs
from facepairs.errors import FacepairsError, NotEnough
from facepairs.evaluation.lookalikes import CLUSTERS, find_clusters
from facepairs.evaluation.metrics.curves import threshold_at_fmr
from facepairs.evaluation.pair_scores import embed_images
from facepairs.support.words import align_columns
from facepairs.verification.verifier import Verifier

TARGET = 0.01
COUNTS = (2, 4, 6, 8, 12, 16, 32)
ENOUGH = 1_000  # pairs of a cluster whose FMR is told
GENUINE = 20_000  # drawn; ten of each person are kept
COHORT_SHARE, COHORT_TOP = 0.3, 20
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of genuine and impostor pairs, and the impostor pairs of each named group."""

    genuine: Floats
    impostor: Floats
    groups: dict[str, Bools]

    def row(self, name: str, promised: Bools, clusters: npt.NDArray[np.int16]) -> list[str]:
        """Return a row of the table for a promise among some impostor pairs."""
        threshold = threshold_at_fmr(self.impostor[promised], TARGET)
        accepted = self.impostor >= threshold
        members = [clusters == k for k in range(1, clusters.max() + 1)]
        within = [float(accepted[one].mean()) for one in members if one.sum() >= ENOUGH]
        named = [f"{accepted[one].mean():.4f}" for one in self.groups.values()]
        return [
            name,
            f"{threshold:.3f}",
            f"{(self.genuine < threshold).mean():.3f}",
            f"{accepted.mean():.4f}",
            *named,
            f"{min(within):.3f} to {max(within):.3f}" if within else "-",
        ]


def study(bundle: str, data: Path, lists: Path, groups_csv: Path) -> list[list[str]]:
    """Return the table's rows, the header first."""
    index = FaceIndex.scan(data)
    people = np.concatenate(read_people(list_path(lists, "peopleDevTest.txt"), index))
    images = np.flatnonzero(np.isin(index.person_of, people))
    verifier = Verifier.load(bundle, threads=1)
    embeddings, _ = embed_images(verifier, index, images)
    person = index.person_of[images].astype(np.int64)

    random = np.random.default_rng(0)
    order = random.permutation(len(images))
    one = order[np.unique(person[order], return_index=True)[1]]  # a photo of every person
    left, right = (one[side] for side in np.triu_indices(len(one), 1))
    pairs = distinct_pairs(index.first, people, GENUINE, 0)
    same = limit_pairs_per_person(pairs.where(pairs.genuine), index.person_of)
    a, b = (np.searchsorted(images, side) for side in (same.left, same.right))

    names = [index.people[int(p)] for p in person]
    inside = read_groups(groups_csv).among(names)
    members = {name: who[left] & who[right] for name, who in inside.items()}
    compare = verifier.scorer.compare
    raw = Scored(
        compare(embeddings[a], embeddings[b]).astype(np.float64),
        (embeddings[one] @ embeddings[one].T)[np.triu_indices(len(one), 1)].astype(np.float64),
        members,
    )
    eight = _clusters(embeddings, person, CLUSTERS, left, right)
    everyone = np.ones(len(left), bool)
    rows = [["promise", "threshold", "FNMR", "FMR", *members, f"FMR of {CLUSTERS} clusters"]]
    rows.append(raw.row(f"{TARGET} of all strangers", everyone, eight))
    for count in COUNTS:
        alike = _clusters(embeddings, person, count, left, right) > 0
        rows.append(raw.row(f"{TARGET} of look-alikes, {count} clusters", alike, eight))

    cohort = random.random(len(index.people)) < COHORT_SHARE
    tested, kept = ~(cohort[person[left]] | cohort[person[right]]), ~cohort[person[a]]
    groups = {name: who[tested] for name, who in members.items()}
    plain = Scored(raw.genuine[kept], raw.impostor[tested], groups)
    top = np.sort(embeddings @ embeddings[one][cohort[person[one]]].T, axis=1)[:, -COHORT_TOP:]
    mean, deviation = top.mean(axis=1), top.std(axis=1)

    def normalised(score: Floats, x: npt.NDArray[np.intp], y: npt.NDArray[np.intp]) -> Floats:
        halves = ((score - mean[side]) / deviation[side] for side in (x, y))
        return np.asarray(sum(halves) / 2, np.float64)

    after = Scored(
        normalised(plain.genuine, a[kept], b[kept]),
        normalised(plain.impostor, left[tested], right[tested]),
        groups,
    )
    for name, scored in (("others than the cohort", plain), ("the same, normalised", after)):
        clusters = eight[tested]
        rows.append(scored.row(f"{TARGET} of look-alikes, {name}", clusters > 0, clusters))
    log(f"{len(one):,} people, {len(raw.genuine):,} genuine and {len(left):,} impostor pairs")
    return rows


def _clusters(
    embeddings: npt.NDArray[np.float32],
    person: npt.NDArray[np.int64],
    count: int,
    left: npt.NDArray[np.intp],
    right: npt.NDArray[np.intp],
) -> npt.NDArray[np.int16]:
    found = find_clusters(embeddings, person, count)
    if found is None:
        raise NotEnough("too few people to tell who looks alike; give all of LFW's")
    return np.where(found[left] == found[right], found[left], 0).astype(np.int16)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle", help="trained with --lists")
    parser.add_argument("data", type=Path, help="LFW: Person_Name/photo.jpg")
    parser.add_argument("--lists", type=Path, required=True)
    parser.add_argument("--groups", type=Path, required=True, help="CSV person,group")
    options = parser.parse_args(arguments)
    try:
        with showing_on_stderr():
            rows = study(options.bundle, options.data, options.lists, options.groups)
    except FacepairsError as error:
        print_error(error.kind, str(error), False)
        return ERROR
    print("\n".join(align_columns(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
