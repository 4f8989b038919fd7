"""`PhotoTable`: what was found in the photos of an index, for training and the pair cache."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from facepairs.choices import Align
from facepairs.data.index import FaceIndex
from facepairs.photos.crop import ALIGNMENTS, CropPlan, CropSpec
from facepairs.photos.detector import DETECTOR
from facepairs.photos.frame import fit_crops
from facepairs.photos.photo import read_below
from facepairs.photos.photo_cache import PhotoCache, photo_cache
from facepairs.photos.photo_record import PhotoRecord
from facepairs.photos.reader import PhotoReader
from facepairs.support.parallel import batches, thread_map, unbatched
from facepairs.support.platform import return_freed_memory

BATCH = 16  # photos per task and per transaction of the cache
FINDING = "finding faces"  # the phase that progress shows


@dataclass(frozen=True, eq=False)
class PhotoTable:
    """The photos of an index, in its order.

    Attributes:
        jpegs: int32[N, 3], as `CropPlan` has it.
        landmarks: float32[N, 5, 2], of the face that is used, in pixels of the upright photo; NaN
            where there is none; None if faces were not looked for.
        content: int64[N], the first bytes of each file's SHA-256, as `FaceIndex` has them.
        problems: The problem of each photo that cannot be used, and the problem in words.
    """

    jpegs: npt.NDArray[np.int32]
    landmarks: npt.NDArray[np.float32] | None
    content: npt.NDArray[np.int64]
    problems: dict[int, tuple[str, str]]

    @classmethod
    def of(cls, records: Sequence[PhotoRecord], align: Align) -> "PhotoTable":
        """Collect the records of an index, with the most prominent face of each photo.

        Args:
            records: One of each photo, in order.
            align: With `landmarks`, a photo without a face, or with too small a one, cannot be
                used; without, no faces are reported, even where a record has some.
        """
        aligned = align == "landmarks"
        landmarks = np.full((len(records), 5, 2), np.nan, np.float32) if aligned else None
        jpegs = np.zeros((len(records), 3), np.int32)
        problems: dict[int, tuple[str, str]] = {}
        for number, record in enumerate(records):
            if record.tf_decodable:
                jpegs[number] = record.height_px, record.width_px, record.orientation
            if landmarks is not None and (faces := record.usable):
                landmarks[number] = faces[0].landmarks
            elif problem := record.why_unusable(aligned):
                problems[number] = problem
        content = np.array([record.content for record in records], np.int64)
        return cls(jpegs, landmarks, content, problems)

    def __len__(self) -> int:
        return len(self.jpegs)

    def without(self, images: Iterable[int]) -> "PhotoTable":
        """Return the table without some photos, as `FaceIndex.without` does."""
        kept = np.delete(np.arange(len(self)), list(images))
        landmarks = None if self.landmarks is None else self.landmarks[kept]
        old = enumerate(kept.tolist())
        problems = {new: self.problems[image] for new, image in old if image in self.problems}
        return PhotoTable(self.jpegs[kept], landmarks, self.content[kept], problems)

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


def inspect_photos(index: FaceIndex, align: Align, cache: PhotoCache | None = None) -> PhotoTable:
    """Inspect every photo of an index.

    Args:
        index: The photos.
        align: With `landmarks`, faces are found, and a photo without one is a problem.
        cache: Where records are looked up and stored; the user's by default.

    Raises:
        BadConfig: The detector's file is missing or not the expected one.
    """
    return PhotoTable.of(list(photo_records(index, align, cache=cache)), align)


def photo_records(
    index: FaceIndex,
    align: Align,
    images: Sequence[int] | None = None,
    cache: PhotoCache | None = None,
    keep: bool = True,
) -> Iterator[PhotoRecord]:
    """Yield the records of some photos of an index, by default of all; see `inspect_photos`.

    With `keep` false, what is found is not stored.
    """
    names = list(map(index.place, range(len(index)) if images is None else images))
    read = partial(read_below, index.root)
    reader = PhotoReader(align == "landmarks", cache=cache or photo_cache(), keep=keep, open=read)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Pillow warns about is part of the records
        inspected = thread_map(reader.records, batches(names, BATCH))
        yield from unbatched(inspected, FINDING, len(names))
    return_freed_memory()  # a training follows
