"""Group the faces of a collection by people, with known errors, and say what to look at."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest
from itertools import combinations, count
from pathlib import Path
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

ROWS = 4096  # faces compared with all people at a time
SUGGESTED = 100  # pairs of people
Floats = npt.NDArray[np.float64]
PRECISION = 0.99
NEW_PERSON = "person_{:04d}"
# Faces of one photo are alike: of 1,726 such pairs of LFW .8 % are within a distance of .06, and of
# random strangers .02 %. So they are apart, unless two are so near that the photo is a collage.
COLLAGE_FMR = 1e-5
Ints = npt.NDArray[np.int64]


class SimilarPeople(msgspec.Struct, frozen=True):
    """Two people of the result who may be one; `height` is at which they would be joined."""

    one: str
    other: str
    height: float


def certainties(embeddings: ScoreArray, person: Sequence[str]) -> Floats:
    """Return the silhouette of each face among the people: float64[faces], NaN without a person.

    Args:
        embeddings: float32[faces, D], rows of length 1.
        person: The name of each, "" without one.

    References:
        Rousseeuw, "Silhouettes", Journal of Computational and Applied Mathematics 20, 1987.
    """
    result = np.full(len(person), np.nan)
    faces = np.flatnonzero([bool(name) for name in person])
    number = np.unique(np.array(person)[faces], return_inverse=True)[1]
    means = GroupMeans.of(embeddings[faces], number, None)
    for begin in range(0, len(faces), ROWS):
        part = slice(begin, begin + ROWS)
        own = number[part]
        near = embeddings[faces[part]] @ means.mean.T
        at, size = np.arange(len(own)), means.size[own]
        inside = 1 - (near[at, own] * size - 1) / np.maximum(size - 1, 1)
        near[at, own] = -1  # the largest distance, where there is no one else
        outside = 1 - near.max(axis=1)
        silhouette = (outside - inside) / np.maximum(np.maximum(inside, outside), 1e-9)
        result[faces[part]] = np.where(size > 1, silhouette, 0)
    return result


def similar_people(
    collection: Collection, person: Sequence[str], most: float, cohort: ScoreArray | None = None
) -> tuple[SimilarPeople, ...]:
    """Return pairs of people who may be one, the most similar first.

    People who are on one photo together are left out, and those who both were named.

    Args:
        collection: The faces.
        person: The name of the person of each, "" without one.
        most: The largest height at which two people are proposed.
        cohort: The model's, see `grouping.linkage`.
    """
    faces = [face for face, name in enumerate(person) if name]
    names, number = np.unique([person[face] for face in faces], return_inverse=True)
    on_photos = ({person[face] for face in of} - {""} for of in collection.faces_of.values())
    apart = {pair for people in on_photos for pair in combinations(sorted(people), 2)}
    means = GroupMeans.of(collection.embeddings[faces], number, cohort)
    near = ((height, str(names[a]), str(names[b])) for height, a, b in means.near(means, most))
    open_pairs = (
        SimilarPeople(one, other, height)
        for height, one, other in near
        if one < other and (UNNAMED.fullmatch(one) or UNNAMED.fullmatch(other))
        if (one, other) not in apart
    )
    return tuple(nsmallest(SUGGESTED, open_pairs, key=lambda pair: pair.height))


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
        nobody: Faces of no person by hand, and others on photos that are in the folder alone.
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
    def put_apart(self) -> int:
        """How many faces of the collection were put apart, deleted or edited by hand."""
        return sum(not Path(self.faces[face].photo).is_absolute() for face in self.nobody)

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
            "put_apart_by_hand": self.put_apart,
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
    taken: frozenset[str] = frozenset(),
    cohort: ScoreArray | None = None,
    known: KnownFaces | None = None,
    earlier_rate: float = 0,
) -> Groups:
    """Group the faces of a collection.

    Clear faces are grouped. Unclear ones found no group, but join the people whose clear faces they
    are near to: to those they are as rarely near by mistake as clear faces are, see `doubts`.

    Args:
        collection: The faces.
        errors: What was measured of the model, with its grouping.
        precision: Share of joined pairs of faces that should show one person, in (0, 1).
        settled: Whose a face is, by its number; "" for a face put apart by hand. These people
            stay together, and apart from each other; faces put apart are left out.
        taken: Names of folders, and numbers that were given before; no other person gets one.
        cohort: The model's, see `grouping.linkage`.
        known: People by whom groups are named; a person without a name may get one of these.
        earlier_rate: Of the runs that joined those who are settled, see `expect_errors`.

    Raises:
        NotEnough: The model was measured on too few pairs for this precision.
    """
    assert errors.grouping
    settled, cuts, embeddings = settled or {}, errors.grouping.cuts, collection.embeddings
    known = known or KnownFaces(embeddings[:0])
    numbered = list(enumerate(collection.faces))
    clear = [face for face, one in numbered if settled.get(face, not one.doubt)]
    unclear = [face for face, one in numbered if one.doubt and face not in settled]
    own = [settled.get(face, "") for face in clear]
    people = sorted({*own, *known.person} - {""})  # the first groups: they stay apart
    number, fresh = {name: at for at, name in enumerate(people)}, count(len(people))
    of_all = (*own, *known.person)
    start = np.array([number[name] if name else next(fresh) for name in of_all], np.int64)
    apart = list(_of_one_photo(collection, dict(zip(clear, start.tolist(), strict=False)), errors))
    rows = np.concatenate([embeddings[clear], known.embeddings])
    merges = average_linkage(rows, cuts[-1], start, len(people), apart, cohort=cohort)
    enrolled = Counter(known.person)
    joined = merges.linked_pairs(cuts, np.bincount(start, minlength=merges.groups))
    joined -= sum(n * (n - 1) // 2 for n in enrolled.values())  # pairs of known faces
    pairs = len(clear) * ((len(clear) - 1) / 2 + len(known.person) + len(unclear))
    at = choose_cut(errors, len(clear), pairs, joined, precision)
    label = merges.labels(cuts[at])[start]
    groups = GroupMeans.of(rows, label, cohort)
    names = [*people, *[""] * (len(groups.size) - len(people))]
    if enrolled:
        _rename_numbers(names, groups.first(len(people)), {*own, *taken}, cuts[at])
    _name_new(names, groups.size, {*people, *taken})
    person = [""] * len(numbered)
    for face, group in zip(clear, label.tolist(), strict=False):
        person[face] = names[group]
    _join_unclear(collection, unclear, person, cuts[at], cohort)
    found = Counter(person[face] for face in clear)
    more = enrolled + Counter(person[face] for face in unclear)
    linked = sum(n * (n - 1) // 2 + n * more[name] for name, n in found.items() if name)
    return Groups(
        collection=collection,
        person=tuple(person),
        certainty=certainties(embeddings, person),
        expected=expect_errors(errors, at, len(clear), pairs, linked, len(names), earlier_rate),
        similar=similar_people(collection, person, cuts[-1], cohort),
        nobody=frozenset(face for face, name in settled.items() if not name),
    )


def _of_one_photo(
    collection: Collection, group: Mapping[int, int], errors: ErrorTable
) -> Iterator[tuple[int, int]]:
    """Yield pairs of groups that have faces of one photo, unless it is a collage."""
    collage, embeddings = 1 - errors.threshold_for(COLLAGE_FMR), collection.embeddings
    for faces in collection.faces_of.values():
        pairs = list(combinations([face for face in faces if face in group], 2))
        distances = (1 - embeddings[one] @ embeddings[other] for one, other in pairs)
        if min(distances, default=0) > collage:
            yield from ((group[one], group[other]) for one, other in pairs)


def _rename_numbers(names: list[str], people: GroupMeans, folders: set[str], cut: float) -> None:
    """Replace numbers of folders by the nearest known people who have no folder, in place."""
    for _, one, other in sorted(people.near(people, cut)):
        if UNNAMED.fullmatch(names[one]) and names[one] in folders and names[other] not in folders:
            folders.add(names[other])
            names[one] = names[other]


def _name_new(names: list[str], size: Ints, given: Iterable[str]) -> None:
    """Give new numbers to groups of several faces without a name, the largest first, in place."""
    numbers = [int(found[1]) for name in given if (found := UNNAMED.fullmatch(name))]
    new = map(NEW_PERSON.format, count(max(numbers, default=0) + 1))
    for group in np.argsort(-size, kind="stable").tolist():
        if size[group] > 1 and not names[group]:
            names[group] = next(new)


def _join_unclear(
    collection: Collection,
    unclear: list[int],
    person: list[str],
    cut: float,
    cohort: ScoreArray | None,
) -> None:
    """Give unclear faces to the people whose clear faces they are nearest to, in place."""
    clear = [face for face, name in enumerate(person) if name]
    names, number = np.unique([person[face] for face in clear], return_inverse=True)
    people = GroupMeans.of(collection.embeddings[clear], number, cohort)
    alone = GroupMeans.of(collection.embeddings[unclear], np.arange(len(unclear)), cohort)
    for _, one, other in sorted(alone.near(people, cut)):
        face, name = unclear[one], str(names[other])
        of_photo = collection.faces_of[collection.faces[face].sha256]
        if not person[face] and all(person[another] != name for another in of_photo):
            person[face] = name
