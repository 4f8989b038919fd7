"""The photos of an index: what is found in them, and how they are cropped."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from facepairs.choices import Align
from facepairs.data.index import FaceIndex
from facepairs.photos.crop import ALIGNMENTS, CropPlan, CropSpec
from facepairs.photos.detector import DETECTOR
from facepairs.photos.frame import fit_crops
from facepairs.photos.photo import read_below
from facepairs.photos.photo_cache import photo_cache
from facepairs.photos.photo_record import PhotoRecord
from facepairs.photos.reader import PhotoReader
from facepairs.support.parallel import batches, thread_map, unbatched
from facepairs.support.platform import return_freed_memory

BATCH = 16  # photos per task and per transaction of the cache
FINDING = "finding faces"  # the phase that progress shows


def photo_records(
    index: FaceIndex,
    align: Align,
    images: Sequence[int] | None = None,
    keep: bool = True,
) -> Iterator[PhotoRecord]:
    """Inspect photos of an index and yield their records.

    Args:
        index: The photos.
        align: With `landmarks`, faces are found.
        images: Numbers of the photos; by default all.
        keep: Whether what is found is stored.

    Raises:
        BadConfig: The detector's file is missing or not the expected one.
    """
    names = list(map(index.place, range(len(index)) if images is None else images))
    read = partial(read_below, index.root)
    reader = PhotoReader(align == "landmarks", cache=photo_cache(), keep=keep, open=read)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Pillow warns about is part of the records
        inspected = thread_map(reader.records, batches(names, BATCH))
        yield from unbatched(inspected, FINDING, len(names))
    return_freed_memory()  # a training follows


def unusable_photos(records: Sequence[PhotoRecord], align: Align) -> dict[int, str]:
    """Return what is wrong, in words, with each photo that cannot be used, by its number.

    With `landmarks`, a photo without a face, or with too small a one, cannot be used.
    """
    aligned = align == "landmarks"
    found = {image: record.why_unusable(aligned) for image, record in enumerate(records)}
    return {image: problem[1] for image, problem in found.items() if problem}


def plan_crops(
    records: Sequence[PhotoRecord],
    spec: CropSpec,
    align: Align,
    faces: Mapping[int, int] | None = None,
) -> CropPlan:
    """Return how the photos of an index are cropped, all of which can be used.

    Args:
        records: One of each photo, in order.
        spec: What a network sees.
        align: Crops are cut out of the canonical frame of a face, or out of the whole photo.
        faces: The number of the face, by the photo's, where it is not the most prominent one.
    """
    jpegs = np.zeros((len(records), 3), np.int32)
    for image, record in enumerate(records):
        if record.tf_decodable:
            jpegs[image] = record.height_px, record.width_px, record.orientation
    if align == "none":
        return CropPlan(spec, jpegs, None, ALIGNMENTS[align])
    numbers = faces or {}
    landmarks = [
        record.usable[numbers.get(image, 1) - 1].landmarks for image, record in enumerate(records)
    ]
    to_crop = fit_crops(np.reshape(landmarks, (-1, 5, 2)), spec)
    return CropPlan(spec, jpegs, to_crop, ALIGNMENTS[align], DETECTOR)
