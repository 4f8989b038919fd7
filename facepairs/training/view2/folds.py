"""LFW's View 2: ten sets of people, each tested once by what the other nine have taught.

Who trains, calibrates and is tested in a fold, and the guard that no one is in two of these parts.
Nothing here needs TensorFlow.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.bundles.bundle import Bundle
from facepairs.config import TrainConfig
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import MAX_FOLDS, list_path, read_pairs, read_people
from facepairs.data.pairs import PairList
from facepairs.data.split import PeopleSplit, split_people
from facepairs.errors import BadConfig, BadData, BadRun
from facepairs.training.inputs.people import readable_index

PEOPLE_LIST, PAIRS_LIST = "people.txt", "pairs.txt"
NAMED = 3  # people that a message lists
People = npt.NDArray[np.int64]


@dataclass(frozen=True)
class View2:
    """The protocol on one folder: `sets[k - 1]` are fold k's people, `pairs.fold` counts from 1.

    Sets are disjoint and every pair shows people of its fold's set. `digests` are the SHA-256 (hex)
    of the two lists by name, and of the index.
    """

    index: FaceIndex
    sets: tuple[People, ...]
    pairs: PairList
    digests: dict[str, str]

    def asked(self, folds: tuple[int, ...]) -> tuple[int, ...]:
        """Give these folds, or all where none are named; raises BadConfig for one there is not."""
        count = len(self.sets)
        if folds and max(folds) > count:
            raise BadConfig(f"folds is {folds_text(folds)!r}; the lists have folds 1 to {count}")
        return folds or tuple(range(1, count + 1))

    def pairs_of(self, fold: int) -> PairList:
        """Give the pairs that fold's figures come from."""
        return self.pairs.where(self.pairs.fold == fold)

    def people_of(self, fold: int) -> People:
        """Give everybody whom fold's network may not know: its set, and who is in its pairs."""
        shown = self.index.person_of[self.pairs_of(fold).images()]
        return np.union1d(self.sets[fold - 1], shown)

    def split(self, fold: int, config: TrainConfig) -> PeopleSplit:
        """Split the people of the other sets for training and calibration; fold's are the test.

        Raises NotEnough where they cannot form the pairs.
        """
        others = np.concatenate([s for k, s in enumerate(self.sets, 1) if k != fold])
        split = split_people(self.index, others, config.seed, config.calibration_share, 0.0)
        return replace(split, test=self.people_of(fold))


def prepare_view2(
    data: Path,
    lists: Path,
    folds: tuple[int, ...],
    say: Callable[[str], None],
    progress: Callable[[int, int], None] | None = None,
) -> View2:
    """Index a folder, decode every image once, and read and check the two lists.

    Raises BadData that names the image that is missing or cannot be read, or the line of a list;
    BadConfig for folds that the lists do not have.
    """
    read_view2(FaceIndex.scan(data), lists).asked(folds)  # decoding takes longer, so it comes last
    return read_view2(readable_index(data, False, say, progress), lists)


def read_view2(index: FaceIndex, lists: Path) -> View2:
    """Read `people.txt` and `pairs.txt`; raises BadData where they disagree."""
    people_path, pairs_path = list_path(lists, PEOPLE_LIST), list_path(lists, PAIRS_LIST)
    sets, pairs = read_people(people_path, index), read_pairs(pairs_path, index)
    count = int(pairs.fold.max())
    if count < 2 or len(sets) != count:
        raise BadData(
            f"{people_path} has {len(sets)} sets and {pairs_path} {count} folds; View 2 needs as "
            "many of both, and two or more: fetch the official lists anew"
        )
    set_of = np.zeros(len(index.people), np.int64)
    for number, people in enumerate(sets, 1):
        for person in people[set_of[people] > 0].tolist() + _twice(people):
            who, before = index.people[person], set_of[person] or number
            raise BadData(f"{people_path}: {who} is in set {before} and again in set {number}")
        set_of[people] = number
    for image, fold in zip(
        np.concatenate([pairs.left, pairs.right]).tolist(), np.tile(pairs.fold, 2), strict=True
    ):
        person = int(index.person_of[image])
        if set_of[person] != fold:
            where = f"set {set_of[person]}" if set_of[person] else "no set"
            raise BadData(
                f"{pairs_path}: fold {fold} shows {index.people[person]}, who is in {where} of "
                f"{people_path}"
            )
    digests = {path.name: _sha256(path) for path in (people_path, pairs_path)}
    return View2(index, tuple(sets), pairs, {"index": index.fingerprint, **digests})


def _twice(people: People) -> list[int]:
    values, counts = np.unique(people, return_counts=True)
    return [int(person) for person in values[counts > 1]]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_unknown(bundle: Bundle, index: FaceIndex, people: People, fold: int) -> None:
    """Raise BadRun, with how many, where a bundle was trained or calibrated on such people."""
    names = [index.people[int(person)] for person in people]
    known = [name for name, knows in zip(names, bundle.knows(names), strict=True) if knows]
    if known:
        more = ", …" if len(known) > NAMED else ""
        raise BadRun(
            f"{bundle.folder}: was trained or calibrated on {len(known)} of the {len(names)} "
            f"people of fold {fold} ({', '.join(known[:NAMED])}{more}), so its figures would "
            f"flatter; remove {bundle.folder.parent} and run that fold again"
        )


def fold_numbers(text: str) -> tuple[int, ...]:
    """Read `3`, `1-10` or `2,5,7-8`: fold numbers, rising, each once; BadConfig for all else."""
    numbers: set[int] = set()
    for part in text.split(","):
        ends = [end.strip() for end in part.split("-")]
        whole = all(end.isascii() and end.isdigit() and len(end) < 5 for end in ends)
        if len(ends) > 2 or not whole or not 1 <= int(ends[0]) <= int(ends[-1]) <= MAX_FOLDS:
            raise BadConfig(f"folds is {text!r}; use numbers and ranges such as 3, 1-10 or 2,5,7-8")
        numbers |= set(range(int(ends[0]), int(ends[-1]) + 1))
    return tuple(sorted(numbers))


def folds_text(numbers: tuple[int, ...]) -> str:
    """Print rising fold numbers as `fold_numbers` reads them: `2,5,7-8`."""
    parts: list[str] = []
    for number in numbers:
        if parts and int(parts[-1].split("-")[-1]) == number - 1:
            parts[-1] = f"{parts[-1].split('-')[0]}-{number}"
        else:
            parts.append(str(number))
    return ",".join(parts)
