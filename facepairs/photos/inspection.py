"""Inspect photos: read each file once, check it, and find the faces in it.

What a file holds decides everything, so a file whose content was met before is only read.
"""

import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from facepairs.choices import Align
from facepairs.data.index import FaceIndex
from facepairs.photos.crop import ALIGNMENTS, CropPlan, CropSpec
from facepairs.photos.decode import is_plain, orientation_of
from facepairs.photos.detector import DETECTOR, search_photo
from facepairs.photos.frame import fit_crops
from facepairs.photos.hints import face_hints, whole_hints
from facepairs.photos.photo import Photo, open_photo, read_below, read_checked, read_image_file
from facepairs.photos.photo_cache import PhotoCache, photo_cache
from facepairs.photos.photo_record import PhotoRecord, face_problem, face_rows, large_enough
from facepairs.photos.problem import ImageProblem
from facepairs.support import console
from facepairs.support.parallel import batches, thread_map
from facepairs.support.platform import return_freed_memory

BATCH = 16  # photos per task and per transaction of the cache


@dataclass(frozen=True)
class InspectPhotos:
    """Inspects photos by name; a work object that threads and pickle can share.

    Attributes:
        align: Find faces, too.
        cache: Where records are looked up and stored, None for nowhere.
        read: Returns the content of a file by its name; may raise OSError.
    """

    align: bool
    cache: PhotoCache | None = None
    read: Callable[[str], bytes] = read_image_file

    def __call__(self, names: Iterable[str]) -> list[PhotoRecord]:
        """Return the record of each of these photos; what is wrong with a photo is part of it.

        Raises:
            BadConfig: The detector's file is missing or not the expected one.
        """
        found: dict[bytes, PhotoRecord] = {}
        records = [self._inspect(name, found) for name in names]
        if self.cache:
            self.cache.put(found.values())
        return records

    def _inspect(self, name: str, found: dict[bytes, PhotoRecord]) -> PhotoRecord:
        """Return the record of a photo; add a new one to `found`."""
        digest = b""
        try:
            data = read_checked(name, self.read, name)
            digest = hashlib.sha256(data).digest()
            known = found.get(digest) or (self.cache and self.cache.record(digest, self.align))
            if not known:
                known = found[digest] = inspect(open_photo(data, name), self.align, digest)
        except ImageProblem as error:  # not kept, because another version may read it
            return PhotoRecord(error.problem, error.reason, digest=digest)
        return known


def inspect(photo: Photo, align: bool, digest: bytes) -> PhotoRecord:
    """Return the record of a photo, which is decoded for it.

    Args:
        photo: A file or its bytes.
        align: Find faces; without it, the whole image is looked at.
        digest: The SHA-256 of the file.

    Raises:
        BadConfig: The detector's file is missing or not the expected one.
        ImageProblem: The photo is damaged; or it is nearly black, without a face.
    """
    found = search_photo(photo) if align else []
    usable = large_enough(found)
    hints = face_hints(photo, usable[0]) if usable else () if align else whole_hints(photo)
    width_px, height_px = photo.upright_px
    return PhotoRecord(
        width_px=width_px,
        height_px=height_px,
        plain=is_plain(photo),
        orientation=orientation_of(photo.opened) if photo.opened else 1,
        faces=face_rows(found) if align else None,
        hints=hints,
        digest=digest,
    )


def inspect_content(
    data: bytes, align: bool, cache: PhotoCache | None = None, name: str = "image"
) -> PhotoRecord:
    """Inspect the content of one file, as `InspectPhotos` does."""
    return InspectPhotos(align, cache, lambda _: data)([name])[0]


