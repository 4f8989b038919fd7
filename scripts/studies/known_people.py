"""Known people among all faces of LFW: names from a gallery in `group`, and faces behind main ones.

    python scripts/studies/known_people.py LFW/lfw-deepfunneled --lists LFW

Names: up to three main faces of each of half of the people with several photos are enrolled, and
all other main faces are a heap; of View 1's test people, and of all of LFW. Told are the errors
that `group` expects, those there are, and the shares of faces that got their name, or somebody
else's.

Identification: one main face of each of 100 to 1,000 people is enrolled. Told is which share of the
other people's main faces, and of the clear and unclear faces behind these, is taken for somebody at
the threshold of `gallery identify`. Nobody knows whom faces in the background show, so some of
these are right.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt
from identification import run

from facepairs.bundles.error_profile import identification_point
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import read_people
from facepairs.grouping.collection import Collection, read_collection
from facepairs.grouping.groups import KnownFaces, group_faces
from facepairs.support.words import align_columns
from facepairs.verification.verifier import Verifier

DRAWS = 4
ENROLLED_FACES = 3
GALLERIES = (100, 500, 1_000)  # people
PROMISES = (0.1, 0.01)
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Names = npt.NDArray[np.str_]


def pairs_in(faces: int) -> int:
    """Return how many pairs a number of faces makes."""
    return faces * (faces - 1) // 2


def split_faces(random: np.random.Generator, names: Names, faces: Bools) -> tuple[Ints, Ints]:
    """Return the faces of half of the people with several that are enrolled, and all others."""
    people, count = np.unique(names[faces], return_counts=True)
    several = people[count > 1]
    enrolled = set(random.choice(several, len(several) // 2, replace=False).tolist())
    known: list[int] = []
    for name in sorted(enrolled):
        own = random.permutation(np.flatnonzero(faces & (names == name)))
        known += own[: min(ENROLLED_FACES, len(own) - 1)].tolist()
    rest = faces.copy()
    rest[known] = False
    return np.array(known, np.int64), np.flatnonzero(rest)


def names_row(
    verifier: Verifier, collection: Collection, names: Names, known: Ints, heap: Ints
) -> list[str]:
    """Group a heap with enrolled faces, and return what was told and what was found."""
    faces = tuple(collection.faces[place] for place in heap.tolist())
    part = Collection(
        collection.root,
        {face.photo: face.sha256 for face in faces},
        faces,
        collection.embeddings[heap],
    )
    enrolled = KnownFaces(collection.embeddings[known], tuple(names[known].tolist()))
    errors = verifier.model.profile.errors
    assert errors is not None
    groups = group_faces(part, errors, cohort=verifier.model.profile.cohort, known=enrolled)
    own, enrolled_faces = names[heap], Counter(enrolled.person)
    joined = wrong = named = misnamed = 0
    for name, members in groups.people.items():
        count = Counter(own[members].tolist())
        joined += pairs_in(len(members)) + len(members) * enrolled_faces[name]
        wrong += pairs_in(len(members)) - sum(map(pairs_in, count.values()))
        if name in enrolled_faces:
            named += len(members)
            misnamed += len(members) - count[name]
            wrong += (len(members) - count[name]) * enrolled_faces[name]
    of_enrolled = np.isin(own, list(enrolled_faces))
    right = sum(groups.person[place] == own[place] for place in np.flatnonzero(of_enrolled))
    told = groups.expected
    return [
        f"{told.precision:.4f}",
        f"{1 - wrong / joined:.4f}",
        f"{right / of_enrolled.sum():.3f}",
        f"{misnamed / max(1, named):.4f}",
    ]


def taken(verifier: Verifier, collection: Collection, names: Names, draw: int) -> list[list[str]]:
    """Return the shares of faces of people who are not enrolled that are taken for somebody."""
    random = np.random.default_rng(draw)
    main_face, clear = kinds_of(collection)
    rows = []
    for size in GALLERIES:
        people = random.choice(np.unique(names), size, replace=False)
        gallery = [random.choice(np.flatnonzero(main_face & (names == one))) for one in people]
        others = ~np.isin(names, people)
        best = np.full(len(names), -np.inf)
        best[others] = (collection.embeddings[others] @ collection.embeddings[gallery].T).max(1)
        for promise in PROMISES:
            threshold = identification_point(verifier.model.profile, promise, size).threshold
            row = [str(draw), f"{size:,}", f"{promise:g}"]
            for faces in (main_face, ~main_face, ~main_face & clear, ~main_face & ~clear):
                members = faces & others
                _, number = np.unique(names[members], return_inverse=True)
                share = np.bincount(number, best[members] >= threshold) / np.bincount(number)
                row.append(f"{share.mean():.4f}")
            rows.append(row)
    return rows


def kinds_of(collection: Collection) -> tuple[Bools, Bools]:
    """Return which faces are the main one of their photo, and which are clear."""
    faces = collection.faces
    main_face = np.array([face.number == 1 for face in faces], np.bool_)
    return main_face, np.array([not face.doubt for face in faces], np.bool_)


def study(data: Path, lists: Path) -> None:
    """Print both tables."""
    verifier = Verifier.load(threads=1)
    collection = read_collection(data, verifier)
    names = np.array([face.photo.split("/")[0] for face in collection.faces])
    index = FaceIndex.scan(data)
    (people,) = read_people(lists / "peopleDevTest.txt", index)
    in_test = np.isin(names, [index.people[int(one)] for one in people])
    main_face, _ = kinds_of(collection)
    header = ["people", "draw", "pairs right, told", "found", "named rightly", "names wrong"]
    table = [header]
    for part, faces in (("View 1, test", main_face & in_test), ("LFW", main_face)):
        for draw in range(DRAWS - 1):
            known, heap = split_faces(np.random.default_rng(draw), names, faces)
            row = names_row(verifier, collection, names, known, heap)
            table.append([part, str(draw), *row])
    print("\n".join(align_columns(table)), end="\n\n")
    table = [["draw", "enrolled", "max FPIR", "main faces", "behind", "of these clear", "unclear"]]
    for draw in range(DRAWS):
        table += taken(verifier, collection, names, draw)
    print("\n".join(align_columns(table)))


if __name__ == "__main__":
    sys.exit(run(study, __doc__.splitlines()[0]))
