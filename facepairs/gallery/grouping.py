"""Group the faces of a heap by people, with errors that are known.

Strangers multiply with the square of a heap's size. How many of their pairs end up in one group was
measured of the model, so the height up to which faces are grouped follows from the heap itself:
from how many pairs of strangers it may hold, and how many pairs of faces a height would join.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, count, groupby
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.bundles.rates import ErrorTable, GroupErrors, smallest_fmr
from facepairs.errors import NotEnough
from facepairs.gallery.heap import NO_FACE, Heap, HeapFace
from facepairs.support.words import printable
from facepairs.verification.linkage import Merges, average_linkage
from facepairs.verification.scorer import ScoreArray

PRECISION = 0.99
NEW_PERSON = "person_{:04d}"
ROWS = 4096  # faces compared with all people at a time
# Faces of one photo are alike: of 1,726 such pairs of LFW .8 % are within a distance of .06, and of
# random strangers .02 %. So they are apart, unless two are so near that the photo is a collage.
COLLAGE_FMR = 1e-5
# In a large heap more of the wrong pairs meet in one group, so fewer groups are mixed per pair of
# groups: in parts of LFW from 200 photos to all 13,233, and at cuts from .06 to .09, their share
# falls with the number of people to the power of .22 to .33.
MIXED_FALLS = 0.3
SUGGESTED = 100  # pairs of people
FEW_FACES = 20  # of which more than half may well show one person
Box = tuple[int, int, int]
FaceKey = tuple[str, Box]
"""The photo, as it is printed, and the box of a face."""
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Earlier:
    """What is known of faces before they are grouped: earlier groups, and corrections of them.

    Attributes:
        person: Name of the person of a face.
        refused: People that a face does not show.
        corrections: The content of the file of corrections that are made here; None without one.
    """

    person: dict[FaceKey, str] = field(default_factory=dict)
    refused: dict[FaceKey, frozenset[str]] = field(default_factory=dict)
    corrections: bytes | None = None


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
        is_valid: Whether faces of this heap differ as those did; else these figures mean nothing.
    """

    precision: float
    precision_interval: tuple[float, float]
    joined_pairs: int
    wrong_pairs: float
    mixed_people: float
    cut: float
    measured_on: str
    is_valid: bool = True

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
    """The people of a heap.

    Attributes:
        heap: Its photos and faces.
        person: Name of the person of each face; "" for a face without a group.
        certainty: float64[faces], the silhouette from -1 to 1: how much nearer a face is to its own
            group than to the nearest other person; NaN without a group.
        expected: The errors to expect.
        similar: Pairs of people who may be one, the most similar first.
        refused: For each face, the people that it was said not to show.
    """

    heap: Heap
    person: tuple[str, ...]
    certainty: Floats
    expected: ExpectedErrors
    similar: tuple[SimilarPeople, ...] = ()
    refused: tuple[frozenset[str], ...] = ()

    @cached_property
    def people(self) -> dict[str, list[int]]:
        """The faces of each person, by name; the surest first."""
        found: dict[str, list[int]] = defaultdict(list)
        for face in np.argsort(-self.certainty, kind="stable").tolist():
            if self.person[face]:
                found[self.person[face]].append(face)
        return dict(sorted(found.items()))

    def renamed(self, names: dict[str, str]) -> "Groups":
        """Return groups with other names of people; those that get the same name become one."""
        person = tuple(names.get(name, name) for name in self.person)
        similar: dict[tuple[str, str], float] = {}
        for pair in self.similar:
            one, other = sorted(names.get(name, name) for name in (pair.one, pair.other))
            if one != other:
                similar.setdefault((one, other), pair.height)
        return replace(
            self,
            person=person,
            certainty=certainties(self.heap.embeddings, person),
            similar=tuple(SimilarPeople(*pair, height) for pair, height in similar.items()),
            refused=tuple(frozenset(names.get(one, one) for one in each) for each in self.refused),
        )

    @property
    def faces(self) -> tuple[HeapFace, ...]:
        """All faces of the heap."""
        return self.heap.faces

    @property
    def of_photo(self) -> dict[str, str]:
        """The person of each photo's most prominent face; the photo itself without a group."""
        first = zip(self.faces, self.person, strict=True)
        named = {face.photo: name for face, name in first if face.number == 1 and name}
        return {photo: named.get(photo, f"/{photo}") for photo in self.heap.photos}

    @property
    def single(self) -> list[int]:
        """The faces of people with one photo."""
        return [face for face, name in enumerate(self.person) if not name]

    @property
    def without_face(self) -> list[str]:
        """The photos without a face."""
        return [photo for photo, problem in self.heap.problems.items() if problem == NO_FACE]

    @property
    def unusable(self) -> dict[str, str]:
        """What is wrong with photos that cannot be used, by photo."""
        return {photo: why for photo, why in self.heap.problems.items() if why != NO_FACE}

    def to_json(self) -> dict[str, Any]:
        """Return a plain dict."""
        return {
            "photos": len(self.heap.photos),
            "faces": len(self.faces),
            "people": {name: len(faces) for name, faces in self.people.items()},
            "single_faces": len(self.single),
            "photos_without_face": len(self.without_face),
            "unusable": self.unusable,
            "expected": msgspec.to_builtins(self.expected),
            "similar": msgspec.to_builtins(self.similar),
        }


