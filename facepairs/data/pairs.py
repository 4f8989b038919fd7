"""Pairs of images as a struct of arrays, and the CSV files that list them."""

import csv
import unicodedata
from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.data.index import FaceIndex
from facepairs.errors import BadData, NotEnough

TRUE_WORDS = {"1", "1.0", "true", "yes", "same", "genuine"}
FALSE_WORDS = {"0", "0.0", "false", "no", "different", "impostor"}
MAX_FOLD = 32767  # int16


def normalize_name(name: str) -> str:
    """Return a name in the form in which names are compared: with slashes, composed Unicode."""
    return unicodedata.normalize("NFC", name.replace("\\", "/"))


def person_of(photo: str) -> str:
    """Return the person of a photo, the folder in its path; "" without one."""
    return photo.replace("\\", "/").rpartition("/")[0]


def person_name(photo: str) -> str:
    """Return the person of a photo: the name of its folder, without the folders above."""
    return person_of(photo).rpartition("/")[2]


@dataclass(frozen=True)
class PairList:
    """Pairs of images.

    Attributes:
        left: int32[N], image numbers.
        right: int32[N], image numbers.
        genuine: bool[N], whether both images show one person.
        fold: int16[N], fold numbers from 1; 0 for no fold.
    """

    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    genuine: npt.NDArray[np.bool_]
    fold: npt.NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.left)

    @classmethod
    def of(
        cls,
        left: npt.ArrayLike,
        right: npt.ArrayLike,
        genuine: npt.ArrayLike,
        fold: npt.ArrayLike = 0,
    ) -> "PairList":
        """Return the pairs of array-likes.

        Args:
            left: int[N], image numbers.
            right: int[N], image numbers.
            genuine: bool[N].
            fold: int[N], or one number for all pairs.
        """
        lefts = np.asarray(left, np.int32)
        folds = np.broadcast_to(np.asarray(fold, np.int16), lefts.shape).copy()
        return cls(lefts, np.asarray(right, np.int32), np.asarray(genuine, np.bool_), folds)

    @classmethod
    def join(cls, parts: Sequence["PairList"]) -> "PairList":
        """Return the pairs of several lists, at least one, in one."""
        names = ("left", "right", "genuine", "fold")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def show_none_of(self, images: Collection[int]) -> npt.NDArray[np.bool_]:
        """Return which pairs show none of some images, by number: bool[N]."""
        bad = list(images)
        return ~(np.isin(self.left, bad) | np.isin(self.right, bad))

    def where(self, keep: npt.NDArray[np.bool_ | np.int64] | slice) -> "PairList":
        """Return the pairs selected by a mask, bool[N], by numbers, int64[K], or by a slice."""
        return PairList(self.left[keep], self.right[keep], self.genuine[keep], self.fold[keep])

    def images(self) -> npt.NDArray[np.int32]:
        """Return the distinct image numbers, sorted."""
        return np.unique(np.concatenate([self.left, self.right]))


def parse_genuine(text: str) -> bool:
    """Parse a cell of the column `genuine`.

    Args:
        text: 1/0, true/false, yes/no, same/different or genuine/impostor, in any case.

    Raises:
        ValueError: The text is none of these.
    """
    word = text.strip().lower()
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise ValueError(
        f"genuine is {text!r}; write 1, true, yes, same or genuine, or 0, false, no, different or "
        "impostor"
    )


def parse_fold(text: str) -> int:
    """Parse a cell of the column `fold`.

    Args:
        text: A number from 0 to 32767; empty means 0.

    Raises:
        ValueError: The text is not such a number.
    """
    word = text.strip().removesuffix(".0") or "0"  # as pandas writes numbers beside empty cells
    if not (word.isascii() and word.isdigit()) or len(word) > 9 or int(word) > MAX_FOLD:
        raise ValueError(f"fold is {text!r}, not a number from 0 to {MAX_FOLD}")
    return int(word)


