"""The pairs of CFP-FP, AgeDB-30, CALFW and CPLFW, read from their lists as they were published.

    cfp-fp    Pair_list_F.txt and Pair_list_P.txt number the photos (`7 ../Data/Images/…`), and
              Split/FP/01 to 10 hold same.txt and diff.txt: `frontal,profile` in each line.
              Photos: 001/frontal/01.jpg.
    agedb-30  04_FINAL_protocol_30_years.mat: ten splits with two rows of names, and labels.
              Photos: 0_MariaCallas_35_f.jpg.
    calfw     pairs_CALFW.txt: two lines a pair, `Name_0001.jpg 3`; 0 for different people, who
              come last. Each tenth of either kind is a fold. Photos: Name_0001.jpg.
    cplfw     pairs_CPLFW.txt: the same.

References:
    Sengupta et al.: Frontal to Profile Face Verification in the Wild. WACV, 2016.
    Moschoglou et al.: AgeDB: the first manually collected, in-the-wild age database. CVPRW, 2017.
    Zheng, Deng, Hu: Cross-Age LFW. arXiv:1708.08197, 2017.
    Zheng, Deng: Cross-Pose LFW. BUPT technical report 18-01, 2018.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.errors import BadData
from facepairs.support import console
from facepairs.support.words import counted

FOLDS = 10
MALFORMED = (ValueError, KeyError, IndexError, TypeError, NotImplementedError)


class PublishedPair(NamedTuple):
    """A pair of a list: paths of the photos, and the fold from 1."""

    left: str
    right: str
    genuine: bool
    fold: int


def read_published(path: Path, data: Path) -> tuple[FaceIndex, PairList, int]:
    """Read a list and the photos that it names.

    Args:
        path: The list: one of the files above, or Split/FP of CFP.
        data: The folder of the photos.

    Returns:
        The photos by person, the pairs, and the number of pairs left out for missing photos.

    Raises:
        BadData: The list cannot be read, or no pair is left.
    """
    read, person_of = READERS[path.name]
    try:
        listed = list(read(path))
    except OSError as error:
        raise BadData(
            f"{error.filename or path}: {error.strerror}; give its folder", "lists"
        ) from None
    except MALFORMED as error:
        raise BadData(f"{path}: not as it was published ({error}); download it again") from None
    places = sorted({place for pair in listed for place in pair[:2]})
    missing = {place for place in places if not (data / place).is_file()}
    pairs = [pair for pair in listed if not missing & {*pair[:2]}]
    if missing:
        named = f"{path}: no photo {min(missing)} ({len(missing):,} in all) in {data}"
        if not pairs:
            raise BadData(f"{named}; give the folder of these photos")
        console.log(f"left out: {counted(len(listed) - len(pairs), 'pair')}: {named}")
    names = {place: f"{person_of(place)}/{place.replace('/', '_')}" for place in places}
    kept = {name: place for place, name in names.items() if place not in missing}
    index = FaceIndex.from_places(kept, data)
    number = {place: image for image, place in enumerate(index.places or ())}
    left, right = (
        [number[place] for place in side]
        for side in zip(*(pair[:2] for pair in pairs), strict=True)
    )
    genuine, fold = zip(*(pair[2:] for pair in pairs), strict=True)
    return index, PairList.of(left, right, genuine, fold), len(listed) - len(pairs)


def _read_cfp(split: Path) -> Iterator[PublishedPair]:
    frontal, profile = (
        dict(line.split() for line in _lines(split.parents[1] / f"Pair_list_{kind}.txt"))
        for kind in "FP"
    )
    for fold in range(1, FOLDS + 1):
        for file, genuine in (("same.txt", True), ("diff.txt", False)):
            for line in _lines(split / f"{fold:02d}" / file):
                left, right = (number.strip() for number in line.split(","))
                sides = frontal[left], profile[right]
                face, side = (one.rpartition("Images/")[2] for one in sides)
                yield PublishedPair(face, side, genuine, fold)


def _read_two_lines(path: Path) -> Iterator[PublishedPair]:
    lines = [line.split() for line in _lines(path)]
    rows = [
        (left, right, mark)
        for (left, mark), (right, _) in zip(lines[::2], lines[1::2], strict=True)
    ]
    for genuine in (True, False):
        kind = [row[:2] for row in rows if (int(row[2]) != 0) == genuine]
        for place, sides in enumerate(kind):
            yield PublishedPair(*sides, genuine, FOLDS * place // len(kind) + 1)


def _read_agedb(path: Path) -> Iterator[PublishedPair]:
    import scipy.io

    try:
        splits: Any = scipy.io.loadmat(path)["splits"]
    except scipy.io.matlab.MatReadError as error:
        raise ValueError(str(error)) from None
    for fold, split in enumerate(splits.ravel(), 1):
        (first, second), labels = split[0, 0][0], split[0, 0][1].ravel()
        for left, right, label in zip(first, second, labels, strict=True):
            one, other = (f"{side[0, 0][0][0]}.jpg" for side in (left, right))
            yield PublishedPair(one, other, int(label) == 1, fold)


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


READERS: dict[str, tuple[Callable[[Path], Iterator[PublishedPair]], Callable[[str], str]]] = {
    "FP": (_read_cfp, lambda place: place.split("/")[0]),
    "04_FINAL_protocol_30_years.mat": (_read_agedb, lambda place: place.split("_")[1]),
    "pairs_CALFW.txt": (_read_two_lines, lambda place: place.rpartition("_")[0]),
    "pairs_CPLFW.txt": (_read_two_lines, lambda place: place.rpartition("_")[0]),
}
