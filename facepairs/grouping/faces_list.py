"""`faces.csv` in a folder of people: each face, its place in its photo, its person and file."""

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from facepairs.data.index import APART
from facepairs.data.pairs import csv_rows
from facepairs.errors import BadData
from facepairs.grouping.collection import NO_FACE, Box, Collection

FACES = "faces.csv"
NOBODY = "nobody"  # put apart, or deleted from the folder, by hand
NO_LONGER = "name no longer used"
RATE = "share of strangers' pairs joined"  # by the run that joined the most
SAME_PLACE = 0.75  # overlap of boxes of one face that two versions of the detector found
PATTERNS = {
    "box": re.compile(r"(-?\d+ -?\d+ \d+)?"),
    "certainty": re.compile(r"(-?\d+(\.\d+)?(e-\d+)?)?"),
}


class FaceRow(NamedTuple):
    """A row of `faces.csv`; one without a box is a photo without a usable face, a name or RATE.

    Attributes:
        photo: Path of the photo below the collection; the whole path of one outside.
        sha256: Of the photo's file.
        box: Left, top and side of the face in pixels of the upright photo.
        person: Whose face it is; "" for no person.
        certainty: The silhouette, from -1 to 1; the share where the note is RATE.
        note: NOBODY, NO_LONGER, RATE, why the face is uncertain, or what is wrong with the photo.
        file: Its place in the folder; "" where it has none.
        file_sha256: Of that file, or of the one that it had.
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
        return self.file_sha256 not in ("", self.sha256)

    def overlap(self, box: Box) -> float:
        """Return how far the square around a face that was found now is this one, up to 1."""
        if not self.box:
            return 0.0
        left, top, side = map(int, self.box.split())
        across, down = (
            min(a + side, b + box[2]) - max(a, b) for a, b in ((left, box[0]), (top, box[1]))
        )
        return min(across, down) / max(side, box[2], 1)

    def at(self, path: str) -> "FaceRow":
        """Return the row with its file in another place; without one it is of no person."""
        note = "" if self.note == NOBODY else self.note
        if not path and note != NO_FACE:
            note = NOBODY
        return self._replace(person=person_at(path), certainty="", note=note, file=path)


def read_list(folder: Path) -> list[FaceRow]:
    """Return the rows of `faces.csv` in a folder.

    Raises:
        BadData: The list is missing, or is something else.
    """
    rows = []
    for line, cells in csv_rows(folder / FACES, FaceRow._fields):
        rows.append(FaceRow(*(cells[name] for name in FaceRow._fields)))
        for name, pattern in PATTERNS.items():
            if not pattern.fullmatch(cells[name]):
                raise BadData(
                    f"{folder / FACES}: line {line}: {name} is {cells[name]!r}, not a value that "
                    "facepairs group writes; restore the list, or choose another output"
                )
    return rows


def write_list(path: Path, rows: Iterable[FaceRow]) -> None:
    """Write `faces.csv`; bytes of names that are not UTF-8 are escaped."""
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="") as handle:
        csv.writer(handle).writerows([FaceRow._fields, *rows])


def rows_of_faces(rows: list[FaceRow], collection: Collection) -> dict[int, FaceRow]:
    """Return the row of each face: of the same photo, and at the same place in it."""
    found: dict[int, FaceRow] = {}
    for row in rows:
        faces = collection.faces_of.get(row.sha256, [])
        overlap = {face: row.overlap(collection.faces[face].box) for face in faces}
        nearest = max(faces, key=overlap.__getitem__, default=None)
        if nearest is not None and overlap[nearest] >= SAME_PLACE:
            found.setdefault(nearest, row)
    return found


def person_at(path: str) -> str:
    """Return the person in whose folder a file is; "" for a file apart from all people."""
    first, *rest = path.split("/")
    return first if rest and first != APART else ""
