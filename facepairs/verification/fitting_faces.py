"""Of several faces in a photo, choose the one that the photo's folder is about.

A folder says whose photos it holds. The included network tells which face of a photo fits the
others, whatever network is measured or trained: so all of them see the same faces.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations

import numpy as np
import numpy.typing as npt

from facepairs.data.index import FaceIndex
from facepairs.photos.inspection import photo_records
from facepairs.support import console
from facepairs.support.parallel import thread_map
from facepairs.support.words import counted
from facepairs.verification.photos import FaceInPhoto, PhotoReader
from facepairs.verification.verifier import Verifier

MOST_OTHERS = 10  # photos of a person that the faces of one photo are compared with

Embeddings = npt.NDArray[np.float32]
Ints = npt.NDArray[np.integer]


@dataclass(frozen=True)
class FittingFaces:
    """What was chosen in photos with several faces.

    Attributes:
        chosen: The number of the face of each photo where it is not the most prominent one, by the
            photo's number.
        unclear: Numbers of photos of which no face fits clearly; the most prominent one is used.
    """

    chosen: dict[int, int] = field(default_factory=dict)
    unclear: list[int] = field(default_factory=list)

    def describe(self) -> str:
        """Return in words how many photos are concerned."""
        photos = counted(len(self.chosen), "photo")
        return f"in {photos} another face than the most prominent one fits the folder, and is used"

    def source(self, index: FaceIndex, image: int) -> os.PathLike[str]:
        """Return what a `PhotoReader` reads to see the face of a photo that is used."""
        path, face = index.path(image), self.chosen.get(image)
        return path if face is None else FaceInPhoto(path, face)


def choose_faces(photos: Sequence[Embeddings], least: float) -> list[int | None]:
    """Choose the face of each photo that shows the person of whom all photos are.

    Photos with one face tell who it is; without any, the two most alike faces of different photos.

    Args:
        photos: Two or more, float32[F, D] each: rows of length 1, the most prominent face first.
        least: The score that a face must reach, in the mean, with the faces that tell who it is.

    Returns:
        The number of the best face, from 1; None where none reaches `least`.
    """
    alone = [faces for faces in photos if len(faces) == 1][:MOST_OTHERS]
    known = np.concatenate(alone) if alone else _most_alike(photos[:MOST_OTHERS], least)
    fits = [faces @ known.mean(axis=0) for faces in photos]
    return [int(fit.argmax()) + 1 if fit.max() >= least else None for fit in fits]


def _most_alike(photos: Sequence[Embeddings], least: float) -> Embeddings:
    """Return the two most alike faces of different photos: float32[2, D], NaN without any."""
    # Rounded, because every face of two copies is as alike as the most prominent one.
    scores = [((a @ b.T).round(2), a, b) for a, b in combinations(photos, 2)]
    score, a, b = max(scores, key=lambda pair: float(pair[0].max()))
    left, right = np.unravel_index(score.argmax(), score.shape)
    return np.stack([a[left], b[right]]) if score.max() >= least else np.full_like(a[:1], np.nan)


def fitting_faces(index: FaceIndex, faces: Ints, keep: bool = True) -> FittingFaces:
    """Choose the face in every photo of an index that shows several.

    Args:
        index: The photos.
        faces: int[N], how many faces each shows; 0 for those that are left out.
        keep: Whether what is found is stored in the cache of photos.
    """
    people = np.unique(index.person_of[faces > 1])
    if not len(people):
        return FittingFaces()
    verifier = Verifier.load(threads=1)
    least = verifier.model.profile.threshold
    assert least is not None
    progress, chosen = console.progress("choosing among several faces"), FittingFaces()
    choose: Callable[[int], dict[int, int | None]] = partial(
        _choose, verifier.reader(keep), index, faces, least
    )
    for done, found in enumerate(thread_map(choose, people.tolist()), 1):
        chosen.chosen.update({image: face for image, face in found.items() if face and face > 1})
        chosen.unclear.extend(image for image, face in found.items() if face is None)
        progress(done, len(people))
    return chosen


def _choose(
    reader: PhotoReader, index: FaceIndex, faces: Ints, least: float, person: int
) -> dict[int, int | None]:
    """Return the face of each photo of a person with several; nothing without other photos."""
    images = np.asarray(index.images_of(person))
    several, alone = images[faces[images] > 1], images[faces[images] == 1]
    found: dict[int, Embeddings] = {}
    for image in [*several.tolist(), *alone[:MOST_OTHERS].tolist()]:
        path = index.path(image)
        seen = reader.complete(reader.see(str(path), path, every=True))
        if rows := [one.embedding for one in seen if one.embedding is not None]:
            found[image] = np.stack(rows)
    chosen = choose_faces(list(found.values()), least) if len(found) > 1 else []
    pairs = zip(found, chosen, strict=False)
    return {image: face for image, face in pairs if len(found[image]) > 1}


def count_faces(index: FaceIndex, images: Ints) -> npt.NDArray[np.int64]:
    """Return how many faces some photos of an index show, 0 for the others: int64[N]."""
    faces = np.zeros(len(index), np.int64)
    records = photo_records(index, "landmarks", images.tolist())
    faces[images] = [len(record.found) for record in records]
    return faces
