"""Read a heap of photos: every face of every photo below a folder, and its embedding."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from facepairs.data.index import name_problem, walk
from facepairs.errors import BadBundle, BadData, BadImage, NoFace
from facepairs.faces.align import align_every
from facepairs.images.photo import open_photo
from facepairs.support.parallel import batches, thread_map
from facepairs.support.places import refuse_url
from facepairs.support.progress import ProgressCallback, ignore_progress
from facepairs.verification.loading import model_name
from facepairs.verification.scorer import BATCH_CROPS, ScoreArray
from facepairs.verification.verifier import Verifier

NO_FACE = "no_face"


class HeapFace(NamedTuple):
    """One face of a heap.

    Attributes:
        photo: Path of the photo below the heap, with slashes.
        box: The square around the face: left, top and side in pixels of the upright photo.
        number: Which of the photo's faces it is, from 1 for the most prominent.
    """

    photo: str
    box: tuple[int, int, int]
    number: int


@dataclass(frozen=True, eq=False)
class Heap:
    """All faces of a heap.

    Attributes:
        root: The folder.
        photos: Paths of all photos below it, sorted.
        faces: The faces, in the order of the photos, the most prominent of a photo first.
        embeddings: float32[faces, D], rows of length 1.
        problems: Why a photo has no faces, by its path: NO_FACE, or what is wrong in words.
    """

    root: Path
    photos: tuple[str, ...]
    faces: tuple[HeapFace, ...]
    embeddings: ScoreArray
    problems: dict[str, str]


class _Read(NamedTuple):
    """What was found in one photo."""

    photo: str
    boxes: list[tuple[int, int, int]]
    embeddings: ScoreArray
    problem: str = ""


@dataclass(frozen=True)
class HeapReader:
    """Finds and embeds all faces of some photos; threads share it.

    Attributes:
        root: The folder that names count from.
        verifier: The model that embeds.
    """

    root: Path
    verifier: Verifier

    def __call__(self, photos: list[str]) -> list[_Read]:
        """Return what was found in each photo."""
        return [self._read(photo) for photo in photos]

    def _read(self, photo: str) -> _Read:
        nothing = np.zeros((0, self.verifier.scorer.width), np.float32)
        try:
            file = open_photo(self.root / photo)
            faces = align_every(file, self.verifier.bundle.framing)
        except NoFace:
            return _Read(photo, [], nothing, NO_FACE)
        except BadImage as error:
            return _Read(photo, [], nothing, str(error))
        rows = self.verifier.scorer.embed(np.stack([face.crop for face in faces]))
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        boxes = [(box[0], box[1], box[2]) for face in faces if (box := face.box)]
        return _Read(photo, boxes, rows / np.maximum(length, 1e-12))


def read_heap(root: Path, verifier: Verifier, progress: ProgressCallback = ignore_progress) -> Heap:
    """Find and embed all faces of all photos below a folder.

    Args:
        root: The folder.
        verifier: The model that embeds: it aligns faces and compares embeddings by their cosine.
        progress: Counts photos.

    Raises:
        BadData: The folder is missing or holds no photo.
        BadBundle: The model is another.
    """
    model = verifier.bundle
    if (
        model.kind != "embedding"
        or not model.aligned
        or getattr(model, "distance", "")
        not in (
            "",
            "cosine",
        )
    ):
        raise BadBundle(
            f"{model_name(model)}: grouping needs a model that finds faces and compares embeddings "
            "by their cosine, such as the included one"
        )
    photos = find_photos(root)
    faces: list[HeapFace] = []
    rows, problems, done = [np.zeros((0, verifier.scorer.width), np.float32)], {}, 0
    for batch in thread_map(HeapReader(root, verifier), batches(photos, BATCH_CROPS)):
        for photo, boxes, embeddings, problem in batch:
            faces += [HeapFace(photo, box, number) for number, box in enumerate(boxes, 1)]
            rows.append(embeddings)
            if problem:
                problems[photo] = problem
        done += len(batch)
        progress(done, len(photos))
    return Heap(root, tuple(photos), tuple(faces), np.concatenate(rows), problems)


def find_photos(root: Path) -> list[str]:
    """Return the paths of all photos below a folder, with slashes and sorted.

    Raises:
        BadData: The folder is missing, cannot be read, or holds no photo.
    """
    refuse_url(root)

    def refuse(error: OSError) -> None:
        if error.filename == os.fspath(root):
            raise BadData(f"{root}: {error.strerror}; give a folder of photos") from None

    found = (
        (place / name).relative_to(root).as_posix()
        for place, names in walk(root, refuse)
        for name in names
        if name_problem(name) is None
    )
    photos = sorted(found)
    if not photos:
        raise BadData(f"{root}: no photos in it or below; give a folder of photos")
    return photos
