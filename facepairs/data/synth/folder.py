"""Write a folder of synthetic faces in LFW's layout; no photo of a real person is needed.

The JPEG files depend on the seed and on the version of libjpeg.
"""

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import NamedTuple

from facepairs.data.synth import faces
from facepairs.data.synth.canvas import FRAME_PX
from facepairs.errors import BadConfig
from facepairs.images.jpeg import write_jpeg
from facepairs.support.atomic import atomic_folder
from facepairs.support.outputs import check_output_folder
from facepairs.support.platform import ignore_interrupts
from facepairs.support.progress import ProgressCallback, ignore_progress
from facepairs.support.random_streams import Stream, raw_words, unit

POOL_FROM_PHOTOS = 200  # starting processes takes as long as drawing about a hundred


class _Person(NamedTuple):
    """One person's photos to draw: the task of a worker process."""

    folder: Path
    seed: int
    person: int
    photos: int
    size_px: int


def write_synthetic_faces(
    out: Path,
    people: int,
    images: int | tuple[int, int],
    seed: int,
    size_px: int = FRAME_PX,
    progress: ProgressCallback = ignore_progress,
) -> None:
    """Write a folder of invented people, `out/Name/Name_0001.jpg`.

    More than 200 photos are drawn in several processes, so a script should call this function under
    `if __name__ == "__main__":`; the files are the same otherwise, but take longer.

    Args:
        out: The folder; missing or empty.
        people: How many people, from 1 to `faces.MAX_PEOPLE`.
        images: Photos of each person, from 1 to `faces.MAX_PHOTOS`, or a range that each person's
            number is drawn from, both ends included.
        seed: From 0 to 2**63 - 1.
        size_px: Width and height of the photos.
        progress: Called with the photos drawn and the photos in all.

    Raises:
        BadConfig: An argument is out of range.
        BadData: `out` is not empty or cannot be written.
    """
    low, high = (images, images) if isinstance(images, int) else images
    faces.check_range("people", people, 1, faces.MAX_PEOPLE)
    faces.check_range("size_px", size_px, *faces.SIZE_LIMITS_PX)
    for number in (low, high):
        faces.check_range("images", number, 1, faces.MAX_PHOTOS)
    if low > high:
        raise BadConfig(f"images is a range from {low} to {high}; give the smaller number first")
    counts = [_photo_count(seed, person, low, high) for person in range(people)]
    check_output_folder(out)
    with atomic_folder(out.resolve()) as folder:
        tasks = [_Person(folder, seed, p, count, size_px) for p, count in enumerate(counts)]
        _draw_people(tasks, sum(counts), progress)


def _photo_count(seed: int, person: int, low: int, high: int) -> int:
    u = unit(raw_words(seed, Stream.FACE_PHOTO_COUNT, person, 0, 1))[0]
    return low + int(u * (high - low + 1))


def _draw_people(tasks: Sequence[_Person], total: int, progress: ProgressCallback) -> None:
    """Draw all photos, in processes if there are many."""
    workers = min(os.cpu_count() or 1, len(tasks)) if total > POOL_FROM_PHOTOS else 1
    done = finished = 0
    if workers > 1:
        for photos in _draw_in_processes(tasks, workers):
            done, finished = done + photos, finished + 1
            progress(done, total)
    for task in tasks[finished:]:
        for _ in _draw_photos(task):
            done += 1
            progress(done, total)


def _draw_in_processes(tasks: Sequence[_Person], workers: int) -> Iterator[int]:
    """Yield the number of photos of each person drawn; end early if the processes fail."""
    context = multiprocessing.get_context("spawn")  # forking a process with threads is unsafe
    with ProcessPoolExecutor(workers, context, ignore_interrupts) as pool:
        try:
            yield from pool.map(_draw_person, tasks, chunksize=4)
        except BrokenProcessPool:
            return
        finally:
            pool.shutdown(cancel_futures=True)


def _draw_person(task: _Person) -> int:
    return sum(1 for _ in _draw_photos(task))


def _draw_photos(task: _Person) -> Iterator[Path]:
    """Draw one person's photos and yield the path of each."""
    name = faces.name_of(task.seed, task.person)
    (task.folder / name).mkdir(exist_ok=True)
    for photo in range(task.photos):
        path = task.folder / name / f"{name}_{photo + 1:04d}.jpg"
        quality = round(faces.shot_of(task.seed, task.person, photo).jpeg_quality)
        write_jpeg(path, faces.draw_face(task.seed, task.person, photo, task.size_px), quality)
        yield path
