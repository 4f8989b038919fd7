"""The list of faces in a folder of people, `faces.csv`: what the last run of `group` left there."""

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from facepairs.data.pairs import csv_rows
from facepairs.errors import BadData
from facepairs.grouping.collection import Box

FACES = "faces.csv"
NOBODY = "nobody"  # put apart, or deleted from the folder, by hand
NO_LONGER = "name no longer used"
SAME_PLACE = 0.75  # overlap of boxes of one face that two versions of the detector found
BOX = re.compile(r"(-?\d+ -?\d+ \d+)?")


class FaceRow(NamedTuple):
    """A row of the list; one without a box is a photo without a usable face, or a name.

    Attributes:
        photo: Path of the photo below the collection; the whole path of one outside.
        sha256: Of the photo's file.
        box: Left, top and side of the face in pixels of the upright photo.
        person: Whose face it is; "" for nobody's.
        certainty: The silhouette, from -1 to 1.
        note: NOBODY, NO_LONGER, why the face is uncertain, or what is wrong with the photo.
        file: Its place in the folder; "" where it has none.
        file_sha256: Of that file.
    """

    photo: str = ""
    sha256: str = ""
    box: str = ""
    person: str = ""
    certainty: str = ""
    note: str = ""
    file: str = ""
    file_sha256: str = ""

    @property
    def is_cut(self) -> bool:
        """Whether the file is a picture that was cut out of the photo."""
        return bool(self.file) and self.file_sha256 != self.sha256

    def overlap(self, box: Box) -> float:
        """Return how far the square around a face that was found now is this one, up to 1."""
        if not self.box:
            return 0.0
        left, top, side = map(int, self.box.split())
        across, down = (
            min(a + side, b + box[2]) - max(a, b) for a, b in ((left, box[0]), (top, box[1]))
        )
        return min(across, down) / max(side, box[2], 1)


def read_list(folder: Path) -> list[FaceRow]:
    """Return the rows of the list in a folder.

    Raises:
        BadData: The list is missing, or is something else.
    """
    rows = []
    for line, cells in csv_rows(folder / FACES, FaceRow._fields):
        rows.append(FaceRow(*(cells[name] for name in FaceRow._fields)))
        if not BOX.fullmatch(rows[-1].box):
            raise BadData(
                f"{folder / FACES}: line {line}: box {rows[-1].box!r} is not left, top and side; "
                "choose another output"
            )
    return rows


def write_list(path: Path, rows: Iterable[FaceRow]) -> None:
    """Write a list; bytes of names that are not UTF-8 are escaped."""
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="") as handle:
        csv.writer(handle).writerows([FaceRow._fields, *rows])
