"""Write a folder of synthetic faces in LFW's layout; no photo of a real person is needed.

The JPEG files depend on the seed and on the version of libjpeg.
"""

import io
import itertools
from pathlib import Path

from PIL import Image

from facepairs.data.synth import faces
from facepairs.data.synth.canvas import FRAME_PX
from facepairs.errors import BadConfig
from facepairs.support import console
from facepairs.support.atomic import atomic_folder
from facepairs.support.parallel import thread_map
from facepairs.support.places import check_output_folder

FAMILIES = "families.csv"


def write_synthetic_faces(
    out: Path,
    people: int,
    photos: int,
    seed: int,
    size_px: int = FRAME_PX,
    difficulty: float = 0.0,
    families: int = 0,
) -> None:
    """Write a folder of invented people, `out/Name/Name_0001.jpg`.

    Args:
        out: The folder; missing or empty.
        people: How many people, from 1 to `faces.MAX_PEOPLE`.
        photos: Of each person, from 1 to `faces.MAX_PHOTOS`.
        seed: From 0 to 2**63 - 1.
        size_px: Width and height of the photos.
        difficulty: How hard people are to tell apart, from 0 to 1: `faces.appearance`.
        families: Number of families of relatives, from 0 (unrelated people) to `people`. With
            families, `out/families.csv` lists everyone's.

    Raises:
        BadConfig: An argument is out of range.
        BadData: `out` is not empty or cannot be written.
    """
    _check_range("people", people, 1, faces.MAX_PEOPLE)
    _check_range("difficulty", difficulty, 0, 1)
    _check_range("families", families, 0, people)
    _check_range("photos", photos, 1, faces.MAX_PHOTOS)
    check_output_folder(out)
    with atomic_folder(out.resolve()) as folder:

        def write_photo(photo: tuple[int, int]) -> None:
            person, number = photo
            name = faces.name_of(seed, person)
            path = folder / name / f"{name}_{number + 1:04d}.jpg"
            path.parent.mkdir(exist_ok=True)
            _, shot = faces.appearance(seed, person, number, difficulty, families)
            face = faces.draw_face(seed, person, number, size_px, difficulty, families)
            # Encoded in memory first: Pillow does not notice that a disk is full.
            data = io.BytesIO()
            Image.fromarray(face).save(data, "JPEG", quality=round(shot.jpeg_quality))
            path.write_bytes(data.getvalue())

        progress = console.progress("drawing faces")
        every = itertools.product(range(people), range(photos))
        for done, _ in enumerate(thread_map(write_photo, every), 1):
            progress(done, people * photos)
        if families:
            rows = [f"{faces.name_of(seed, p)},{p % families + 1}" for p in range(people)]
            lines = "\n".join(["person,family", *rows])
            (folder / FAMILIES).write_text(lines + "\n", encoding="utf-8")


def _check_range(what: str, value: float, low: int, high: int) -> None:
    """Raise BadConfig unless a number is within a range."""
    if not low <= value <= high:
        raise BadConfig(f"{what} is {value}; use {low} to {high}")
