"""Compare networks on all 6.9 million pairs of the photos of View 1's test people.

    python scripts/studies/trials.py BUNDLE [NAME=BUNDLE …] DATA --lists LISTS

Each network is a bundle that was trained with `--lists`, or an `.npz` file with
`images` int64[N] (positions in DATA's index) and `embeddings` float32[N, D]. Embeddings of a bundle
are kept in --keep FOLDER as such files. The thousand official pairs have a standard error of .85
points; this table sees differences of a quarter of a point.

All pairs of two photos are scored. A person's genuine pairs count once in all, so the few people
with hundreds of photos do not decide the figures; all impostor pairs count equally. Columns:

- balanced accuracy at the best threshold, AUC, TAR at FAR .01, .001 and .0001;
- of 8 clusters of look-alikes (by the first network's embeddings), the
  highest and the mean FMR, at the threshold of FMR .01 over all strangers;
- the correlation of its scores with the first network's, among impostors and among genuine pairs:
  the lower, the more a fusion of both can gain;
- the gain over the first network, with an interval of 95 % from a paired bootstrap over people
  (a pair counts as often as its people are drawn, multiplied).
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from facepairs.cli.shared.output import ERROR, print_error
from facepairs.cli.shared.progress import showing_on_stderr
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import list_path, read_people
from facepairs.errors import BadData, FacepairsError, NotEnough
from facepairs.evaluation.lookalikes import find_clusters, pair_clusters
from facepairs.evaluation.pair_scores import embed_images
from facepairs.support.random_streams import Stream, raw_words, unit
from facepairs.support.words import align_columns
from facepairs.verification.verifier import Verifier

FARS = (0.01, 0.001, 0.0001)
BINS = 2**14  # of the scores: the bootstrap draws of a histogram, not of pairs
DRAWS = 200
CORRELATED = 200_000  # impostor pairs that the correlation is measured on

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Figures(NamedTuple):
    """What is measured of a network; larger is better."""

    accuracy: float
    auc: float
    tar: tuple[float, ...]

    def minus(self, other: "Figures") -> Floats:
        """Return the differences: accuracy, AUC, then TAR by FAR."""
        here, there = ([x.accuracy, x.auc, *x.tar] for x in (self, other))
        return np.asarray(np.subtract(here, there), np.float64)


@dataclass(frozen=True, eq=False)
class AllPairs:
    """All pairs of two photos.

    Attributes:
        person: int64[N], the person of each photo, numbered from 0.
    """

    person: Ints

    @cached_property
    def sides(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The pairs' photos: impostor pairs first, then genuine pairs."""
        left, right = np.triu_indices(len(self.person), 1)
        genuine = self.person[left] == self.person[right]
        order = np.argsort(genuine, kind="stable")
        return left[order], right[order]

    @cached_property
    def impostors(self) -> int:
        """How many of the pairs are impostor pairs."""
        left, right = self.sides
        return int((self.person[left] != self.person[right]).sum())

    @cached_property
    def people(self) -> tuple[Ints, Ints]:
        """The pairs' people."""
        left, right = self.sides
        return self.person[left], self.person[right]

    @cached_property
    def genuine_weights(self) -> Floats:
        """The weight of each genuine pair: a person's pairs weigh 1 together."""
        person = self.people[0][self.impostors :]
        return np.asarray(1 / np.bincount(person)[person])

    def weights(self) -> Iterator[tuple[Floats | None, Floats]]:
        """Yield weights of impostor and of genuine pairs: the plain ones, then those of draws."""
        yield None, self.genuine_weights
        left, right = self.people
        count = int(self.person.max()) + 1
        for draw in range(DRAWS):
            words = raw_words(0, Stream.BOOTSTRAP_PEOPLE, 1, draw, count)
            drawn = (unit(words) * count).astype(np.int64)
            times = np.bincount(drawn, minlength=count).astype(float)
            strangers = times[left[: self.impostors]] * times[right[: self.impostors]]
            yield strangers, self.genuine_weights * times[left[self.impostors :]]


