"""Group LFW as heaps of many sizes: are the promised errors kept?

The errors of grouping are measured on the training people of View 1 alone. Then heaps of its test
people, and of random people and photos of all of LFW, are grouped at several promised precisions.
Faces of a photo besides the most prominent one are left out, as nobody knows whom they show.

    python scripts/studies/grouping.py LFW/lfw-deepfunneled --lists LFW --embeddings lfw.npz
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.bundles.rates import ErrorTable, Rate
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import read_people
from facepairs.errors import NotEnough
from facepairs.evaluation.grouping import DRAWS, Cells, measure_grouping
from facepairs.evaluation.metrics.arrays import Floats, Ints
from facepairs.evaluation.metrics.intervals import TAILS, draw_people
from facepairs.evaluation.pair_scores import FaceHeap
from facepairs.gallery.grouping import Groups, group_faces
from facepairs.gallery.heap import Heap, HeapFace
from facepairs.verification.verifier import Verifier

PRECISIONS = (0.95, 0.98, 0.99, 0.995)
Bools = npt.NDArray[np.bool_]


class Figures(NamedTuple):
    """Agreement of groups with people, each from 0 to 1."""

    pair_precision: float
    pair_recall: float
    pair_f1: float
    b3_precision: float
    b3_recall: float
    b3_f1: float
    v_measure: float


@dataclass(frozen=True)
class Agreement:
    """How well groups agree with people, with intervals of 95 % over people.

    `pair_…` count pairs of faces; `b3_…` are means over faces (B³); `v_measure` is the harmonic
    mean of homogeneity and completeness. NaN where nothing can be measured is None.

    References:
        Bagga and Baldwin, "Entity-Based Cross-Document Coreferencing Using the Vector Space Model",
        1998. Rosenberg and Hirschberg, "V-Measure", 2007.
    """

    faces: int
    people: int
    mixed_groups: int
    figures: dict[str, Rate | None]


def agreement(person: npt.ArrayLike, group: npt.ArrayLike) -> Agreement:
    """Measure how well groups agree with people.

    Args:
        person: int[N], whom each face shows.
        group: int[N], the group of each face.

    Raises:
        NotEnough: There is no face.
    """
    cells = Cells.of(person, group)
    if not cells.people:
        raise NotEnough("no face has a label; nothing can be measured")
    values = _figures(cells, np.ones(cells.people))
    drawn = (draw_people(cells.people, draw) for draw in range(DRAWS))
    draws = np.array([_figures(cells, counts) for counts in drawn])
    rates: dict[str, Rate | None] = {}
    for name, value, column in zip(Figures._fields, values, draws.T, strict=True):
        known = column[~np.isnan(column)]
        low, high = np.percentile(known, TAILS).tolist() if len(known) else (0.0, 1.0)
        interval = (min(low, value), min(1.0, max(high, value)))
        rates[name] = None if np.isnan(value) else Rate(value, interval)
    return Agreement(int(cells.count.sum()), cells.people, cells.mixed_groups(), rates)


def _figures(cells: Cells, drawn: Floats) -> Figures:
    genuine, joined, _, mixed = cells.pairs(drawn)
    faces = drawn[cells.person] * cells.count
    in_group = cells.count / np.bincount(cells.group, cells.count)[cells.group]
    of_person = cells.count / np.bincount(cells.person, cells.count)[cells.person]
    total = faces.sum()
    pair, b3 = (
        (_ratio(joined, joined + mixed), _ratio(joined, genuine)),
        (_ratio(float(faces @ in_group), total), _ratio(float(faces @ of_person), total)),
    )
    joint = _entropy(faces)
    groups, people = (_entropy(_sums(side, faces)) for side in (cells.group, cells.person))
    homogeneity = 1 - _ratio(joint - groups, people, 0.0)
    completeness = 1 - _ratio(joint - people, groups, 0.0)
    v_measure = _harmonic(homogeneity, completeness)
    return Figures(*map(float, (*pair, _harmonic(*pair), *b3, _harmonic(*b3), v_measure)))


def _sums(number: Ints, weight: Floats) -> Floats:
    sums: Floats = np.bincount(number, weight).astype(np.float64)
    return sums


def _ratio(part: float, whole: float, otherwise: float = float("nan")) -> float:
    return part / whole if whole > 0 else otherwise


def _harmonic(one: float, other: float) -> float:
    return _ratio(2 * one * other, one + other, one + other)


def _entropy(count: Floats) -> float:
    share = count[count > 0] / count.sum()
    return float(-(share * np.log(share)).sum())


def embeddings_of(
    index: FaceIndex, verifier: Verifier, kept: Path | None
) -> npt.NDArray[np.float32]:
    """Return the embedding of every photo, from a file of them where there is one."""
    if kept and kept.is_file():
        return np.load(kept)["embeddings"]
    rows = verifier.embed(index.paths)
    if kept:
        np.savez(kept, embeddings=rows)
    return rows


def heaps(person: npt.NDArray[np.int64]) -> Iterator[tuple[str, list[Bools]]]:
    """Yield parts of LFW by random people, and by random photos, several of each size."""
    random = np.random.default_rng(0)
    people = np.unique(person)
    for count, times in ((200, 30), (500, 15), (1000, 8), (2000, 4), (4000, 2)):
        draws = [random.choice(people, count, replace=False) for _ in range(times)]
        yield f"{count:,} people", [np.isin(person, draw) for draw in draws]
    for count, times in ((500, 30), (2000, 8), (6000, 3)):
        draws = [random.choice(len(person), count, replace=False) for _ in range(times)]
        yield f"{count:,} photos", [np.isin(np.arange(len(person)), draw) for draw in draws]


def group_part(
    index: FaceIndex,
    embeddings: npt.NDArray[np.float32],
    part: Bools,
    errors: ErrorTable,
    precision: float,
) -> tuple[Groups, Agreement]:
    """Group some photos, and compare the groups with the people."""
    images = np.flatnonzero(part)
    photos = tuple(index.name(int(image)) for image in images)
    faces = tuple(HeapFace(photo, (0, 0, 100), 1) for photo in photos)
    groups = group_faces(Heap(index.root, photos, faces, embeddings[images], {}), errors, precision)
    names = [name or f"/{at}" for at, name in enumerate(groups.person)]
    return groups, agreement(index.person_of[images], names)


def report(
    title: str,
    index: FaceIndex,
    embeddings: npt.NDArray[np.float32],
    parts: list[Bools],
    errors: ErrorTable,
) -> None:
    """Print what was promised and what was found, the pairs of all parts taken together."""
    for precision in PRECISIONS:
        found = [group_part(index, embeddings, part, errors, precision) for part in parts]
        joined = sum(groups.expected.joined_pairs for groups, _ in found)
        expected = 1 - sum(groups.expected.wrong_pairs for groups, _ in found) / joined
        low, high = (
            sum(
                groups.expected.precision_interval[end] * groups.expected.joined_pairs
                for groups, _ in found
            )
            / joined
            for end in (0, 1)
        )
        precisions, recalls = (
            [rate.value for _, one in found if (rate := one.figures[name])]
            for name in ("pair_precision", "pair_recall")
        )
        pairs = [groups.expected.joined_pairs for groups, _ in found]
        pooled = float(np.average(precisions, weights=pairs))
        mixed = [
            sum(groups.expected.mixed_people for groups, _ in found),
            sum(one.mixed_groups for _, one in found),
        ]
        cut = np.mean([groups.expected.cut for groups, _ in found])
        photos = np.mean([part.sum() for part in parts])
        f1 = [rate.value for _, one in found if (rate := one.figures["pair_f1"])]
        print(
            f"{title:14} {photos:7,.0f} photos  promised {precision:.3f}  cut {cut:.4f}  expected "
            f"{expected:.4f} ({low:.4f} to {high:.4f})  found {pooled:.4f}  recall "
            f"{np.mean(recalls):.4f}  F1 {np.mean(f1):.4f}  mixed people {mixed[0]:,.1f} expected, "
            f"{mixed[1]:,} found",
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="all of LFW: Person_Name/photo.jpg")
    parser.add_argument("--lists", type=Path, required=True, help="folder of LFW's lists")
    parser.add_argument("--embeddings", type=Path, help="file to keep embeddings in")
    options = parser.parse_args()
    index, verifier = FaceIndex.scan(options.data), Verifier.load()
    embeddings = embeddings_of(index, verifier, options.embeddings)
    person = index.person_of.astype(np.int64)
    part_of = {}
    for part in ("Train", "Test"):
        (people,) = read_people(options.lists / f"peopleDev{part}.txt", index)
        part_of[part] = np.isin(person, people)
    train = part_of["Train"]
    table = verifier.bundle.errors
    assert table is not None
    measured = measure_grouping([FaceHeap(embeddings[train], person[train])], table)
    errors = msgspec.structs.replace(
        table, grouping=measured, measured_on="View 1's training people"
    )
    report("View 1, test", index, embeddings, [part_of["Test"]], errors)
    report("all of LFW", index, embeddings, [np.ones(len(person), np.bool_)], errors)
    for title, parts in heaps(person):
        report(title, index, embeddings, parts, errors)
    return 0


if __name__ == "__main__":
    sys.exit(main())
