"""A collection of noise with faces, grouped into a folder of people; and what the folder holds."""

import csv
import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image

from facepairs.grouping.collection import NO_FACE, Collection, CollectionFace
from facepairs.grouping.expected import ExpectedErrors
from facepairs.grouping.folder import PeopleFolder, read_people_folder
from facepairs.grouping.group import write_people_folder
from facepairs.grouping.groups import group_faces
from tiny.heaps import grouping_errors

ERRORS = grouping_errors()
CENTRES = np.random.default_rng(1).normal(size=(10, 64))
# Whom the faces of each photo show; the faces of person 9 are unclear, photo h has none.
PHOTOS = {
    "a/1": [0], "a/2": [0], "a/3": [0], "b1": [1], "b2": [1], "c1": [2],
    "d1": [3, 1], "d2": [3, 0, 9], "h": [],
}  # fmt: skip
LATER = {"e1": [0], "e2": [4], "e3": [4, 2]}


def collection_of(root: Path, photos: dict[str, list[int]]) -> Collection:
    """Photos of noise, and faces that were found in them."""
    faces, rows = [], []
    contents = {}
    for name, people in photos.items():
        path = root / f"{name}.png"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            noise = np.random.default_rng(list(name.encode())).integers(0, 255, (24, 60, 3))
            Image.fromarray(noise.astype(np.uint8)).save(path)
        contents[f"{name}.png"] = sha256 = digest(path)
        for number, person in enumerate(people):
            doubt = "small" if person == 9 else ""
            box = (20 * number, 4, 16)
            faces.append(CollectionFace(f"{name}.png", sha256, box, number + 1, doubt))
            random = np.random.default_rng(len(name) * 100 + ord(name[-1]) + 7 * number)
            rows.append(CENTRES[person] + 0.05 * random.normal(size=64))
    rows = np.array(rows, np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    problems = {f"{name}.png": NO_FACE for name, people in photos.items() if not people}
    return Collection(root, contents, tuple(faces), rows, problems)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sort(collection: Collection, out: Path, precision: float = 0.9) -> ExpectedErrors:
    """Group and write, as `group` does once faces are found."""
    before = PeopleFolder()
    if (out / "faces.csv").exists():
        collection, before = read_people_folder(out, collection, None)
    groups = group_faces(
        collection, ERRORS, precision, before.settled, before.names, earlier_rate=before.rate
    )
    write_people_folder(groups, out, before)
    return groups.expected


def contents(out: Path) -> dict[str, str]:
    """The content of each file, without the list and the page."""
    return {
        path.relative_to(out).as_posix(): digest(path)
        for path in out.rglob("*")
        if path.is_file() and path.parent != out
    }


def rows_of(out: Path) -> list[dict[str, str]]:
    with open(out / "faces.csv", newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def people_of(out: Path) -> dict[str, Counter]:
    """The contents in each person's folder."""
    found: dict[str, Counter] = {}
    for path, sha256 in contents(out).items():
        if not path.startswith("_apart/"):
            found.setdefault(path.split("/")[0], Counter())[sha256] += 1
    return found
