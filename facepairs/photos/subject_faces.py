"""Of several faces in a photo, choose that of the person whose folder it is in.

The included network tells which face of a photo fits the others, whatever network is measured or
trained: so all of them see the same faces.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations

import numpy as np
import numpy.typing as npt

from facepairs.data.index import FaceIndex
from facepairs.photos.face_sample import FaceRef
from facepairs.photos.photo_record import PhotoRecord
from facepairs.photos.photo_table import photo_records
from facepairs.photos.reader import PhotoReader
from facepairs.support import console
from facepairs.support.parallel import thread_map
from facepairs.support.words import counted

MOST_OTHERS = 10  # photos of a person that the faces of one photo are compared with

Embeddings = npt.NDArray[np.float32]
Ints = npt.NDArray[np.integer]


@dataclass(frozen=True)
class SubjectFaces:
    """Which face is used of photos with several; of all other photos, it is the most prominent.

    Attributes:
        numbers: The number of the face, from 2, where it is not the most prominent one: by the
            photo's number.
        unclear: Numbers of photos of which no face fits clearly; the most prominent one is used.
    """

    numbers: dict[int, int] = field(default_factory=dict)
    unclear: list[int] = field(default_factory=list)

    def describe(self) -> str:
        """Return in words how many photos are concerned."""
        photos = counted(len(self.numbers), "photo")
        return f"in {photos} the face that fits the folder, and is used, is not the most prominent"

    def face_of(self, index: FaceIndex, image: int) -> FaceRef:
        """Return the face of a photo that is used."""
        return FaceRef(index.path(image), self.numbers.get(image, 1))


MOST_PROMINENT = SubjectFaces()


def choose_faces(photos: Sequence[Embeddings], least: float) -> list[int | None]:
    """Choose the face of the person whom all photos show.

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


def count_faces(
    index: FaceIndex, images: Sequence[int], records: Mapping[int, PhotoRecord], keep: bool = True
) -> Ints:
    """Return how many faces some photos of an index show: int64[N], 0 for all other photos.

    Args:
        index: The photos.
        images: Numbers of the photos.
        records: What is known of some of them; the others are inspected.
        keep: Whether what is found is stored in the cache of photos.
    """
    unknown = [image for image in images if image not in records]
    inspected = photo_records(index, "landmarks", unknown, keep=keep) if unknown else ()
    known = {**records, **dict(zip(unknown, inspected, strict=True))}
    faces = np.zeros(len(index), np.int64)
    for image in images:
        faces[image] = len(known[image].faces or ()) if known[image].usable else 0
    return faces


def choose_subjects(
    reader: PhotoReader, index: FaceIndex, faces: Ints, least: float
) -> SubjectFaces:
    """Choose the face in every photo that shows several.

    Args:
        reader: Reads photos with the network that chooses.
        index: The photos.
        faces: From `count_faces`.
        least: As for `choose_faces`.
    """
    people = np.unique(index.person_of[faces > 1])
    progress, subjects = console.progress("choosing among several faces"), SubjectFaces()
    choose = partial(_choose, reader, index, faces, least)
    for done, chosen in enumerate(thread_map(choose, people.tolist()), 1):
        for image, number in chosen.items():
            if number is None:
                subjects.unclear.append(image)
            elif number > 1:
                subjects.numbers[image] = number
        progress(done, len(people))
    return subjects


def _choose(
    reader: PhotoReader, index: FaceIndex, faces: Ints, least: float, person: int
) -> dict[int, int | None]:
    """Return the face of each photo of a person with several; nothing without other photos."""
    images = np.asarray(index.images_of(person))
    several, alone = images[faces[images] > 1], images[faces[images] == 1]
    found: dict[int, Embeddings] = {}
    for image in [*several.tolist(), *alone[:MOST_OTHERS].tolist()]:
        path = index.path(image)
        samples = reader.read([(str(path), path)], every=True)
        if rows := [face.embedding for face in samples if face.embedding is not None]:
            found[image] = np.stack(rows)
    chosen = choose_faces(list(found.values()), least) if len(found) > 1 else []
    pairs = zip(found, chosen, strict=False)
    return {image: face for image, face in pairs if len(found[image]) > 1}