@dataclass(frozen=True, eq=False)
class PhotoTable:
    """The photos of an index, in its order.

    Attributes:
        jpegs: int32[N, 3], as `CropPlan` has it.
        landmarks: float32[N, 5, 2], of the most prominent face that is large enough, in pixels of
            the upright photo; NaN where there is none; None if faces were not looked for.
        faces: int32[N], how many faces a photo shows.
        content: int64[N], the first bytes of each file's SHA-256, as `FaceIndex` has them.
        problems: The problem of each photo that cannot be used, and the problem in words.
    """

    jpegs: npt.NDArray[np.int32]
    landmarks: npt.NDArray[np.float32] | None
    faces: npt.NDArray[np.int32]
    content: npt.NDArray[np.int64]
    problems: dict[int, tuple[str, str]]

    @classmethod
    def of(cls, records: Iterable[PhotoRecord], photos: int, align: Align) -> "PhotoTable":
        """Collect the records of an index.

        Args:
            records: One record of each photo, in order.
            photos: How many there are.
            align: With `landmarks`, a photo without a face, or with too small a one, cannot be
                used; without, no faces are reported, even where a record has some.
        """
        jpegs, faces = np.zeros((photos, 3), np.int32), np.zeros(photos, np.int32)
        content = np.zeros(photos, np.int64)
        landmarks = np.full((photos, 5, 2), np.nan, np.float32)
        problems: dict[int, tuple[str, str]] = {}
        for number, record in enumerate(records):
            content[number] = record.content
            if record.plain:
                jpegs[number] = record.height_px, record.width_px, record.orientation
            if record.problem:
                problems[number] = record.problem, record.reason
            elif align == "landmarks":
                found = record.found
                if problem := face_problem(found):
                    problems[number] = problem
                else:
                    faces[number] = len(found)
                    landmarks[number] = large_enough(found)[0].landmarks
        return cls(jpegs, landmarks if align == "landmarks" else None, faces, content, problems)

    def __len__(self) -> int:
        return len(self.jpegs)

    def without(self, images: Iterable[int]) -> "PhotoTable":
        """Return the table without some photos, as `FaceIndex.without` does."""
        kept = np.delete(np.arange(len(self)), list(images))
        landmarks = None if self.landmarks is None else self.landmarks[kept]
        old = enumerate(kept.tolist())
        problems = {new: self.problems[image] for new, image in old if image in self.problems}
        faces, content = self.faces[kept], self.content[kept]
        return PhotoTable(self.jpegs[kept], landmarks, faces, content, problems)

    def crop_plan(self, spec: CropSpec, align: Align) -> CropPlan:
        """Return how every photo is cropped.

        Args:
            spec: What a network sees.
            align: Crops are cut out of the canonical frame, or out of the whole photo.

        Raises:
            ValueError: `align` is `landmarks`, but faces were not looked for.
        """
        if align == "none":
            return CropPlan(spec, self.jpegs, None, ALIGNMENTS[align])
        if self.landmarks is None:
            raise ValueError("alignment needs landmarks; inspect the photos with them")
        to_crop = fit_crops(self.landmarks, spec)
        return CropPlan(spec, self.jpegs, to_crop, ALIGNMENTS[align], DETECTOR)


def inspect_photos(
    index: FaceIndex,
    align: Align,
    cache: PhotoCache | None = None,
) -> PhotoTable:
    """Inspect every photo of an index.

    Args:
        index: The photos.
        align: With `landmarks`, faces are found, and a photo without one is a problem.
        cache: Where records are looked up and stored; the user's by default.

    Raises:
        BadConfig: The detector's file is missing or not the expected one.
    """
    return PhotoTable.of(photo_records(index, align, cache=cache), len(index), align)


def photo_records(
    index: FaceIndex,
    align: Align,
    images: Sequence[int] | None = None,
    cache: PhotoCache | None = None,
) -> Iterator[PhotoRecord]:
    """Yield the records of some photos of an index, by default of all; see `inspect_photos`."""
    names = index.names() if images is None else map(index.name, images)
    read = partial(read_below, index.root)
    inspect = InspectPhotos(align == "landmarks", cache or photo_cache(), read)
    count = len(index) if images is None else len(images)
    yield from collect(thread_map(inspect, batches(names, BATCH)), count)
    return_freed_memory()  # a training follows


def collect(inspected: Iterable[list[PhotoRecord]], photos: int) -> Iterator[PhotoRecord]:
    """Yield the records that `InspectPhotos` returns for batches of photos.

    Args:
        inspected: Does the work while it is iterated.
        photos: How many photos there are.
    """
    done, progress = 0, console.progress("finding faces")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Pillow warns about is part of the records
        for records in inspected:
            yield from records
            done += len(records)
            progress(done, photos)
