"""Group the faces of a collection by people, with known errors."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, count
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.bundles.rates import ErrorTable
from facepairs.bundles.scorer import ScoreArray
from facepairs.data.index import UNNAMED
from facepairs.grouping.collection import NO_FACE, Collection, CollectionFace
from facepairs.grouping.expected import ExpectedErrors, choose_cut, expect_errors
from facepairs.grouping.linkage import GroupMeans, average_linkage
from facepairs.grouping.review import SimilarPeople, certainties, similar_people

PRECISION = 0.99
NEW_PERSON = "person_{:04d}"
# Faces of one photo are alike: of 1,726 such pairs of LFW .8 % are within a distance of .06, and of
# random strangers .02 %. So they are apart, unless two are so near that the photo is a collage.
COLLAGE_FMR = 1e-5
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class KnownFaces(msgspec.Struct, frozen=True):
    """Faces of known people outside of the collection, such as those of a gallery.

    Attributes:
        embeddings: float32[K, D], rows of length 1.
        person: Name of the person of each.
    """

    embeddings: ScoreArray
    person: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Groups:
    """The people of a collection.

    Attributes:
        collection: Its photos and faces.
        person: Name of the person of each face; "" for a face without a group.
        certainty: float64[faces], the silhouette from -1 to 1: how much nearer a face is to its own
            group than to the nearest other person; NaN without a group.
        expected: The errors to expect.
        similar: Pairs of people who may be one, the most similar first.
        nobody: Faces that were put apart by hand.
    """

    collection: Collection
    person: tuple[str, ...]
    certainty: Floats
    expected: ExpectedErrors
    similar: tuple[SimilarPeople, ...] = ()
    nobody: frozenset[int] = frozenset()

    @cached_property
    def people(self) -> dict[str, list[int]]:
        """The faces of each person, by name; the most certain first."""
        found: dict[str, list[int]] = defaultdict(list)
        for face in np.argsort(-self.certainty, kind="stable").tolist():
            if self.person[face]:
                found[self.person[face]].append(face)
        return dict(sorted(found.items()))

    @property
    def faces(self) -> tuple[CollectionFace, ...]:
        """All faces of the collection."""
        return self.collection.faces

    @cached_property
    def of_photo(self) -> dict[str, str]:
        """The person of each photo's most prominent face; the photo itself without a group."""
        first = zip(self.faces, self.person, strict=True)
        named = {face.photo: name for face, name in first if face.number == 1 and name}
        copies = self.collection.copies
        photos = {photo: photo for photo in self.collection.photos} | copies
        return {photo: named.get(first, f"/{first}") for photo, first in photos.items()}

    @cached_property
    def single(self) -> list[int]:
        """The clear faces of people who are there once."""
        return [face for face in self._without_person if not self.faces[face].doubt]

    @cached_property
    def uncertain(self) -> list[int]:
        """The faces that are too unclear to be grouped."""
        return [face for face in self._without_person if self.faces[face].doubt]

    @property
    def _without_person(self) -> Iterator[int]:
        named = enumerate(self.person)
        return (face for face, name in named if not name and face not in self.nobody)

    @property
    def without_face(self) -> list[str]:
        """The photos without a face."""
        problems = self.collection.problems.items()
        return [photo for photo, problem in problems if problem == NO_FACE]

    @property
    def unusable(self) -> dict[str, str]:
        """What is wrong with photos that cannot be used, by photo."""
        problems = self.collection.problems.items()
        return {photo: why for photo, why in problems if why != NO_FACE}

    def to_json(self) -> dict[str, Any]:
        """Return a plain dict."""
        return {
            "photos": len(self.collection.photos),
            "copies": len(self.collection.copies),
            "passed_over": self.collection.passed_over,
            "faces": len(self.faces),
            "people": {name: len(faces) for name, faces in self.people.items()},
            "single_faces": len(self.single),
            "uncertain_faces": len(self.uncertain),
            "put_apart_by_hand": len(self.nobody),
            "photos_without_face": len(self.without_face),
            "unusable": self.unusable,
            "expected": msgspec.to_builtins(self.expected),
            "similar": msgspec.to_builtins(self.similar),
        }


