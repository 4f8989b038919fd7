"""What is wrong with the photos of a folder: their files, their names, and the faces in them."""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from facepairs.data.index import OTHER_IMAGES, READABLE, FaceIndex, Skipped
from facepairs.doctor.findings import (
    MAX_TURN_DEG,
    MIN_SIDE_PX,
    Counts,
    Finding,
    SizeCount,
    make_finding,
    shorten,
)
from facepairs.faces.face_problem import face_problem
from facepairs.faces.hints import PROFILE_YAW
from facepairs.faces.photo_record import PhotoRecord

MAJORITY = 0.5  # if more than this share of the images have one size, the other sizes are odd
MAX_COMMON_SIZES = 10


class PhotoSurvey:
    """Collects the records of an index's photos and turns them into findings and counts.

    Attributes:
        bad_images: Numbers of the images that cannot be used, rising.
    """

    def __init__(self, index: FaceIndex) -> None:
        self.bad_images: list[int] = []
        self._index = index
        self._problems: list[Finding] = []
        self._by_size: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        self._by_digest: defaultdict[bytes, list[int]] = defaultdict(list)
        self._several: list[int] = []
        self._turned: list[int] = []

    def add(self, image: int, record: PhotoRecord, needs_face: bool) -> None:
        """Add the record of the next image; with `needs_face`, its face counts."""
        problem, reason = record.problem, record.reason
        if needs_face and not problem:
            problem, reason = face_problem(record.found) or ("", "")
        if problem:
            name = self._index.name(image)
            self.bad_images.append(image)
            self._problems.append(Finding("error", problem, (name,), f"{name}: {reason}."))
        if not record.problem:
            self._by_size[record.width_px, record.height_px].append(image)
            self._by_digest[record.digest].append(image)
        if needs_face and (face := record.face):
            if len(record.faces or ()) > 1:
                self._several.append(image)
            # A nose tip beside the eyes' middle by PROFILE_YAW: about MAX_TURN_DEG to the side.
            if abs(face.roll_deg) > MAX_TURN_DEG or abs(face.yaw) > PROFILE_YAW:
                self._turned.append(image)

    def findings(self, sizes: bool) -> Iterator[Finding]:
        """Yield what was found; `sizes` also judges the sizes of images that are used whole."""
        yield from map(_skipped_finding, self._index.skipped)
        if self._index.leftovers:
            yield make_finding("leftover", self._index.leftovers)
        yield from self._problems
        yield from self._duplicates()
        yield from _similar_names(self._index)
        for kind, images in (("several_faces", self._several), ("turned_face", self._turned)):
            if images:
                yield make_finding(kind, map(self._index.name, images))
        if sizes:
            yield from self._unusual_sizes()

    def _duplicates(self) -> Iterator[Finding]:
        """Yield groups of images with the same bytes; links to one photo count as such."""
        for images in self._by_digest.values():
            if len(images) == 1:
                continue
            people = sorted({self._index.people[int(self._index.person_of[i])] for i in images})
            kind = "duplicate" if len(people) == 1 else "same_photo_two_people"
            yield make_finding(kind, map(self._index.name, images), people=shorten(people))

    def _unusual_sizes(self) -> Iterator[Finding]:
        """Yield one finding for all images that are tiny, and one for those of unusual sizes."""
        tiny = self._names_of(size for size in self._by_size if min(size) < MIN_SIDE_PX)
        if tiny:
            yield make_finding("tiny", tiny)
        common, *others = self._common_sizes() or [SizeCount(0, 0, 0)]
        if others and common.images > MAJORITY * sum(map(len, self._by_size.values())):
            odd = self._names_of((size.width_px, size.height_px) for size in others)
            yield make_finding("odd_size", odd, size=f"{common.width_px}x{common.height_px}")

    def _common_sizes(self) -> list[SizeCount]:
        """Return all sizes, the most common first."""
        counts = [SizeCount(*size, len(images)) for size, images in self._by_size.items()]
        return sorted(counts, key=lambda count: -count.images)

    def _names_of(self, sizes: Iterable[tuple[int, int]]) -> list[str]:
        images = sorted(image for size in sizes for image in self._by_size[size])
        return list(map(self._index.name, images))

    def counts(self) -> Counts:
        """Return the folder in figures."""
        images = self._index.image_counts
        return Counts(
            people=len(self._index.people),
            images=len(self._index),
            people_with_one_image=int((images == 1).sum()),
            images_per_person_min=int(images.min()),
            images_per_person_median=float(np.median(images)),
            images_per_person_max=int(images.max()),
            genuine_pairs=int((images * (images - 1) // 2).sum()),
            megabytes=round(int(self._index.sizes.sum()) / 1e6, 3),
            sizes=tuple(self._common_sizes()[:MAX_COMMON_SIZES]),
        )


def _skipped_finding(skipped: Skipped) -> Finding:
    """Explain why something in the folder is not in the index."""
    is_photo = Path(skipped.path).suffix.lower() in (*READABLE, *OTHER_IMAGES)
    if skipped.reason == "stray_file" and is_photo:
        return replace(make_finding("stray_photo", [skipped.path]), kind="stray_file")
    return make_finding(skipped.reason, [skipped.path])


def _similar_names(index: FaceIndex) -> Iterator[Finding]:
    """Yield folders whose names differ only by case or Unicode form: probably one person."""
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name in index.people:
        alike[unicodedata.normalize("NFC", name).casefold()].append(name)
    for people in alike.values():
        if len(people) > 1:
            yield make_finding("same_name", people, people=shorten(people))
