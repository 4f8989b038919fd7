"""`PairList`: pairs of images as a struct of arrays, and its CSV form."""

import csv
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.data.index import FaceIndex
from facepairs.errors import BadData

TRUE_WORDS = {"1", "true", "yes", "same", "genuine"}
FALSE_WORDS = {"0", "false", "no", "different", "impostor"}
MAX_FOLD = 32767  # int16


@dataclass(frozen=True)
class PairList:
    """`left`, `right` int32[N] image numbers, `genuine` bool[N], `fold` int16[N] (0: no fold)."""

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
        """Build from anything array-like; one fold number serves all pairs."""
        lefts = np.asarray(left, np.int32)
        folds = np.broadcast_to(np.asarray(fold, np.int16), lefts.shape).copy()
        return cls(lefts, np.asarray(right, np.int32), np.asarray(genuine, np.bool_), folds)

    def where(self, keep: npt.NDArray[np.bool_] | slice) -> "PairList":
        """Give the pairs that a mask or a slice keeps."""
        return PairList(self.left[keep], self.right[keep], self.genuine[keep], self.fold[keep])

    def images(self) -> npt.NDArray[np.int32]:
        """Give the distinct image numbers, sorted."""
        return np.unique(np.concatenate([self.left, self.right]))


def genuine_word(text: str) -> bool:
    """Read a `genuine` cell: 1/0, true/false, yes/no, same/different, genuine/impostor."""
    word = text.strip().lower()
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise ValueError(f"genuine is {text!r}, not one of 1, 0, true, false, genuine, impostor")


def fold_number(text: str) -> int:
    """Read a `fold` cell, a number from 0 to 32767; an empty one is 0."""
    word = text.strip() or "0"
    if not (word.isascii() and word.isdigit()) or len(word) > 9 or int(word) > MAX_FOLD:
        raise ValueError(f"fold is {text!r}, not a number from 0 to {MAX_FOLD}")
    return int(word)


def csv_rows(path: Path, needed: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line number, row) of a CSV file with a header; raise BadData with file and line."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as handle:
            reader = csv.DictReader(handle, strict=True)
            header = reader.fieldnames or []
            missing = [name for name in needed if name not in header]
            if missing:
                raise BadData(
                    f"{path}: line 1: no column {', '.join(missing)}; the header must have "
                    f"{','.join(needed)}, and is {','.join(header)!r}"
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
            f"{path}: {error.strerror}; give a CSV file with {','.join(needed)}"
        ) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadData(f"{path}: not a UTF-8 CSV file ({error})") from None


def read_pairs_csv(path: Path, index: FaceIndex) -> PairList:
    """Read `left,right,genuine[,fold]` with image paths below the index's root.

    Raises BadData that quotes file, line number and cell.
    """
    left, right, fold = array("i"), array("i"), array("h")
    genuine = bytearray()
    for line, row in csv_rows(path, ("left", "right", "genuine")):
        try:
            sides = [_image(index, row[side]) for side in ("left", "right")]
            genuine.append(genuine_word(row["genuine"]))
            fold.append(fold_number(row.get("fold", "")))
        except ValueError as error:
            raise BadData(f"{path}: line {line}: {error}") from None
        left.append(sides[0])
        right.append(sides[1])
    if not left:
        raise BadData(f"{path}: no pairs below the header")
    return PairList.of(left, right, np.frombuffer(genuine, np.bool_), fold)


def _image(index: FaceIndex, name: str) -> int:
    image = index.find(name.replace("\\", "/").removeprefix("./"))
    if image is None:
        raise ValueError(f"no image {name!r} below {index.root}")
    return image