def group_faces(
    collection: Collection,
    errors: ErrorTable,
    precision: float = PRECISION,
    settled: Mapping[int, str] | None = None,
    given: frozenset[str] = frozenset(),
    cohort: ScoreArray | None = None,
    known: KnownFaces | None = None,
) -> Groups:
    """Group the faces of a collection.

    Unclear faces found no group, but join the people whose clear faces they are near to: to those
    they are as rarely near by mistake as clear faces are, see `grouping.clarity`.

    Args:
        collection: The faces.
        errors: What was measured of the model, with its grouping.
        precision: Share of joined pairs of faces that should show one person, in (0, 1).
        settled: Whose a face is, by its number, and "" for nobody's. These people stay together,
            and apart from each other; nobody's faces are left out.
        given: Names that were given before, and are not given again.
        cohort: The model's, see `grouping.linkage`.
        known: People by whom groups are named. One who is nobody yet may get one of these names.

    Raises:
        NotEnough: The model was measured on too few pairs for this precision.
    """
    assert errors.grouping
    settled = settled or {}
    known = known or KnownFaces(collection.embeddings[:0])
    faces = range(len(collection.faces))
    grouped = [face for face in faces if settled.get(face, not collection.faces[face].doubt)]
    nobody = frozenset(face for face, name in settled.items() if not name)
    unclear = [face for face in faces if face not in settled and collection.faces[face].doubt]
    own = [settled.get(face, "") for face in grouped]
    people = sorted({*own, *known.person} - {""})
    number = {name: at for at, name in enumerate(people)}
    fresh = count(len(people))
    start = np.array(
        [number[name] if name else next(fresh) for name in (*own, *known.person)], np.int64
    )
    group_of = dict(zip(grouped, start.tolist(), strict=False))
    collage = 1 - errors.threshold_for(COLLAGE_FMR)
    in_folder = [number[name] for name in {*own} - {""}]
    named = [at for name, at in number.items() if not UNNAMED.fullmatch(name)]
    merges = average_linkage(
        np.concatenate([collection.embeddings[grouped], known.embeddings]),
        errors.grouping.cuts[-1],
        start,
        (in_folder, named),
        [(group_of[a], group_of[b]) for a, b in _of_one_photo(collection, group_of, collage)],
        cohort=cohort,
    )
    sizes = [np.bincount(part, minlength=merges.groups) for part in np.split(start, [len(grouped)])]
    joined = merges.linked_pairs(errors.grouping.cuts, *sizes)
    size = len(grouped)
    pairs = size * (size - 1) / 2 + size * (len(known.person) + len(unclear))
    at = choose_cut(errors, size, pairs, joined, precision)
    label = merges.labels(errors.grouping.cuts[at])
    names = {int(label[group]): people[group] for group in (*in_folder, *named)}
    person = [""] * len(faces)
    found = _names(label[start[:size]], names, {*people, *given})
    for face, name in zip(grouped, found, strict=True):
        person[face] = name
    more = _join_unclear(collection, unclear, person, errors.grouping.cuts[at], cohort)
    groups = int(label.max(initial=-1)) + 1
    return Groups(
        collection=collection,
        person=tuple(person),
        certainty=certainties(collection.embeddings, person),
        expected=expect_errors(errors, at, size, pairs, int(joined[at]) + more, groups),
        similar=similar_people(collection, person, errors.grouping.cuts[-1], cohort),
        nobody=nobody,
    )


def _of_one_photo(
    collection: Collection, grouped: Mapping[int, int], collage: float
) -> Iterator[tuple[int, int]]:
    """Yield pairs of faces that are on one photo, unless two of that photo are nearer than this."""
    for faces in collection.faces_of.values():
        pairs = list(combinations([face for face in faces if face in grouped], 2))
        embeddings = collection.embeddings
        distances = (1 - embeddings[one] @ embeddings[other] for one, other in pairs)
        if min(distances, default=0) > collage:
            yield from pairs


def _join_unclear(
    collection: Collection,
    unclear: list[int],
    person: list[str],
    cut: float,
    cohort: ScoreArray | None,
) -> int:
    """Give unclear faces to people, in place; return how many pairs with clear ones that joins."""
    clear = [face for face, name in enumerate(person) if name]
    if not unclear or not clear:
        return 0
    names, number = np.unique([person[face] for face in clear], return_inverse=True)
    people = GroupMeans.of(collection.embeddings[clear], number, cohort)
    alone = GroupMeans.of(collection.embeddings[unclear], np.arange(len(unclear)), cohort)
    joined = 0
    for _, one, other in sorted(alone.near(people, cut)):
        face, name = unclear[one], str(names[other])
        of_photo = collection.faces_of[collection.faces[face].sha256]
        if not person[face] and all(person[another] != name for another in of_photo):
            person[face] = name
            joined += int(people.size[other])
    return joined


def _names(label: Ints, known: dict[int, str], taken: set[str]) -> list[str]:
    """Return the person of each face: an earlier name, a new one, or "" for a face alone."""
    size = np.bincount(label)
    names = dict(known)
    numbers = [int(found[1]) for name in taken if (found := UNNAMED.fullmatch(name))]
    new = map(NEW_PERSON.format, count(max(numbers, default=0) + 1))
    for group in np.argsort(-size, kind="stable").tolist():  # the largest first
        if size[group] > 1 and group not in names:
            names[group] = next(new)
    return [names.get(group, "") for group in label.tolist()]