def separator_of(header: str) -> str:
    """Return the separator of a CSV file: the candidate most frequent in its header."""
    return max(",;\t|", key=header.count)


def csv_rows(path: Path, needed: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Read a CSV file with a header; its cells are separated by commas, semicolons, tabs or bars.

    Args:
        path: The file, in UTF-8; names of columns may have capitals, and blanks around them.
        needed: Columns that the header must have.

    Yields:
        The line number of each row, and its cells by column.

    Raises:
        BadData: The file is not such a CSV file; the message quotes file and line.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as handle:
            first = handle.readline()
            lines = chain([first], handle)
            reader = csv.DictReader(lines, delimiter=separator_of(first), strict=True)
            header = [name.strip().lower() for name in reader.fieldnames or []]
            reader.fieldnames = header
            twice = sorted({name for name in header if name and header.count(name) > 1})
            if twice:
                raise BadData(
                    f"{path}: line 1: two columns are named {twice[0]} (in any case); rename one"
                )
            missing = [name for name in needed if name not in header]
            if missing:
                raise BadData(
                    f"{path}: line 1: no column {', '.join(missing)}; the header must have "
                    f"{','.join(needed)}, but is {','.join(header)!r}"
                )
            for row in reader:
                if None in row or None in row.values():
                    raise BadData(
                        f"{path}: line {reader.line_num}: expected {len(header)} cells as in the "
                        f"header {','.join(header)!r}"
                    )
                yield reader.line_num, row
    except OSError as error:
        raise BadData(
            f"{path}: {error.strerror}; give a CSV file with {','.join(needed) or 'a header'}"
        ) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadData(f"{path}: not a UTF-8 CSV file ({error})") from None


def read_pairs_csv(path: Path, index: FaceIndex) -> PairList:
    """Read pairs of indexed images.

    Args:
        path: A CSV file with the columns left, right, genuine and perhaps fold; `left` and `right`
            are paths relative to the index's root.
        index: The index of the images.

    Raises:
        BadData: A row is wrong, pairs a photo with itself, or has the pair of an earlier row; the
            message quotes file, line number and cell.
        NotEnough: The file has no rows.
    """
    images, fold, genuine = array("i"), array("h"), bytearray()
    seen: dict[tuple[int, int], tuple[int, bool]] = {}
    for line, row in csv_rows(path, ("left", "right", "genuine")):
        try:
            left, right = (_find_image(index, row[side]) for side in ("left", "right"))
            genuine.append(parse_genuine(row["genuine"]))
            _check_new(seen, (left, right), line, bool(genuine[-1]))
            images.extend((left, right))
            fold.append(parse_fold(row.get("fold", "")))
        except ValueError as error:
            raise BadData(f"{path}: line {line}: {error}") from None
    if not images:
        raise NotEnough(f"{path}: no pairs below the header")
    sides = np.reshape(images, (-1, 2))
    return PairList.of(sides[:, 0], sides[:, 1], np.frombuffer(genuine, np.bool_), fold)


def _check_new(
    seen: dict[tuple[int, int], tuple[int, bool]], pair: tuple[int, int], line: int, genuine: bool
) -> None:
    """Note a pair's line and label; raise ValueError for a photo and itself, or a known pair."""
    if pair[0] == pair[1]:
        raise ValueError("a photo is paired with itself; remove the line")
    earlier, label = seen.setdefault((min(pair), max(pair)), (line, genuine))
    if earlier != line:
        what = "is the same pair" if label == genuine else "has this pair with the other label"
        raise ValueError(f"line {earlier} {what}; remove one of them")


def _find_image(index: FaceIndex, name: str) -> int:
    """Return an image's number; raise ValueError for an unknown image."""
    place = name.replace("\\", "/").removeprefix("./")
    image = index.find(place)
    if image is None:
        image = index.find(place.strip())  # as in `a.jpg, b.jpg`
    if image is None:
        raise ValueError(f"no image {name!r} in {index.root}")
    return image
