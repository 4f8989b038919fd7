"""How many genuine pairs are missed where photos show a larger face of somebody else.

    python scripts/studies/right_face.py PHOTOS --out composed

PHOTOS holds a folder for each person (LFW). Of 60 people with five photos or more, five photos each
are taken; into some of them a photo of another person is pasted, larger and beside the right face.
All pairs are scored by the included model: with the most prominent face of each photo, and with the
face that fits its folder.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from facepairs.cli.shared.output import ERROR, print_error
from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.errors import FacepairsError
from facepairs.evaluation.pair_scores import score_pairs
from facepairs.photos.subject_faces import MOST_PROMINENT
from facepairs.support.words import align_columns
from facepairs.verification.verifier import Verifier, subject_faces

PEOPLE, PHOTOS = 60, 5
COMPOSED = (0, 1, 2, 4, 5)  # of a person's photos
SIDE_PX, LARGER_PX = 250, 350


def beside(photo: Path, other: Path) -> Image.Image:
    """Return a photo with a larger one of another person beside it."""
    picture = Image.new("RGB", (SIDE_PX + LARGER_PX, LARGER_PX), (128, 128, 128))
    for path, side, left in ((photo, SIDE_PX, 0), (other, LARGER_PX, SIDE_PX)):
        with Image.open(path) as opened:
            picture.paste(opened.convert("RGB").resize((side, side)), (left, LARGER_PX - side))
    return picture


def compose(index: FaceIndex, composed: int, out: Path) -> None:
    """Write the photos of all people, `composed` of each with a stranger; other strangers each."""
    people = np.flatnonzero(index.image_counts >= PHOTOS)[:PEOPLE].tolist()
    strangers = iter(np.flatnonzero(index.image_counts == 1).tolist())
    for person in people:
        folder = out / index.people[person]
        folder.mkdir(parents=True, exist_ok=True)
        for number, image in enumerate(index.images_of(person)[:PHOTOS]):
            path, other = index.path(image), index.path(int(index.first[next(strangers)]))
            shown = beside(path, other) if number < composed else Image.open(path)
            shown.save(folder / path.name, quality=95)


def figures(folder: Path) -> list[list[object]]:
    """Return a row for the most prominent faces, and one for those that fit."""
    index, verifier = FaceIndex.scan(folder), Verifier.load(threads=1)
    left, right = np.triu_indices(len(index), 1)
    pairs = PairList.of(left, right, index.person_of[left] == index.person_of[right])
    threshold, rows = verifier.operating_point().threshold or 0.0, []
    fitting = subject_faces(index, range(len(index)))
    for name, faces in (("most prominent", MOST_PROMINENT), ("fitting", fitting)):
        scored = score_pairs(verifier, index, pairs, faces).pairs
        genuine, accepted = scored.genuine, scored.score >= threshold
        missed, passed = (genuine & ~accepted).sum(), (~genuine & accepted).sum()
        counts = f"{missed:,} of {genuine.sum():,}", f"{passed:,} of {(~genuine).sum():,}"
        rows.append([name, *counts, len(faces.numbers), len(faces.unclear)])
    return rows


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", type=Path, help="Person_Name/photo.jpg")
    parser.add_argument("--out", type=Path, default=Path("runs/right-face"))
    options = parser.parse_args(arguments)
    table = [["composed of 5", "face", "missed", "accepted strangers", "other face", "unclear"]]
    try:
        index = FaceIndex.scan(options.photos)
        for composed in COMPOSED:
            folder = options.out / f"composed-{composed}"
            compose(index, composed, folder)
            table += [[str(composed), *map(str, row)] for row in figures(folder)]
    except FacepairsError as error:
        print_error(error.kind, str(error), False)
        return ERROR
    print("\n".join(align_columns(table)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
