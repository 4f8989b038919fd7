"""Read a collection of photos: every face of every photo below a folder, and its embedding."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from facepairs.bundles.scorer import BATCH_CROPS, ScoreArray
from facepairs.data.index import RAW_FILES, READABLE, files_by_suffix
from facepairs.errors import BadBundle, BadData, NoFace
from facepairs.grouping.clarity import doubts
from facepairs.grouping.linkage import unit_rows
from facepairs.photos.face_sample import FaceSample
from facepairs.support import console
from facepairs.support.parallel import batches, thread_map
from facepairs.verification.verifier import Verifier

NO_FACE = "no face"
VIDEOS = (".mp4", ".mov", ".m4v", ".avi", ".mkv", ".mts", ".m2ts", ".3gp", ".mpg", ".wmv", ".webm")
Box = tuple[int, int, int]
"""The square around a face: left, top and side in pixels of the upright photo."""


class CollectionFace(NamedTuple):
    """One face of a collection.

    Attributes:
        photo: Path of the photo below the collection, with slashes.
        sha256: Of the photo's file, in hexadecimal digits.
        box: The square around the face.
        number: Which of the photo's faces it is, from 1 for the most prominent.
        doubt: Why it is too unclear to be grouped; "" for a clear face.
    """

    photo: str
    sha256: str
    box: Box
    number: int
    doubt: str = ""


@dataclass(frozen=True, eq=False)
class Collection:
    """All faces of a collection of photos.

    Attributes:
        root: The folder.
        photos: Each photo's path and SHA-256, sorted by path; without copies.
        faces: The faces, in the order of the photos, the most prominent of a photo first.
        embeddings: float32[faces, D], rows of length 1.
        problems: Why a photo has no faces, by its path: NO_FACE, or what is wrong in words.
        copies: Photos of the same content as an earlier one, and the path of that one.
        passed_over: Number of files of other kinds: `video`, `raw file`.
    """

    root: Path
    photos: dict[str, str]
    faces: tuple[CollectionFace, ...]
    embeddings: ScoreArray
    problems: dict[str, str] = field(default_factory=dict)
    copies: dict[str, str] = field(default_factory=dict)
    passed_over: dict[str, int] = field(default_factory=dict)

    @cached_property
    def faces_of(self) -> dict[str, list[int]]:
        """The faces of each photo, by its SHA-256."""
        found: dict[str, list[int]] = {sha256: [] for sha256 in self.photos.values()}
        for number, face in enumerate(self.faces):
            found[face.sha256].append(number)
        return found

    def with_photos(self, other: "Collection") -> "Collection":
        """Return both together; paths of the other one are made absolute."""
        place = {photo: (other.root / photo).absolute().as_posix() for photo in other.photos}
        unusable = {photo: why for photo, why in other.problems.items() if why != NO_FACE}
        return replace(
            self,
            problems=self.problems | {place[photo]: why for photo, why in unusable.items()},
            photos=self.photos | {place[photo]: sha for photo, sha in other.photos.items()},
            faces=(*self.faces, *(face._replace(photo=place[face.photo]) for face in other.faces)),
            embeddings=np.concatenate([self.embeddings, other.embeddings]),
        )


def find_photos(root: Path) -> tuple[list[str], dict[str, int]]:
    """Return the sorted paths of all photos below a folder, and the number of videos and raw files.

    Raises:
        BadData: The folder is missing, cannot be read, or holds no photo.
    """
    photos: list[str] = []
    others: Counter[str] = Counter()
    for name, suffix in files_by_suffix(root):
        if suffix in READABLE:
            photos.append(name)
        elif suffix in VIDEOS or suffix in RAW_FILES:
            others["video" if suffix in VIDEOS else "raw file"] += 1
    if not photos:
        raise BadData(f"{root}: no photos in it or below; give a folder of photos")
    return sorted(photos, key=os.path.splitext), dict(others)  # "a.jpg" before "a copy.jpg"


def read_collection(root: Path, verifier: Verifier) -> Collection:
    """Find and embed all faces of all photos below a folder.

    Args:
        root: The folder.
        verifier: The model that embeds: it aligns faces and compares embeddings by their cosine.

    Raises:
        BadData: The folder is missing or holds no photo.
        BadBundle: The model is another.
    """
    model = verifier.model
    model.check_embeds("grouping compares them")
    if not model.aligned:
        raise BadBundle(
            f"{model.place}: grouping needs a model that finds faces, such as the included one"
        )
    photos, others = find_photos(root)
    return replace(read_photos(root, photos, verifier), passed_over=others)


def read_photos(root: Path, names: Sequence[str], verifier: Verifier) -> Collection:
    """Find and embed all faces of some photos below a folder, as `read_collection` does."""
    reader = verifier.reader()

    def read(names: list[str]) -> list[tuple[FaceSample, str]]:
        faces = reader.read([(name, root / name) for name in names], every=True)
        return list(zip(faces, doubts(reader, root, faces), strict=True))

    photos, copies = dict[str, str](), dict[str, str]()
    first: dict[str, str] = {}
    faces: list[CollectionFace] = []
    rows: list[ScoreArray] = []
    problems: dict[str, str] = {}
    progress = console.progress("finding faces and embedding")
    for done, seen in enumerate(thread_map(read, batches(names, BATCH_CROPS)), 1):
        for one, doubt in seen:
            sha256 = one.digest.hex()
            if sha256 and first.setdefault(sha256, one.name) != one.name:
                copies[one.name] = first[sha256]
                continue
            photos[one.name] = sha256
            if one.error or one.box is None or one.embedding is None:
                problems[one.name] = _problem(one)
                continue
            left, top, side = one.box
            faces.append(CollectionFace(one.name, sha256, (left, top, side), one.number, doubt))
            rows.append(one.embedding)
        progress(min(done * BATCH_CROPS, len(names)), len(names))
    embeddings = np.array(rows, np.float32).reshape(len(rows), verifier.scorer.width)
    return Collection(root, photos, tuple(faces), unit_rows(embeddings), problems, copies)


def _problem(seen: FaceSample) -> str:
    """Return the error of a photo, without its name."""
    return (
        NO_FACE
        if isinstance(seen.error, NoFace)
        else str(seen.error).removeprefix(f"{seen.name}: ")
    )