@dataclass(frozen=True, eq=False)
class Trial:
    """A network's scores of all pairs, impostor pairs first.

    Attributes:
        name: What the table calls it.
        embeddings: float32[N, D], rows of length 1.
        score: float32[P].
    """

    name: str
    embeddings: npt.NDArray[np.float32]
    score: npt.NDArray[np.float32]

    @classmethod
    def of(cls, name: str, embeddings: npt.NDArray[np.float32], pairs: AllPairs) -> "Trial":
        """Score all pairs by cosine."""
        rows = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
        return cls(name, rows, (rows @ rows.T)[pairs.sides])

    @cached_property
    def bins(self) -> npt.NDArray[np.int16]:
        """Each score's bin, the highest scores in bin 0."""
        low, high = float(self.score.min()), float(self.score.max())
        scaled = (high - self.score) * ((BINS - 1) / (high - low))
        return scaled.astype(np.int16)

    def figures(self, pairs: AllPairs, strangers: Floats | None, genuine: Floats) -> Figures:
        """Measure with the weights of impostor and genuine pairs; None: impostors count equally."""
        false = np.bincount(self.bins[: pairs.impostors], strangers, minlength=BINS).cumsum()
        true = np.bincount(self.bins[pairs.impostors :], genuine, minlength=BINS).cumsum()
        far, tar = np.append(0, false / false[-1]), np.append(0, true / true[-1])
        auc = float(np.trapezoid(tar, far))
        at = tuple(float(np.interp(target, far, tar)) for target in FARS)
        return Figures(float((0.5 * (1 + tar - far)).max()), auc, at)

    def cluster_fmr(self, clusters: npt.NDArray[np.int16], pairs: AllPairs) -> tuple[float, float]:
        """Return the highest and the mean FMR of clusters of photos at FMR .01 over all."""
        left, right = (side[: pairs.impostors] for side in pairs.sides)
        score = self.score[: pairs.impostors]
        accepted = score >= np.quantile(score, 1 - FARS[0])
        cluster = pair_clusters(clusters, left, right)
        within = [float(accepted[cluster == k].mean()) for k in range(1, int(clusters.max()) + 1)]
        return max(within), float(np.mean(within))

    def correlations(self, other: "Trial", pairs: AllPairs) -> tuple[float, float]:
        """Return the scores' correlation with another network's: impostor and genuine pairs."""
        step = max(1, pairs.impostors // CORRELATED)
        parts = (slice(0, pairs.impostors, step), slice(pairs.impostors, None))
        impostor, genuine = (
            float(np.corrcoef(self.score[part], other.score[part])[0, 1]) for part in parts
        )
        return impostor, genuine


def study(trials: list[Trial], pairs: AllPairs) -> list[list[str]]:
    """Return the table's rows, the header first."""
    rows = [
        ["network", "balanced acc.", "AUC", *(f"TAR at {far:g}" for far in FARS), "FMR of clusters",
         "correlation", "gain: balanced acc.", "gain: TAR at .001"]
    ]  # fmt: skip
    measured = [[trial.figures(pairs, *weights) for trial in trials] for weights in pairs.weights()]
    first, *draws = measured
    clusters = find_clusters(trials[0].embeddings, pairs.person)
    if clusters is None:
        raise NotEnough("too few people to tell who looks alike; give all of LFW's")
    for k, trial in enumerate(trials):
        here = first[k]
        row = [
            trial.name,
            f"{here.accuracy:.4f}",
            f"{here.auc:.4f}",
            *(f"{tar:.3f}" for tar in here.tar),
            "{:.3f} / {:.3f}".format(*trial.cluster_fmr(clusters, pairs)),
        ]
        if k:
            gains = here.minus(first[0])
            spread = np.percentile([d[k].minus(d[0]) for d in draws], (2.5, 97.5), axis=0)
            correlation = trial.correlations(trials[0], pairs)
            row.append("{:.2f}, {:.2f}".format(*correlation))
            row += [f"{gains[i]:+.4f} ({spread[0, i]:+.4f} to {spread[1, i]:+.4f})" for i in (0, 3)]
        rows.append(row + [""] * (len(rows[0]) - len(row)))
    return rows


def load(spec: str, index: FaceIndex, images: Ints, keep: Path | None) -> tuple[str, np.ndarray]:
    """Return the name and the embeddings of `[NAME=]PATH`, float32[N, D]."""
    name, _, place = spec.rpartition("=")
    path = Path(place)
    name = name or (path.parent.name if path.name == "bundle" else path.stem)
    kept = path if path.suffix == ".npz" else keep / f"{name}.npz" if keep else None
    if kept and kept.exists():
        saved = np.load(kept)
        if not np.array_equal(saved["images"], images):
            raise BadData(f"{kept}: holds other photos than those of View 1's test people")
        return name, saved["embeddings"].astype(np.float32)
    verifier = Verifier.load(place, threads=1)
    embeddings = embed_images(verifier, index, images)
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.savez(kept, images=images, embeddings=embeddings)
    return name, embeddings


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="+", help="[NAME=]bundle or .npz; gains are over the 1st")
    parser.add_argument("data", type=Path, help="LFW: Person_Name/photo.jpg")
    parser.add_argument("--lists", type=Path, required=True)
    parser.add_argument("--keep", type=Path, help="folder for the embeddings")
    options = parser.parse_args(arguments)
    try:
        index = FaceIndex.scan(options.data)
        people = np.concatenate(read_people(list_path(options.lists, "peopleDevTest.txt"), index))
        images = np.flatnonzero(np.isin(index.person_of, people))
        _, person = np.unique(index.person_of[images], return_inverse=True)
        pairs = AllPairs(person.astype(np.int64))
        with showing_on_stderr():
            trials = [
                Trial.of(*load(spec, index, images, options.keep), pairs)
                for spec in options.networks
            ]
        rows = study(trials, pairs)
    except FacepairsError as error:
        print_error(error.kind, str(error), False)
        return ERROR
    print("\n".join(align_columns(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
