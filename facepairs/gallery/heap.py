"""Read a heap of photos: every face of every photo below a folder, and its embedding."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from facepairs.data.index import photos_below
from facepairs.errors import BadBundle, BadData, BadImage, NoFace
from facepairs.images.decode import upright
from facepairs.images.photo import open_photo
from facepairs.support import console
from facepairs.support.parallel import batches, thread_map
from facepairs.support.places import refuse_url
from facepairs.verification.linkage import unit_rows
from facepairs.verification.loading import model_name
from facepairs.verification.photos import SeenPhoto
from facepairs.verification.scorer import BATCH_CROPS, ScoreArray
from facepairs.verification.verifier import Verifier

NO_FACE = "no_face"
CUT_OUT = 1.6  # side of a picture of one face, in sides of its box: neighbours stay outside


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


def read_heap(root: Path, verifier: Verifier) -> Heap:
    """Find and embed all faces of all photos below a folder.

    Args:
        root: The folder.
        verifier: The model that embeds: it aligns faces and compares embeddings by their cosine.

    Raises:
        BadData: The folder is missing or holds no photo.
        BadBundle: The model is another.
    """
    model = verifier.bundle
    if not model.aligned or model.kind != "embedding":
        raise BadBundle(
            f"{model_name(model)}: grouping needs a model that finds faces and has embeddings, "
            "such as the included one"
        )
    photos, reader = find_photos(root), verifier.reader()

    def read(names: list[str]) -> list[SeenPhoto]:
        seen = (reader.see(name, root / name, every=True) for name in names)
        return reader.complete([face for faces in seen for face in faces])

    faces: list[HeapFace] = []
    rows: list[ScoreArray] = []
    problems: dict[str, str] = {}
    progress = console.progress("finding faces and embedding")
    for done, seen in enumerate(thread_map(read, batches(photos, BATCH_CROPS)), 1):
        for one in seen:
            if one.error or one.box is None or one.embedding is None:
                problems[one.name] = NO_FACE if isinstance(one.error, NoFace) else str(one.error)
                continue
            left, top, side = one.box
            faces.append(HeapFace(one.name, (left, top, side), one.face + 1))
            rows.append(one.embedding)
        progress(min(done * BATCH_CROPS, len(photos)), len(photos))
    embeddings = np.array(rows, np.float32).reshape(len(rows), verifier.scorer.width)
    return Heap(root, tuple(photos), tuple(faces), unit_rows(embeddings), problems)


def find_photos(root: Path) -> list[str]:
    """Return the paths of all photos below a folder, with slashes and sorted.

    Raises:
        BadData: The folder is missing, cannot be read, or holds no photo.
    """
    refuse_url(root)
    photos = sorted(photos_below(root))
    if not photos:
        raise BadData(f"{root}: no photos in it or below; give a folder of photos")
    return photos


def cut_out(photo: Path, box: tuple[int, int, int]) -> Image.Image:
    """Return the square around a face; it ends where the photo ends.

    Args:
        photo: The file.
        box: The face: left, top and side in pixels of the upright photo.

    Raises:
        BadImage: The photo cannot be read, or no longer has this place.
    """
    left, top, side = box
    margin = round(side * (CUT_OUT - 1) / 2)
    with upright(open_photo(photo)) as (picture, _):
        if left >= picture.width or top >= picture.height:
            raise BadImage(f"{photo}: is smaller than before; group again")
        right, bottom = left + side + margin, top + side + margin
        edges = (min(picture.width, right), min(picture.height, bottom))
        return picture.crop((max(0, left - margin), max(0, top - margin), *edges))
