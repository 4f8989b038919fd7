"""Group the faces of a collection by people, with errors that are known.

Strangers multiply with the square of a collection's size. How many of their pairs end up in one
group was measured of the model, so the height up to which faces are grouped follows from the
collection itself: from how many pairs of strangers it may hold, and how many pairs of faces a
height would join.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, count, groupby
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.bundles.rates import ErrorTable, GroupErrors, smallest_fmr
from facepairs.bundles.scorer import ScoreArray
from facepairs.data.index import UNNAMED
from facepairs.errors import NotEnough
from facepairs.grouping.collection import NO_FACE, Collection, CollectionFace
from facepairs.verification.linkage import GroupMeans, Merges, average_linkage

PRECISION = 0.99
NEW_PERSON = "person_{:04d}"
ROWS = 4096  # faces compared with all people at a time
# Faces of one photo are alike: of 1,726 such pairs of LFW .8 % are within a distance of .06, and of
# random strangers .02 %. So they are apart, unless two are so near that the photo is a collage.
COLLAGE_FMR = 1e-5
# In a large collection more of the wrong pairs meet in one group, so fewer groups are mixed per
# pair of groups: in parts of LFW from 200 photos to all 13,233, and at cuts from .06 to .09, their
# share falls with the number of people to the power of .22 to .33.
MIXED_FALLS = 0.3
SUGGESTED = 100  # pairs of people
FEW_FACES = 20  # of which more than half may well show one person
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Settled:
    """What is settled of a collection's faces before they are grouped.

    Attributes:
        person: Name of the person of a face, by the number of the face.
        nobody: Faces that are no person's.
        names: Further names that were given before, and are not given again.
    """

    person: Mapping[int, str] = field(default_factory=dict)
    nobody: frozenset[int] = frozenset()
    names: frozenset[str] = frozenset()


class KnownFaces(msgspec.Struct, frozen=True):
    """Faces of known people outside of the collection, such as those of a gallery.

    Attributes:
        embeddings: float32[K, D], rows of length 1.
        person: Name of the person of each.
    """

    embeddings: ScoreArray
    person: tuple[str, ...] = ()


class ExpectedErrors(msgspec.Struct, frozen=True, kw_only=True):
    """What to expect of groups, from what was measured of the model.

    Attributes:
        precision: Expected share of joined pairs of faces that show one person.
        precision_interval: Its interval of 95 %, by the people that the model was measured on.
        joined_pairs: Pairs of faces that are in one group.
        wrong_pairs: Those of them that are expected to show two people.
        mixed_people: Groups that are expected to hold more than one person.
        cut: The height up to which faces were grouped.
        measured_on: The photos that this was measured on, in words.
        is_valid: Whether faces of this collection differ as those did; else these figures mean
            nothing.
    """

    precision: float
    precision_interval: tuple[float, float]
    joined_pairs: int
    wrong_pairs: float
    mixed_people: float
    cut: float
    measured_on: str
    is_valid: bool = True

    def with_pairs(self, joined: int) -> "ExpectedErrors":
        """Return the same wrong pairs among more joined ones."""
        total = self.joined_pairs + joined
        share = self.joined_pairs / max(1, total)
        ends = (1 - share * (1 - end) for end in self.precision_interval)
        return msgspec.structs.replace(
            self,
            joined_pairs=total,
            precision=1 - share * (1 - self.precision),
            precision_interval=tuple(ends),
        )

    def describe(self) -> str:
        """Return in words how many pairs and people are expected to be wrong."""
        if not self.is_valid:
            return (
                "not known; more than half of all pairs look like one person: calibrate this model "
                "on photos of this kind"
            )
        wrong, mixed = map(_about, (self.wrong_pairs, self.mixed_people))
        group = "groups" if self.mixed_people >= 1.5 else "group"
        low, high = self.precision_interval
        return (
            f"{wrong} of {self.joined_pairs:,} pairs, in {mixed} {group} of more than one person; "
            f"precision {self.precision:.4f} ({low:.4f} to {high:.4f}; {self.measured_on})"
        )


def _about(count: float) -> str:
    return "fewer than 1" if count < 1 else f"about {count:,.0f}"


class SimilarPeople(msgspec.Struct, frozen=True):
    """Two people of the result who may be one; `height` is at which they would be joined."""

    one: str
    other: str
    height: float


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
        """The faces of each person, by name; the surest first."""
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
    settled: Settled | None = None,
    cohort: ScoreArray | None = None,
    known: KnownFaces | None = None,
) -> Groups:
    """Group the faces of a collection.

    Unclear faces found no group, but join the people whose clear faces they are near to: to those
    they are as rarely near by mistake as clear faces are, see `grouping.clarity`.

    Args:
        collection: The faces.
        errors: What was measured of the model, with its grouping.
        precision: As for `group`.
        settled: Faces whose people stay together, and apart from each other; and faces left out.
        cohort: The model's, see `verification.linkage`.
        known: People by whom groups are named. One who is nobody yet may get one of these names.

    Raises:
        NotEnough: The model was measured on too few pairs for this precision.
    """
    assert errors.grouping is not None
    settled = settled or Settled()
    known = known or KnownFaces(collection.embeddings[:0])
    faces = collection.faces
    grouped = np.array(
        [
            face in settled.person or not (faces[face].doubt or face in settled.nobody)
            for face in range(len(faces))
        ],
        np.bool_,
    )
    rows = np.flatnonzero(grouped)
    own = [settled.person.get(face, "") for face in rows.tolist()]
    people = sorted({*own, *known.person} - {""})
    number = {name: at for at, name in enumerate(people)}
    start = np.array([number.get(name, -1) for name in (*own, *known.person)], np.int64)
    free = start < 0
    start[free] = len(people) + np.arange(free.sum())
    in_folder = [number[name] for name in {*own} - {""}]
    named = [at for name, at in number.items() if not UNNAMED.fullmatch(name)]
    collage = 1 - errors.threshold_for(COLLAGE_FMR)
    of_row = dict(zip(rows.tolist(), start.tolist(), strict=False))
    pairs = _of_one_photo(collection, grouped, collage)
    apart = [(of_row[one], of_row[other]) for one, other in pairs]
    merges = average_linkage(
        np.concatenate([collection.embeddings[rows], known.embeddings]),
        errors.grouping.cuts[-1],
        start,
        (in_folder, named),
        [(one, other) for one, other in apart if one != other],
        cohort=cohort,
    )
    counts = [
        np.bincount(part, minlength=merges.groups)
        for part in (start[: len(rows)], start[len(rows) :])
    ]
    unclear = [face for face in np.flatnonzero(~grouped).tolist() if face not in settled.nobody]
    expected = choose_cut(
        errors.grouping, merges, counts, len(unclear), precision, errors.measured_on
    )
    label = merges.labels(expected.cut)
    names = dict(zip(label[in_folder].tolist(), (people[at] for at in in_folder), strict=True))
    names |= {int(label[at]): people[at] for at in named}
    taken = {*people, *settled.names}
    person = np.full(len(faces), "", object)
    person[rows] = _names(label[start[: len(rows)]], names, taken)
    joined = _join_unclear(collection, unclear, person, expected.cut, cohort)
    result = tuple(person.tolist())
    return Groups(
        collection=collection,
        person=result,
        certainty=certainties(collection.embeddings, result),
        expected=expected.with_pairs(joined),
        similar=similar_people(collection, result, errors.grouping.cuts[-1], cohort),
        nobody=settled.nobody,
    )


def _of_one_photo(
    collection: Collection, grouped: npt.NDArray[np.bool_], collage: float
) -> Iterator[tuple[int, int]]:
    """Yield pairs of faces that are on one photo, unless two of that photo are nearer than this."""
    rows = np.flatnonzero(grouped).tolist()
    for _, faces in groupby(rows, lambda face: collection.faces[face].photo):
        pairs = list(combinations(faces, 2))
        embeddings = collection.embeddings
        distances = (1 - embeddings[one] @ embeddings[other] for one, other in pairs)
        if min(distances, default=0) > collage:
            yield from pairs


def _join_unclear(
    collection: Collection,
    unclear: list[int],
    person: npt.NDArray[np.object_],
    cut: float,
    cohort: ScoreArray | None,
) -> int:
    """Give unclear faces to people, in place; return how many pairs with clear ones that joins."""
    clear = np.flatnonzero(person != "")
    if not unclear or not len(clear):
        return 0
    names, number = np.unique(person[clear].astype(str), return_inverse=True)
    people_means = GroupMeans.of(collection.embeddings[clear], number, cohort)
    alone = GroupMeans.of(collection.embeddings[unclear], np.arange(len(unclear)), cohort)
    on_photo: dict[str, set[str]] = defaultdict(set)
    for face in clear.tolist():
        on_photo[collection.faces[face].sha256].add(person[face])
    near: list[tuple[float, int, int]] = []
    for begin in range(0, len(unclear), ROWS):
        height = alone.heights(slice(begin, begin + ROWS), people_means)
        pairs = np.argwhere(height <= cut).tolist()
        near += [(float(height[row, at]), unclear[begin + row], at) for row, at in pairs]
    joined = 0
    for _, face, at in sorted(near):
        people = on_photo[collection.faces[face].sha256]
        if not person[face] and names[at] not in people:
            person[face] = str(names[at])
            people.add(person[face])
            joined += int(people_means.size[at])
    return joined


def choose_cut(
    errors: GroupErrors,
    merges: Merges,
    counts: Sequence[Ints],
    unclear: int,
    precision: float,
    measured_on: str,
) -> ExpectedErrors:
    """Choose the largest height at which the expected precision is kept.

    Args:
        errors: What was measured of the model.
        merges: Of the faces.
        counts: The faces in each group before the first merge, and the known faces in it: int64
            [groups] each. Pairs of a face with a known one count, pairs of known ones do not.
        unclear: Further faces that may join these, but not each other.
        precision: As for `group`.
        measured_on: As for `group_faces`.

    Raises:
        NotEnough: No height keeps it, by the pairs that were measured.
    """
    faces, known = (int(count.sum()) for count in counts)
    pairs = faces * (faces - 1) / 2 + faces * (known + unclear)
    own, certain = counts
    at_start = int((own * (own - 1) // 2 + own * certain).sum())
    joined = merges.linked_pairs(errors.cuts, own, certain) + at_start
    least = smallest_fmr(errors.people_pairs)
    rate = np.maximum([row[0] for row in errors.linked], least)
    share = np.minimum(1, rate * pairs / np.maximum(1, joined))
    kept = np.flatnonzero((share <= 1 - precision) | (joined == 0))
    if not len(kept):
        best = max(0.01, np.floor(100 * (1 - share.min())) / 100)
        raise NotEnough(
            f"precision {precision:g} cannot be promised for {faces:,} faces: of their "
            f"{pairs:,.0f} pairs only {joined.max():,} look like one person, and the model was "
            f"measured on {errors.people_pairs:,} pairs of people ({measured_on}); give "
            f"precision {best:g} or less, or a model calibrated on more people"
        )
    at = int(kept[-1])
    groups = merges.groups - int(np.searchsorted(merges.height, errors.cuts[at], side="right"))
    measured_people = np.sqrt(2 * errors.people_pairs)
    mixed = errors.mixed[at] * groups * (groups - 1) / 2
    mixed *= (measured_people / max(1, groups)) ** MIXED_FALLS
    total = int(joined[at])
    rates = float(rate[at]), *errors.linked[at][1:]
    wrong, low, high = (min(total, value * pairs) for value in rates)
    divisor = max(1, total)
    return ExpectedErrors(
        precision=1 - wrong / divisor,
        precision_interval=(1 - max(wrong, high) / divisor, 1 - low / divisor),
        joined_pairs=total,
        wrong_pairs=wrong,
        mixed_people=float(min(wrong, mixed)),
        cut=errors.cuts[at],
        measured_on=measured_on,
        is_valid=faces < FEW_FACES or 2 * total <= pairs,
    )


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


def certainties(embeddings: ScoreArray, person: tuple[str, ...]) -> Floats:
    """Return the silhouette of each face among the people: float64[faces], NaN without a person.

    Args:
        embeddings: float32[faces, D], rows of length 1.
        person: The name of each, "" without one.

    References:
        Rousseeuw, "Silhouettes", Journal of Computational and Applied Mathematics 20, 1987.
    """
    result = np.full(len(person), np.nan)
    faces = np.flatnonzero([bool(name) for name in person])
    if not len(faces):
        return result
    names, number = np.unique(np.array(person)[faces], return_inverse=True)
    total = np.zeros((len(names), embeddings.shape[1]), np.float32)
    np.add.at(total, number, embeddings[faces])
    size = np.bincount(number).astype(np.float32)
    for begin in range(0, len(faces), ROWS):
        part = slice(begin, begin + ROWS)
        rows, own = embeddings[faces[part]], number[part]
        near = (rows @ total.T) / size
        at = np.arange(len(rows))
        others = np.maximum(size[own] - 1, 1)
        inside = 1 - (near[at, own] * size[own] - 1) / others
        near[at, own] = -1  # the largest distance, where there is nobody else
        outside = 1 - near.max(axis=1)
        silhouette = (outside - inside) / np.maximum(np.maximum(inside, outside), 1e-9)
        result[faces[part]] = np.where(size[own] > 1, silhouette, 0)
    return result


def similar_people(
    collection: Collection, person: Sequence[str], most: float, cohort: ScoreArray | None = None
) -> tuple[SimilarPeople, ...]:
    """Return pairs of people who may be one, the most similar first.

    People who are on one photo together are left out.

    Args:
        collection: The faces.
        person: The name of the person of each, "" without one.
        most: The largest height at which two people are proposed.
        cohort: The model's, see `verification.linkage`.
    """
    faces = np.flatnonzero([bool(name) for name in person])
    names, number = np.unique(np.array(person, object)[faces].astype(str), return_inverse=True)
    on_photo: dict[str, set[int]] = defaultdict(set)
    for face, one in zip(faces.tolist(), number.tolist(), strict=True):
        on_photo[collection.faces[face].sha256].add(one)
    together = {pair for people in on_photo.values() for pair in combinations(sorted(people), 2)}
    means = GroupMeans.of(collection.embeddings[faces], number, cohort)
    found = means.nearest(most, SUGGESTED + len(together))
    kept = [pair for pair in found if pair[1:] not in together][:SUGGESTED]
    return tuple(SimilarPeople(str(names[a]), str(names[b]), height) for height, a, b in kept)
