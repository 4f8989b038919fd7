"""How much do pairs that share people depend on each other? The constants of `facepairs plan`.

    python scripts/studies/dependence.py --data lfw/lfw-deepfunneled
    python scripts/studies/dependence.py --drawn

Designs of equally many photos of each person are drawn from LFW, embedded by the included model, or
from the population of `drawn_population.py`. Where a share of the strangers passes, the variance of
that share has a part of people, who are easily taken for others or not, and one of pairs of people,
whose photos are compared with each other. Of genuine pairs, those of one person err together.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from drawn_population import draw_photos

from facepairs.data.index import FaceIndex
from facepairs.evaluation.metrics.intervals import spread_over_people
from facepairs.evaluation.pair_scores import embed_images
from facepairs.verification.verifier import Verifier

DESIGNS = (1, 2, 4, 8)  # photos of each person
FMRS = (0.1, 0.01, 0.001, 0.0001)
FNMRS = (0.1, 0.03, 0.01)
MOST_PEOPLE, ROUNDS = 1500, 6
SMALL = (60, 250)  # people, of whom degrees of freedom are measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--drawn", action="store_true")
    given = parser.parse_args()
    if given.drawn:
        photos = draw_photos(np.random.default_rng(3), 20_000)
        person, rows = photos.person, photos.first
    else:
        index = FaceIndex.scan(given.data)
        rows, _ = embed_images(Verifier.load(), index, np.arange(len(index)))
        usable = np.isfinite(rows[:, 0])
        person, rows = index.person_of[usable].astype(np.int64), rows[usable]
    print("strangers: FMR, photos, people, variance by person (of the rate), correlation of cells,")
    print("degrees of freedom per person, and of", SMALL, "people")
    for photos_each in DESIGNS:
        found = np.array([_strangers(*it) for it in _designs(person, rows, photos_each)])
        for far, row in zip(FMRS, found.mean(axis=0), strict=True):
            print(f"{far:g}\t{photos_each}\t" + "\t".join(f"{value:.4g}" for value in row))
    print("genuine pairs: FNMR, photos, correlation within people, degrees of freedom per person")
    for photos_each in (3, 4, 5):
        found = np.array([_genuine(*it) for it in _designs(person, rows, photos_each)])
        for fnmr, row in zip(FNMRS, found.mean(axis=0), strict=True):
            print(f"{fnmr:g}\t{photos_each}\t" + "\t".join(f"{value:.4g}" for value in row))


def _designs(person, rows, photos):  # type: ignore[no-untyped-def]
    """Yield embeddings of people with so many photos each, float32[people, photos, D]."""
    people, first, count = np.unique(person, return_index=True, return_counts=True)
    people = np.flatnonzero(count >= photos)
    for seed in range(ROUNDS):
        random = np.random.default_rng(seed)
        chosen = random.permutation(people)[: MOST_PEOPLE // min(photos, 2)]
        places = [first[one] + random.permutation(count[one])[:photos] for one in chosen]
        yield rows[np.array(places)], random


def _strangers(design, random) -> list[list[float]]:  # type: ignore[no-untyped-def]
    people, photos, width = design.shape
    flat = design.reshape(-1, width)
    score = (flat @ flat.T).reshape(people, photos, people, photos)
    other = ~np.eye(people, dtype=bool)
    values = np.sort(score.transpose(0, 2, 1, 3)[other].ravel())
    rows = []
    for far in FMRS:
        cut = values[int((1 - far) * len(values))]
        cells = (score >= cut).sum(axis=(1, 3)) * 1.0
        part = _parts(cells, photos)
        small = [
            np.mean([_parts(cells[np.ix_(few, few)], photos)[3] for few in _few(random, people, n)])
            for n in SMALL
        ]
        rows.append([people, *part[1:3], part[3] / people, *small])
    return rows


def _few(random, people, count) -> Iterator[np.ndarray]:  # type: ignore[no-untyped-def, type-arg]
    for _ in range(20):
        yield random.permutation(people)[:count]


def _parts(cells, photos) -> tuple[float, float, float, float]:  # type: ignore[no-untyped-def]
    """Return rate, variance by person, correlation within cells, and degrees of freedom."""
    people = len(cells)
    np.fill_diagonal(cells, 0)
    pairs = people * (people - 1) / 2
    rate = cells.sum() / 2 / pairs / photos**2
    centred = cells - rate * photos**2
    np.fill_diagonal(centred, 0)
    sums = centred.sum(axis=1) / pairs / photos**2
    shared = (centred**2).sum() / 2 / (pairs * photos**2) ** 2
    by_person = ((sums**2).sum() - 2 * shared) * people / 4 / max(rate, 1e-9) ** 2
    factor = shared * pairs / max(rate * (1 - rate), 1e-9)  # of independent cells: 1
    cell = (factor - 1 / photos**2) / (1 - 1 / photos**2) if photos > 1 else np.nan
    degrees = spread_over_people(sums, np.full(people, 2 / people), shared).degrees
    return rate, by_person, cell, float(degrees)


def _genuine(design, _) -> list[list[float]]:  # type: ignore[no-untyped-def]
    one, other = np.triu_indices(design.shape[1], 1)
    score = np.einsum("pij,pij->pi", design[:, one], design[:, other])
    rows = []
    for fnmr in FNMRS:
        missed = (score < np.quantile(score, fnmr)).mean(axis=1)
        rate, pairs = missed.mean(), len(one)
        factor = missed.var(ddof=1) / (rate * (1 - rate))
        sums = (missed - rate) / len(missed)
        degrees = spread_over_people(sums, np.full(len(sums), 1 / len(sums))).degrees
        rows.append([(factor - 1 / pairs) / (1 - 1 / pairs), float(degrees) / len(sums)])
    return rows


if __name__ == "__main__":
    main()
