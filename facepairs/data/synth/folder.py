"""Write a folder of synthetic faces in LFW's layout; no photo of a real person is needed.

The JPEG files depend on the seed and on the version of libjpeg.
"""

from pathlib import Path

from facepairs.data.synth import faces
from facepairs.data.synth.canvas import FRAME_PX
from facepairs.errors import BadConfig
from facepairs.images.jpeg import write_jpeg
from facepairs.support.atomic import atomic_folder
from facepairs.support.parallel import thread_map
from facepairs.support.places import check_output_folder
from facepairs.support.progress import ProgressCallback, ignore_progress
from facepairs.support.random_streams import Stream, raw_words, unit


def write_synthetic_faces(
    out: Path,
    people: int,
    images: int | tuple[int, int],
    seed: int,
    size_px: int = FRAME_PX,
    progress: ProgressCallback = ignore_progress,
    difficulty: float = 0.0,
) -> None:
    """Write a folder of invented people, `out/Name/Name_0001.jpg`.

    Args:
        out: The folder; missing or empty.
        people: How many people, from 1 to `faces.MAX_PEOPLE`.
        images: Photos of each person, from 1 to `faces.MAX_PHOTOS`, or a range that each person's
            number is drawn from, both ends included.
        seed: From 0 to 2**63 - 1.
        size_px: Width and height of the photos.
        progress: Called with the photos drawn and the photos in all.
        difficulty: How hard people are to tell apart, from 0 to 1: `faces.appearance`.

    Raises:
        BadConfig: An argument is out of range.
        BadData: `out` is not empty or cannot be written.
    """
    low, high = (images, images) if isinstance(images, int) else images
    faces.check_range("people", people, 1, faces.MAX_PEOPLE)
    faces.check_range("size_px", size_px, *faces.SIZE_LIMITS_PX)
    faces.check_range("difficulty", difficulty, 0, 1)
    for number in (low, high):
        faces.check_range("images", number, 1, faces.MAX_PHOTOS)
    if low > high:
        raise BadConfig(f"images is a range from {low} to {high}; give the smaller number first")
    counts = [_photo_count(seed, person, low, high) for person in range(people)]
    check_output_folder(out)
    with atomic_folder(out.resolve()) as folder:

        def write_photo(photo: tuple[int, int]) -> None:
            person, number = photo
            name = faces.name_of(seed, person)
            path = folder / name / f"{name}_{number + 1:04d}.jpg"
            path.parent.mkdir(exist_ok=True)
            quality = round(faces.shot_of(seed, person, number).jpeg_quality)
            face = faces.draw_face(seed, person, number, size_px, difficulty)
            write_jpeg(path, face, quality)

        photos = ((person, number) for person, n in enumerate(counts) for number in range(n))
        for done, _ in enumerate(thread_map(write_photo, photos), 1):
            progress(done, sum(counts))


def _photo_count(seed: int, person: int, low: int, high: int) -> int:
    u = unit(raw_words(seed, Stream.FACE_PHOTO_COUNT, person, 0, 1))[0]
    return low + int(u * (high - low + 1))
