"""Read a collection of photos: every face below a folder, and its embedding if it is clear enough.

Errors of grouping are measured on the main faces of press photos. Small, blurred, turned and
cut-off faces in the background resemble each other, even those of different people. The share of
pairs of strangers that are nearer than .062 with the included model: main faces of LFW .0001; main
faces that are blurred to a sharpness below .52, .003, and to .53, .0007; shrunk to 30 to 40 pixels
and not blurred, .0002; background faces .003, and those of them that are clear by these limits
.0007, some of which show one person; an unclear face and a clear main face, .0001. The limits were
chosen on photos of View 1's training people, see `scripts/studies/bystanders.py`.
"""

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
from facepairs.grouping.linkage import unit_rows
from facepairs.photos.face_sample import FaceSample
from facepairs.photos.frame import Face
from facepairs.photos.photo_record import PhotoRecord
from facepairs.photos.reader import PhotoReader
from facepairs.support import console
from facepairs.support.parallel import batches, thread_map
from facepairs.verification.verifier import Verifier

CLEAR_PX = 48  # from the brows to the chin
CLEAR_YAW = 0.4  # the nose's offset from the middle of the eyes, in eye distances
CLEAR_SCORE = 0.88  # of the detector
CLEAR_SHARPNESS = 0.54
OUTSIDE = 0.25  # of the face's side
NO_FACE = "no face"
VIDEOS = (".mp4", ".mov", ".m4v", ".avi", ".mkv", ".mts", ".m2ts", ".3gp", ".mpg", ".wmv", ".webm")
Box = tuple[int, int, int]
"""The square around a face: left, top and side in pixels of the upright photo."""


def doubts(reader: PhotoReader, root: Path, faces: list[FaceSample]) -> list[str]:
    """Return why faces are too unclear to be grouped, "" for clear ones and photos without one.

    Args:
        reader: Measures the sharpness of faces that may be blurred.
        root: The folder that the photos' names count from.
        faces: Faces of photos.
    """
    found = [_doubt(face.face, face.record) if face.face and face.record else "" for face in faces]
    places = [
        place
        for place, one in enumerate(faces)
        if one.face and not found[place] and _may_be_blurred(one)
    ]
    measured = reader.sharpness([(faces[place], root / faces[place].name) for place in places])
    for place, sharpness in zip(places, measured, strict=True):
        found[place] = "blurred" if sharpness < CLEAR_SHARPNESS else ""
    return found


def _doubt(face: Face, record: PhotoRecord) -> str:
    """Return the reasons against a face by its landmarks and score."""
    left, top, side = face.box
    beyond = max(-left, -top, left + side - record.width_px, top + side - record.height_px)
    if side < CLEAR_PX:
        return "small"
    if abs(face.yaw) > CLEAR_YAW:
        return "turned"
    if beyond > OUTSIDE * side:
        return "cut off"
    return "hard to make out" if face.score < CLEAR_SCORE else ""


def _may_be_blurred(face: FaceSample) -> bool:
    """Return whether a face's sharpness must be looked at: hints exist of the first one alone."""
    kinds = {hint.kind for hint in face.hints}
    return face.number > 1 or bool(kinds & {"small", "blurred"})


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
            if one.embedding is None:
                problems[one.name] = _problem(one)
                continue
            assert one.box
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
