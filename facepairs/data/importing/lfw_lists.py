"""Find the official lists of LFW in a data set, and rewrite those that Kaggle has as CSV.

Kaggle's CSV files say the same in other words: `matchpairsDevTest.csv` (a name and two numbers)
and `mismatchpairsDevTest.csv` (name, number, name, number) together are `pairsDevTest.txt`, and
`pairs.csv` has rows of both kinds. Columns are read by position: in their headers two have the
same name or none. A row without a name separates the sets in `people.csv`.
"""

import csv
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from facepairs.data.lfw.fetch import LISTS
from facepairs.errors import BadData

MAX_LIST_BYTES = 2**20
PAIRS_HEADER, PEOPLE_HEADER = ["name", "imagenum1"], ["name", "images"]
Rows = list[list[str]]


@dataclass(frozen=True)
class OfficialList:
    """One of LFW's lists.

    Attributes:
        name: Such as "pairs.txt".
        content: UTF-8.
        as_published: Whether the content is the published one.
    """

    name: str
    content: bytes
    as_published: bool


def find_lists(people: Path, root: Path) -> list[OfficialList]:
    """Return the lists beside and above the folder of the people, up to `root`.

    Raises:
        BadData: A CSV file has Kaggle's header, but not its rows.
    """
    content: dict[str, bytes] = {}
    folders = [people, *people.parents]
    for folder in folders[: folders.index(root) + 1]:
        for name, text in (*_text_lists(folder), *_csv_lists(folder)):
            content.setdefault(name, text)
    return [
        OfficialList(known.file, found, hashlib.sha256(found).hexdigest() == known.sha256)
        for known in LISTS
        if (found := content.get(known.file)) is not None
    ]


def _text_lists(folder: Path) -> Iterator[tuple[str, bytes]]:
    for known in LISTS:
        path = folder / known.file
        if path.is_file() and path.stat().st_size <= MAX_LIST_BYTES:
            yield known.file, path.read_bytes()


def _csv_lists(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the lists that are there as CSV files of Kaggle's."""
    for part in ("Train", "Test"):
        genuine = _rows(folder / f"matchpairsDev{part}.csv", PAIRS_HEADER)
        impostor = _rows(folder / f"mismatchpairsDev{part}.csv", PAIRS_HEADER)
        if genuine and impostor:
            yield _pair_list(folder / f"pairsDev{part}.csv", genuine + impostor, is_view2=False)
        if people := _rows(folder / f"peopleDev{part}.csv", PEOPLE_HEADER):
            yield f"peopleDev{part}.txt", _text([[str(len(people))], *people])
    if pairs := _rows(folder / "pairs.csv", PAIRS_HEADER):
        yield _pair_list(folder / "pairs.csv", pairs, is_view2=True)
    if people := _rows(folder / "people.csv", PEOPLE_HEADER):
        runs = groupby(people, key=lambda row: len(row) == len(PEOPLE_HEADER))
        sets = [list(run) for is_person, run in runs if is_person]
        if len(sets) > 1:
            lines = [line for rows in sets for line in ([str(len(rows))], *rows)]
            yield "people.txt", _text([[str(len(sets))], *lines])


def _rows(path: Path, header: list[str]) -> Rows:
    """Return a CSV file's rows without empty cells; [] if it is missing or of another kind."""
    if not path.is_file() or path.stat().st_size > MAX_LIST_BYTES:
        return []
    try:
        first, *rows = csv.reader(path.read_text("utf-8-sig").splitlines())
    except (UnicodeDecodeError, ValueError, csv.Error):
        return []
    if first[: len(header)] != header:
        return []
    return [[cell for cell in row if cell] for row in rows]


def _pair_list(path: Path, rows: Rows, is_view2: bool) -> tuple[str, bytes]:
    """Return the name and content of a list of pairs; `path` is for messages."""
    rows = [row for row in rows if row]
    for row in rows:
        if len(row) not in (3, 4):
            raise BadData(f"{path}: {row} is no pair; download the data set again")
    runs = [list(run) for _, run in groupby(rows, key=len)]
    kinds = [len(run[0]) for run in runs]
    if len({len(run) for run in runs}) != 1 or kinds != [3, 4] * (len(runs) // 2):
        lengths = ", ".join(f"{len(run):,}" for run in runs[:6])
        raise BadData(
            f"{path}: has {lengths} genuine and impostor pairs in turn, not as many of both; "
            "download the data set again"
        )
    head = [str(len(runs) // 2), str(len(runs[0]))]
    return f"{path.stem}.txt", _text([head if is_view2 else head[1:], *rows])


def _text(rows: Rows) -> bytes:
    return "".join("\t".join(row) + "\n" for row in rows).encode()