def group_faces(
    heap: Heap,
    errors: ErrorTable,
    precision: float = PRECISION,
    earlier: Earlier | None = None,
    cohort: ScoreArray | None = None,
) -> Groups:
    """Group the faces of a heap.

    Args:
        heap: The faces.
        errors: What was measured of the model, with its grouping.
        precision: As for `group`.
        earlier: Faces that are grouped already: they stay together, and apart from each other.
        cohort: The model's, see `verification.linkage`.

    Raises:
        NotEnough: The model was measured on too few pairs for this precision.
    """
    assert errors.grouping is not None
    earlier = earlier or Earlier()
    keys = [(printable(face.photo), face.box) for face in heap.faces]
    known = sorted({earlier.person[key] for key in keys if key in earlier.person})
    number = {name: at for at, name in enumerate(known)}
    start = np.array([number.get(earlier.person.get(key, ""), -1) for key in keys], np.int64)
    free = start < 0
    start[free] = len(known) + np.arange(free.sum())
    refused = tuple(earlier.refused.get(key, frozenset()) for key in keys)
    apart = [
        (start[face], number[name])
        for face, names in enumerate(refused)
        for name in names
        if name in number
    ]
    collage = 1 - errors.threshold_for(COLLAGE_FMR)
    apart += [(start[one], start[other]) for one, other in _of_one_photo(heap, collage)]
    apart = [(one, other) for one, other in apart if one != other]
    most = errors.grouping.cuts[-1]
    merges = average_linkage(heap.embeddings, most, start, range(len(known)), apart, cohort=cohort)
    expected = choose_cut(errors.grouping, merges, start, precision, errors.measured_on)
    label = merges.labels(expected.cut)
    names = dict(zip(label[: len(known)].tolist(), known, strict=True))
    taken = frozenset().union(earlier.person.values(), *earlier.refused.values())
    person = _names(label[start], names, taken)
    return Groups(
        heap=heap,
        person=person,
        certainty=certainties(heap.embeddings, person),
        expected=expected,
        similar=_similar(merges, expected.cut, start, person),
        refused=refused,
    )


def _of_one_photo(heap: Heap, collage: float) -> Iterator[tuple[int, int]]:
    """Yield pairs of faces that are on one photo, unless two of that photo are nearer than this."""
    for _, faces in groupby(range(len(heap.faces)), lambda face: heap.faces[face].photo):
        pairs = list(combinations(faces, 2))
        distances = (1 - heap.embeddings[one] @ heap.embeddings[other] for one, other in pairs)
        if min(distances, default=0) > collage:
            yield from pairs


def choose_cut(
    errors: GroupErrors, merges: Merges, start: Ints, precision: float, measured_on: str
) -> ExpectedErrors:
    """Choose the largest height at which the expected precision is kept.

    Args:
        errors: What was measured of the model.
        merges: Of the faces.
        start: int64[faces], the groups before the first merge.
        precision: As for `group`.
        measured_on: As for `group_faces`.

    Raises:
        NotEnough: No height keeps it, by the pairs that were measured.
    """
    faces, sizes = len(start), np.bincount(start)
    pairs = faces * (faces - 1) / 2
    joined = merges.linked_pairs(errors.cuts) + int((sizes * (sizes - 1) // 2).sum())
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


def _names(label: Ints, known: dict[int, str], taken: frozenset[str]) -> tuple[str, ...]:
    """Return the person of each face: an earlier name, a new one, or "" for a face alone."""
    size = np.bincount(label)
    names = dict(known)
    numbers = (NEW_PERSON.format(number) for number in count(1))
    free = (name for name in numbers if name not in taken)
    for group in np.argsort(-size, kind="stable").tolist():  # the largest first
        if size[group] > 1 and group not in names:
            names[group] = next(free)
    return tuple(names.get(group, "") for group in label.tolist())


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


def _similar(
    merges: Merges, cut: float, start: Ints, person: tuple[str, ...]
) -> tuple[SimilarPeople, ...]:
    """Return pairs of people that a larger height would join first."""
    names = {group: name for group, name in zip(start.tolist(), person, strict=True) if name}
    found: dict[tuple[str, str], float] = {}
    begin = int(np.searchsorted(merges.height, cut, side="right"))
    rest = (column[begin:].tolist() for column in (merges.one, merges.other, merges.height))
    for one, other, height in zip(*rest, strict=True):
        pair = sorted((names.get(one, ""), names.get(other, "")))
        if pair[0] and pair[0] != pair[1]:
            found.setdefault((pair[0], pair[1]), height)
        if len(found) == SUGGESTED:
            break
    return tuple(SimilarPeople(*pair, height) for pair, height in found.items())
