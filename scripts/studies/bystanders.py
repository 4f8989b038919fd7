"""Background faces of LFW: how near are strangers to each other, before and after unclear ones go?

The limits of `grouping.collection` were chosen on the photos of View 1's training people that show
several faces; those of its test people are reported. Nobody knows whom background faces show, so
the shares are of faces on photos of two people, some of whom are one person.

    python scripts/studies/bystanders.py LFW/lfw-deepfunneled --lists LFW
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import read_people
from facepairs.grouping.collection import Collection, read_collection
from facepairs.grouping.groups import group_faces
from facepairs.grouping.linkage import crowd_bias
from facepairs.verification.verifier import Verifier

NEAR = 0.062  # the height at which all of LFW is grouped at a precision of .99
Bools = npt.NDArray[np.bool_]


def share_near(
    collection: Collection,
    faces: Bools,
    person: npt.NDArray[np.str_],
    bias: npt.NDArray[np.float32],
    others: Bools | None = None,
) -> float:
    """Return the share of pairs of faces on photos of two people that are nearer than NEAR."""
    rows, columns = np.flatnonzero(faces), np.flatnonzero(faces if others is None else others)
    embeddings = collection.embeddings
    distance = 1 - embeddings[rows] @ embeddings[columns].T - bias[rows, None] - bias[columns]
    strangers = person[rows, None] != person[columns]
    return float((distance[strangers] < NEAR).mean())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="all of LFW: Person_Name/photo.jpg")
    parser.add_argument("--lists", type=Path, required=True, help="folder of LFW's lists")
    options = parser.parse_args()
    verifier = Verifier.load(threads=1)
    errors, cohort = verifier.model.profile.errors, verifier.model.profile.cohort
    assert errors is not None
    collection = read_collection(options.data, verifier)
    person = np.array([face.photo.split("/")[0] for face in collection.faces])
    several = {face.photo for face in collection.faces if face.number > 1}
    on_such = np.array([face.photo in several for face in collection.faces])
    main_face = np.array([face.number == 1 for face in collection.faces])
    clear = np.array([not face.doubt for face in collection.faces])
    bias = crowd_bias(collection.embeddings, cohort)
    index = FaceIndex.scan(options.data)
    for part in ("Train", "Test"):
        (people,) = read_people(options.lists / f"peopleDev{part}.txt", index)
        inside = np.isin(person, [index.people[int(number)] for number in people])
        mains = inside & main_face
        print(f"View 1, {part}: {(mains & ~clear).sum():,} of {mains.sum():,} main faces unclear")
        for title, faces in (
            ("main faces", main_face & on_such),
            ("background faces", ~main_face),
            ("clear background faces", ~main_face & clear),
        ):
            near = share_near(collection, faces & inside, person, bias)
            print(f"  {title:24} {(faces & inside).sum():6,}  near {near:.5f}")
        near = share_near(collection, ~clear & ~main_face & inside, person, bias, mains & clear)
        print(f"  unclear background faces with clear main faces: near {near:.5f}")
        photos = {
            face.photo: face.sha256
            for face, wanted in zip(collection.faces, inside & on_such, strict=True)
            if wanted
        }
        rows = np.flatnonzero(inside & on_such)
        heap = Collection(
            options.data,
            photos,
            tuple(collection.faces[row] for row in rows),
            collection.embeddings[rows],
        )
        groups = group_faces(heap, errors, cohort=cohort)
        only_background = sum(
            all(heap.faces[face].number > 1 for face in faces) for faces in groups.people.values()
        )
        print(
            f"  as one heap: {len(groups.people)} people, {only_background} of background faces "
            f"alone; {len(groups.uncertain)} faces uncertain; {groups.expected.describe()}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
