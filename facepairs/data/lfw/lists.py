"""Read the official lists of Labeled Faces in the Wild.

View 1 (`peopleDevTrain.txt`, `peopleDevTest.txt`, `pairsDevTrain.txt`, `pairsDevTest.txt`) is for
choosing models, View 2 (`people.txt`, `pairs.txt`: ten folds) only for reporting.

People lists: a count (View 2: the number of folds, and a count before each fold), then
`Name<tab>number of images`. Pair lists: `N` (View 2: `folds<tab>N`), then for each fold N genuine
lines `Name<tab>i<tab>j` and N impostor lines `Name<tab>i<tab>Other<tab>j`; image i of Name is
`Name/Name_000i.jpg`.

References:
    Huang, Ramesh, Berg, Learned-Miller, "Labeled Faces in the Wild", UMass Amherst TR 07-49, 2007.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from facepairs.data.index import READABLE, FaceIndex
from facepairs.data.pairs import PairList
from facepairs.errors import BadData
from facepairs.support import console
from facepairs.support.validation import shorten
from facepairs.support.words import counted

HOW_TO_FETCH = "facepairs data fetch lfw downloads them"
PERSON = "Name<tab>number of images"
MAX_NAMED = 100  # missing photos
MAX_IMAGES = 5000  # of one person; LFW has 530


class _ListFile:
    """The lines of a list; errors quote the line read last, with its number."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            text = path.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise BadData(
                f"{path}: {error.strerror}; give the folder of the official LFW lists; "
                f"{HOW_TO_FETCH}",
                "lists",
            ) from None
        except UnicodeDecodeError:
            raise BadData(
                f"{path}: not a UTF-8 text file; download the official list again"
            ) from None
        # Only \n ends a line: str.splitlines would also split at characters that names may contain.
        self._lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
        self._count = 0  # lines read

    def fail(self, problem: str) -> NoReturn:
        """Raise BadData about the line read last."""
        line = shorten(self._lines[self._count - 1])
        quoted = "" if line in problem else f": {line}"
        raise BadData(f"{self.path}: line {self._count}: {problem}{quoted}")

    def read(self, expected: str, *layouts: str) -> list[str]:
        """Return the cells of the next line, which has one of the layouts, such as `A<tab>B`."""
        if self._count == len(self._lines):
            raise BadData(f"{self.path}: ends at line {self._count}; expected {expected}")
        self._count += 1
        cells = self._lines[self._count - 1].split("\t")
        if all(len(cells) != len(layout.split("<tab>")) for layout in layouts):
            self.fail(f"expected {' or '.join(layouts)} ({expected})")
        return cells

    def step_back(self) -> None:
        """Let the next `read` return the same line again."""
        self._count -= 1

    def number(self, text: str) -> int:
        """Parse a cell of the line read last."""
        if not (text.isascii() and text.isdigit()) or len(text) > 9 or int(text) < 1:
            self.fail(f"{shorten(text)} is not a number from 1 up")
        return int(text)

    def check_end(self) -> None:
        """Raise BadData if there are further lines."""
        if any(line.strip() for line in self._lines[self._count :]):
            self._count += 1
            self.fail("more lines than the counts state")


def list_path(lists: Path | None, name: str) -> Path:
    """Return the path of one official list.

    Args:
        lists: The folder of the lists.
        name: The name of the list.

    Raises:
        BadData: `lists` is None.
    """
    if lists is None:
        raise BadData(
            f"this protocol needs LFW's official list {name}; give its folder; {HOW_TO_FETCH}",
            "lists",
        )
    return lists / name


def read_people(
    path: Path, index: FaceIndex, skip_missing: bool = False
) -> list[npt.NDArray[np.int64]]:
    """Read a people list.

    Args:
        path: The list.
        index: The index of the images.
        skip_missing: Leave out missing people and images, instead of raising.

    Returns:
        For each fold (one for View 1) the sorted person numbers, int64[people].

    Raises:
        BadData: A line is wrong, or the folder has more images of a person, or an image is missing.
            The message quotes file, line number and line.
    """
    lines = _ListFile(path)
    count = lines.number(*lines.read("the first line", "a count"))
    is_folds = len(lines.read("a person", PERSON, "a fold's count")) == 1
    lines.step_back()
    missing: dict[str, None] = {}
    counts = (lines.number(*lines.read("a fold", "a count")) for _ in range(count))
    folds = [_read_fold_people(lines, n, index, missing) for n in (counts if is_folds else [count])]
    lines.check_end()
    if missing:
        _tell_missing(path, index, missing, skip_missing)
    return folds


