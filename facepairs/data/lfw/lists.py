"""The official lists of Labeled Faces in the Wild.

View 1 (`peopleDevTrain.txt`, `peopleDevTest.txt`, `pairsDevTrain.txt`, `pairsDevTest.txt`) is for
choosing models, View 2 (`people.txt`, `pairs.txt`: ten folds) for reporting only. Source: Huang,
Ramesh, Berg, Learned-Miller, *Labeled Faces in the Wild*, UMass Amherst TR 07-49, 2007.

People lists: a count (View 2: the number of folds, and a count before each), then `Name<tab>n`.
Pair lists: `N` (View 2: `folds<tab>N`), then per fold N genuine lines `Name<tab>i<tab>j` and N
impostor lines `Name<tab>i<tab>Other<tab>j`; image i of Name is `Name/Name_000i.jpg`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from facepairs.data.index import READABLE, FaceIndex
from facepairs.data.pairs import PairList
from facepairs.errors import BadData

MAX_FOLDS = 1000


class _Lines:
    """A list file's lines with their numbers, for messages that quote both."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise BadData(
                f"{path}: {error.strerror}; give the folder of the official LFW lists with --lists"
            ) from None
        except UnicodeDecodeError:
            raise BadData(f"{path}: not a UTF-8 text file; fetch the official list anew") from None
        # Only \n ends a line: str.splitlines would also cut at characters that names may hold.
        self._lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
        self.at = 0

    def fail(self, why: str) -> NoReturn:
        line = self._lines[self.at - 1] if self.at <= len(self._lines) else ""
        raise BadData(f"{self.path}: line {self.at}: {why}: {line!r}")

    def next(self, what: str) -> list[str]:
        self.at += 1
        if self.at > len(self._lines):
            raise BadData(f"{self.path}: ends at line {self.at - 1} where {what} should follow")
        return self._lines[self.at - 1].split("\t")

    def number(self, text: str, least: int = 1) -> int:
        if not (text.isascii() and text.isdigit()) or len(text) > 9 or int(text) < least:
            self.fail(f"{text!r} is not a number from {least} up")
        return int(text)

    def end(self) -> None:
        rest = [line for line in self._lines[self.at :] if line.strip()]
        if rest:
            self.at += 1
            self.fail("more lines than the counts say")


def read_people(path: Path, index: FaceIndex) -> list[npt.NDArray[np.int64]]:
    """Read a people list: person numbers for each fold (one for View 1).

    Raises BadData that quotes file, line number and line; also for a person whose number of images
    in the folder is not the list's.
    """
    lines = _Lines(path)
    header = lines.next("a count")
    if len(header) != 1:
        lines.fail("expected one count")
    count = lines.number(header[0])
    if len(lines.next("a line")) == 1:  # a count below the count: folds
        if count > MAX_FOLDS:
            lines.fail(f"{count} folds are too many")
        lines.at -= 1
        folds = []
        for _ in range(count):
            cells = lines.next("a fold's count")
            if len(cells) != 1:
                lines.fail("expected a fold's count")
            folds.append(_people(lines, lines.number(cells[0]), index))
    else:
        lines.at -= 1
        folds = [_people(lines, count, index)]
    lines.end()
    return folds


def _people(lines: _Lines, count: int, index: FaceIndex) -> npt.NDArray[np.int64]:
    people = []
    for _ in range(count):
        cells = lines.next("a person")
        if len(cells) != 2:
            lines.fail("expected Name<tab>number of images")
        images = lines.number(cells[1])
        person = index.find_person(cells[0])
        if person is None:
            lines.fail(f"no folder of that name below {index.root}")
        found = len(index.images_of(person))
        if found != images:
            lines.fail(f"{index.root / cells[0]} has {found} images, the list says {images}")
        people.append(person)
    return np.array(sorted(people), np.int64)


def read_pairs(path: Path, index: FaceIndex) -> PairList:
    """Read a pair list; folds count from 1 (View 1: fold 0).

    Raises BadData that quotes file, line number and line; also for an image that is missing.
    """
    lines = _Lines(path)
    header = lines.next("a count")
    if len(header) not in (1, 2):
        lines.fail("expected a count, or folds<tab>count")
    count = lines.number(header[-1])
    folds = lines.number(header[0]) if len(header) == 2 else 1
    if folds > MAX_FOLDS:
        lines.fail(f"{folds} folds are too many")
    rows = list(_pairs(lines, folds, count, index))
    lines.end()
    left, right, genuine, fold = zip(*rows, strict=True)
    return PairList.of(left, right, genuine, fold if len(header) == 2 else 0)


def _pairs(
    lines: _Lines, folds: int, count: int, index: FaceIndex
) -> Iterator[tuple[int, int, bool, int]]:
    for fold in range(1, folds + 1):
        for genuine in (True, False):
            for _ in range(count):
                cells = lines.next("a genuine pair" if genuine else "an impostor pair")
                if len(cells) != (3 if genuine else 4):
                    lines.fail(
                        "expected Name<tab>i<tab>j (a genuine pair)"
                        if genuine
                        else "expected Name<tab>i<tab>Other<tab>j (an impostor pair)"
                    )
                one, other = (
                    ((cells[0], cells[1]), (cells[0], cells[2]))
                    if genuine
                    else ((cells[0], cells[1]), (cells[2], cells[3]))
                )
                if genuine and lines.number(cells[1]) == lines.number(cells[2]):
                    lines.fail("an image is paired with itself")
                if not genuine and cells[0] == cells[2]:
                    lines.fail("an impostor pair of one person")
                yield _image(lines, index, *one), _image(lines, index, *other), genuine, fold


def _image(lines: _Lines, index: FaceIndex, name: str, number: str) -> int:
    stem = f"{name}/{name}_{lines.number(number):04d}"
    found = [image for suffix in READABLE if (image := index.find(stem + suffix)) is not None]
    if not found:
        lines.fail(f"no image {index.root / stem}.jpg")
    return found[0]


def list_path(lists: Path | None, name: str) -> Path:
    """Give the path of one official list, or say that `--lists` is needed."""
    if lists is None:
        raise BadData(
            f"the protocol needs the official list {name}; give its folder with --lists DIR"
        )
    return lists / name
