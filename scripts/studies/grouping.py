"""Group LFW as heaps of many sizes: are the promised errors kept?

The errors of grouping are measured on the training people of View 1 alone. Then heaps of its test
people, and of random people and photos of all of LFW, are grouped at several promised precisions.
The cohort, too, comes from the training people: all of LFW includes them, the test people do not.
Faces of a photo besides the most prominent one are left out, as nobody knows whom they show.

    python scripts/studies/grouping.py LFW/lfw-deepfunneled --lists LFW --embeddings lfw.npz
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.bundles.rates import ErrorTable
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import read_people
from facepairs.evaluation.grouping import Agreement, agreement, measure_grouping
from facepairs.evaluation.pair_scores import FaceHeap
from facepairs.grouping.collection import Collection, CollectionFace
from facepairs.grouping.groups import Groups, group_faces
from facepairs.verification.verifier import Verifier

sys.path.insert(0, str(Path(__file__).parents[1] / "release"))
from cohort import fit_and_split

PRECISIONS = (0.95, 0.98, 0.99)
Bools = npt.NDArray[np.bool_]
Cohort = npt.NDArray[np.float32] | None


def embeddings_of(
    index: FaceIndex, verifier: Verifier, kept: Path | None
) -> npt.NDArray[np.float32]:
    """Return the embedding of every photo, from a file of them where there is one."""
    if kept and kept.is_file():
        kept_rows: npt.NDArray[np.float32] = np.load(kept)["embeddings"]
        return kept_rows
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
    for count, times in ((200, 60), (500, 30), (1000, 15), (2000, 8), (6000, 3)):
        draws = [random.choice(len(person), count, replace=False) for _ in range(times)]
        yield f"{count:,} photos", [np.isin(np.arange(len(person)), draw) for draw in draws]


def group_part(
    index: FaceIndex,
    embeddings: npt.NDArray[np.float32],
    part: Bools,
    errors: ErrorTable,
    cohort: Cohort,
    precision: float,
) -> tuple[Groups, Agreement]:
    """Group some photos, and compare the groups with the people."""
    images = np.flatnonzero(part)
    photos = {index.name(int(image)): str(image) for image in images}
    faces = tuple(CollectionFace(photo, at, (0, 0, 100), 1) for photo, at in photos.items())
    heap = Collection(index.root, photos, faces, embeddings[images])
    groups = group_faces(heap, errors, precision, cohort=cohort)
    names = [name or f"/{at}" for at, name in enumerate(groups.person)]
    return groups, agreement(index.person_of[images], names)


def report(
    title: str,
    index: FaceIndex,
    embeddings: npt.NDArray[np.float32],
    parts: list[Bools],
    errors: ErrorTable,
    cohort: Cohort,
) -> None:
    """Print what was promised and what was found, the pairs of all parts taken together."""
    for precision in PRECISIONS:
        found = [group_part(index, embeddings, part, errors, cohort, precision) for part in parts]
        joined = sum(groups.expected.joined_pairs for groups, _ in found)
        expected = 1 - sum(groups.expected.wrong_pairs for groups, _ in found) / joined
        precisions, recalls = (
            [rate.value for _, one in found if (rate := one.figures[name])]
            for name in ("pair_precision", "pair_recall")
        )
        pairs = [groups.expected.joined_pairs for groups, _ in found]
        pooled = float(np.average(precisions, weights=pairs))
        mixed = [
            np.mean([groups.expected.mixed_people for groups, _ in found]),
            np.mean([one.mixed_groups for _, one in found]),
        ]
        cut = np.mean([groups.expected.cut for groups, _ in found])
        photos = np.mean([part.sum() for part in parts])
        f1 = [rate.value for _, one in found if (rate := one.figures["pair_f1"])]
        print(
            f"{title:14} {photos:7,.0f} photos  promised {precision:.3f}  cut {cut:.4f}  expected "
            f"{expected:.4f}  found {pooled:.4f}  recall "
            f"{np.mean(recalls):.4f}  F1 {np.mean(f1):.4f}  mixed groups {mixed[0]:,.1f} expected, "
            f"{mixed[1]:,.1f} found",
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="all of LFW: Person_Name/photo.jpg")
    parser.add_argument("--lists", type=Path, required=True, help="folder of LFW's lists")
    parser.add_argument("--embeddings", type=Path, help="file to keep embeddings in")
    parser.add_argument("--without-cohort", action="store_true", help="for comparison")
    parser.add_argument("--swap", action="store_true", help="measure on the test people instead")
    options = parser.parse_args()
    index, verifier = FaceIndex.scan(options.data), Verifier.load()
    embeddings = embeddings_of(index, verifier, options.embeddings)
    person = index.person_of.astype(np.int64)
    part_of = {}
    for part in ("Train", "Test"):
        (people,) = read_people(options.lists / f"peopleDev{part}.txt", index)
        part_of[part] = np.isin(person, people)
    measured_on, others = ("Test", "Train") if options.swap else ("Train", "Test")
    train = part_of[measured_on]
    table = verifier.model.profile.errors
    assert table is not None
    cohort: Cohort
    cohort, heaps_of_people = fit_and_split(embeddings[train], person[train], train[train])
    if options.without_cohort:
        cohort, heaps_of_people = None, [FaceHeap(embeddings[train], person[train])]
    measured = measure_grouping(heaps_of_people, table)
    errors = msgspec.structs.replace(table, grouping=measured, measured_on=f"View 1, {measured_on}")
    report(f"View 1, {others}", index, embeddings, [part_of[others]], errors, cohort)
    report("all of LFW", index, embeddings, [np.ones(len(person), np.bool_)], errors, cohort)
    for title, parts in heaps(person):
        report(title, index, embeddings, parts, errors, cohort)
    return 0


if __name__ == "__main__":
    sys.exit(main())