def _read_fold_people(
    lines: _ListFile, count: int, index: FaceIndex, missing: dict[str, None]
) -> npt.NDArray[np.int64]:
    people = []
    for _ in range(count):
        name, number = lines.read("a person", PERSON)
        expected = lines.number(number)
        if expected > MAX_IMAGES:
            lines.fail(f"{number} images of one person; at most {MAX_IMAGES:,} can be checked")
        person = index.find_person(name)
        images = 0 if person is None else len(index.images_of(person))
        if images > expected:
            lines.fail(f"{index.root / name} has {images} images, the list says {expected}")
        if images < expected:
            stems = [_stem(name, image) for image in range(1, expected + 1)]
            missing.update({stem: None for stem in stems if _find_image(index, stem) is None})
        if person is not None:
            people.append(person)
    return np.array(sorted(people), np.int64)


def read_pairs(path: Path, index: FaceIndex, skip_missing: bool = False) -> tuple[PairList, int]:
    """Read a pair list.

    Args:
        path: The list.
        index: The index of the images.
        skip_missing: Leave out pairs of missing images, instead of raising.

    Returns:
        The pairs, with folds from 1 (View 1: fold 0), and the number of those left out.

    Raises:
        BadData: A line is wrong, an image is missing and `skip_missing` is false, or no pair is
            left. The message quotes file, line number and line, or the missing images.
    """
    lines = _ListFile(path)
    header = lines.read("the first line", "a count", "folds<tab>count")
    count = lines.number(header[-1])
    folds = lines.number(header[0]) if len(header) == 2 else 1
    missing: dict[str, None] = {}
    rows = []
    for fold in range(1, folds + 1):
        for genuine in (True, False):
            for _ in range(count):
                stems = _read_pair(lines, genuine)
                left, right = (_find_image(index, stem) for stem in stems)
                if left is None or right is None:
                    found = zip(stems, (left, right), strict=True)
                    missing.update({stem: None for stem, image in found if image is None})
                else:
                    rows.append((left, right, genuine, fold))
    lines.check_end()
    if missing:
        _tell_missing(path, index, missing, skip_missing, left=bool(rows))
    left_of, right_of, genuine_of, fold_of = zip(*rows, strict=True)
    pairs = PairList.of(left_of, right_of, genuine_of, fold_of if len(header) == 2 else 0)
    return pairs, 2 * count * folds - len(rows)


def _tell_missing(
    path: Path, index: FaceIndex, missing: Iterable[str], skip: bool, left: bool = True
) -> None:
    """Log the missing images; raise BadData unless they are left out."""
    names = [f"{stem}.jpg" for stem in missing]
    for name in names[:MAX_NAMED]:
        console.log(f"missing: {index.root / name}")
    if names[MAX_NAMED:]:
        console.log(f"missing: {len(names) - MAX_NAMED:,} more")
    if not (skip and left):
        more = f", … ({len(names):,} in all)" if names[3:] else ""
        raise BadData(
            f"{path}: no image {', '.join(names[:3])}{more} in {index.root}; complete the copy "
            f"({HOW_TO_FETCH})" + ("" if skip else ", or train without missing images"),
            *(() if skip else ("skip_bad",)),
        )
    console.log(f"left out: {counted(len(names), 'photo')} of {path.name} missing in {index.root}")


def _read_pair(lines: _ListFile, genuine: bool) -> tuple[str, str]:
    """Return the images of the next pair, without their suffixes."""
    if genuine:
        name, left, right = lines.read("a genuine pair", "Name<tab>i<tab>j")
        other = name
        if lines.number(left) == lines.number(right):
            lines.fail("an image is paired with itself")
    else:
        name, left, other, right = lines.read("an impostor pair", "Name<tab>i<tab>Other<tab>j")
        if name == other:
            lines.fail("an impostor pair of one person")
    return _stem(name, lines.number(left)), _stem(other, lines.number(right))


def _stem(name: str, number: int) -> str:
    return f"{name}/{name}_{number:04d}"


def _find_image(index: FaceIndex, stem: str) -> int | None:
    """Return the number of an image; a copy may have `.JPG`, or another format."""
    suffixes = (each for suffix in READABLE for each in (suffix, suffix.upper()))
    found = (index.find(stem + suffix) for suffix in suffixes)
    return next((image for image in found if image is not None), None)
