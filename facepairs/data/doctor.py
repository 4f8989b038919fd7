"""The dataset doctor: decodes every photo of a folder and reports what would mislead a training."""

import json
import unicodedata
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from facepairs.data.index import OTHER_IMAGES, READABLE, FaceIndex, ReadFile, Skipped
from facepairs.images.check import ImageCheck, InspectImages
from facepairs.images.photo import read_image_file
from facepairs.support.parallel import OrderedMap, batches, thread_map
from facepairs.support.platform import return_freed_memory
from facepairs.support.progress import ProgressCallback, ignore_progress

SCHEMA = 1
MIN_SIDE_PX = 64
MAJORITY = 0.5  # if more than this share of the images have one size, the other sizes are odd
BATCH = 64  # images per task: a task for each image costs more than decoding it
MAX_COMMON_SIZES = 10

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
KINDS: dict[str, tuple[Severity, str]] = {
    "broken_link": ("error", "{paths} is a link to nothing; restore its target or remove it."),
    "duplicate": (
        "warning",
        "{count} files of {people} are the same photo: a genuine pair of them teaches and proves "
        "nothing; keep one.",
    ),
    "empty_person": ("warning", "{paths} has no photo that can be used; add some or remove it."),
    "nested_folder": (
        "warning",
        "{paths} is a folder within a person's folder, and not used; move its photos one level up.",
    ),
    "no_permission": ("error", "{paths} may not be read; grant yourself read permission."),
    "not_image": ("note", "{paths} is not a photo of a person, and not used."),
    "odd_size": (
        "warning",
        "Most images are {size}; check that the faces in the others are framed alike ({count}): "
        "{paths}.",
    ),
    "orientation": (
        "error",
        "Training would see images with an EXIF orientation rotated; rotate their pixels, as "
        "`mogrify -auto-orient` does ({count}): {paths}.",
    ),
    "same_name": (
        "warning",
        "{people} differ only by case or Unicode form: put the photos into one folder if they show "
        "one person.",
    ),
    "same_photo_two_people": (
        "error",
        "The same photo has several names ({people}): pairs of its copies would count as "
        "impostors; keep it under the right name only.",
    ),
    "special_file": ("warning", "{paths} is a pipe, socket or device, not opened; remove it."),
    "stray_file": ("note", "{paths} is not a photo of a person, and not used."),
    "stray_photo": (
        "warning",
        "{paths} is a photo outside any person's folder, and not used; move it into one.",
    ),
    "symlink_loop": (
        "warning",
        "{paths} is a circular link or a link to a folder, not followed; put the photos there.",
    ),
    "tiny": (
        "warning",
        f"A short side below {MIN_SIDE_PX} px is too small to tell people apart ({{count}}): "
        "{paths}.",
    ),
    "unsupported": ("error", "{paths} is not JPEG, PNG or BMP, and not used; convert it."),
}


@dataclass(frozen=True)
class Finding:
    """Something that was found.

    Attributes:
        severity: "error" (training would refuse or be misled), "warning" or "note".
        kind: A word for programs, such as "duplicate".
        paths: Paths relative to the root, with `/`.
        text: A sentence that tells the user what to do.
    """

    severity: Severity
    kind: str
    paths: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class SizeCount:
    """How many images have one size in pixels."""

    width_px: int
    height_px: int
    images: int


@dataclass(frozen=True)
class Counts:
    """The folder in figures.

    Attributes:
        people: Number of people.
        images: Number of images.
        people_with_one_image: Number of people with a single image.
        images_per_person_min: Smallest number of images of a person.
        images_per_person_median: Median number of images of a person.
        images_per_person_max: Largest number of images of a person.
        genuine_pairs: Number of possible genuine pairs.
        megabytes: Size of all images, in 10^6 bytes.
        sizes: The most common sizes, the commonest first, at most MAX_COMMON_SIZES.
    """

    people: int
    images: int
    people_with_one_image: int
    images_per_person_min: int
    images_per_person_median: float
    images_per_person_max: int
    genuine_pairs: int
    megabytes: float
    sizes: tuple[SizeCount, ...]


@dataclass(frozen=True)
class DatasetReport:
    """The result of `check_dataset`.

    Attributes:
        root: The folder.
        fingerprint: The fingerprint of the index.
        counts: The folder in figures.
        findings: Errors first, then warnings, then notes.
        bad_images: Numbers of the images that training cannot read.
    """

    root: str
    fingerprint: str
    counts: Counts
    findings: tuple[Finding, ...]
    bad_images: tuple[int, ...]

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return all(finding.severity != "error" for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return dicts, lists, texts and numbers; a JSON round trip changes nothing."""
        values = {"schema": SCHEMA, "ok": self.ok, **msgspec.to_builtins(self)}
        return dict(json.loads(json.dumps(values)))  # tuples become lists


def check_dataset(
    root: Path,
    progress: ProgressCallback = ignore_progress,
    ordered_map: OrderedMap = thread_map,
) -> DatasetReport:
    """Check a folder of faces; every image is read whole, hashed and decoded.

    Args:
        root: A folder `Person_Name/photo.jpg`.
        progress: Called with the images checked and the images in all.
        ordered_map: Runs the work.

    Raises:
        BadData: The folder is missing, not readable, or has no images.
    """
    return check_index(FaceIndex.scan(root), progress, ordered_map)


def check_index(
    index: FaceIndex,
    progress: ProgressCallback = ignore_progress,
    ordered_map: OrderedMap = thread_map,
    read_file: ReadFile | None = None,
) -> DatasetReport:
    """Check the images of an index as `check_dataset` does.

    Args:
        index: The index of the images.
        progress: Called with the images checked and the images in all.
        ordered_map: Runs the work.
        read_file: Reads an image by its name; by default from the file below the index's root.
    """
    survey = _Survey(index)
    for image, check in _inspect_images(index, True, progress, ordered_map, read_file):
        survey.add(image, check)
    findings = [
        *map(_skipped_finding, index.skipped),
        *survey.problems,
        *survey.duplicates(),
        *survey.unusual_images(),
        *_similar_names(index),
    ]
    findings.sort(key=lambda one: (SEVERITIES.index(one.severity), one.kind, one.paths))
    return DatasetReport(
        str(index.root),
        index.fingerprint,
        _count(index, survey.common_sizes()),
        tuple(findings),
        tuple(survey.bad_images),
    )


def unreadable_images(
    index: FaceIndex,
    progress: ProgressCallback = ignore_progress,
    ordered_map: OrderedMap = thread_map,
    read_file: ReadFile | None = None,
) -> list[tuple[int, str]]:
    """Decode every image of an index.

    Args:
        index: The index of the images.
        progress: Called with the images decoded and the images in all.
        ordered_map: Runs the work.
        read_file: Reads an image by its name; by default from the file below the index's root.

    Returns:
        The number of each image that cannot be read, and the reason.
    """
    checks = _inspect_images(index, False, progress, ordered_map, read_file)
    return [(image, check.reason) for image, check in checks if check.problem]


def _inspect_images(
    index: FaceIndex,
    thorough: bool,
    progress: ProgressCallback,
    ordered_map: OrderedMap,
    read_file: ReadFile | None,
) -> Iterator[tuple[int, ImageCheck]]:
    """Yield the number and the check of every image, in order; Pillow decodes without the GIL."""
    done = 0
    inspect = InspectImages(read_file or partial(_read_below, index.root), thorough)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's warnings are findings here
        for checks in ordered_map(inspect, batches(index.names(), BATCH)):
            yield from enumerate(checks, done)
            done += len(checks)
            progress(done, len(index))
    return_freed_memory()  # a training follows


def _read_below(root: Path, name: str) -> bytes:
    return read_image_file(root / name)


class _Survey:
    """Collects the checks of images and turns them into findings."""

    def __init__(self, index: FaceIndex) -> None:
        self.index = index
        self.bad_images: list[int] = []
        self.problems: list[Finding] = []
        self.by_size: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        self._by_digest: defaultdict[bytes, list[int]] = defaultdict(list)
        self._rotated: list[int] = []

    def add(self, image: int, check: ImageCheck) -> None:
        """Record the check of one image."""
        if check.problem:
            name = self.index.name(image)
            self.bad_images.append(image)
            self.problems.append(
                Finding("error", check.problem, (name,), f"{name} {check.reason}.")
            )
            return
        self.by_size[check.width_px, check.height_px].append(image)
        self._by_digest[check.digest].append(image)
        if check.orientation != 1:
            self._rotated.append(image)

    def duplicates(self) -> Iterator[Finding]:
        """Yield groups of images with the same bytes; links to one photo count as such."""
        for images in self._by_digest.values():
            if len(images) == 1:
                continue
            people = sorted({self.index.people[int(self.index.person_of[i])] for i in images})
            kind = "duplicate" if len(people) == 1 else "same_photo_two_people"
            yield self._finding(kind, images, people=_shorten(people))

    def unusual_images(self) -> Iterator[Finding]:
        """Yield one finding for all images that are tiny, rotated, or of an unusual size."""
        tiny = self._images_of(size for size in self.by_size if min(size) < MIN_SIDE_PX)
        if tiny:
            yield self._finding("tiny", tiny)
        if self._rotated:
            yield self._finding("orientation", self._rotated)
        common, *others = self.common_sizes() or [SizeCount(0, 0, 0)]
        if others and common.images > MAJORITY * sum(map(len, self.by_size.values())):
            odd = self._images_of((size.width_px, size.height_px) for size in others)
            yield self._finding("odd_size", odd, size=f"{common.width_px}x{common.height_px}")

    def common_sizes(self) -> list[SizeCount]:
        """Return all sizes, the most common first."""
        counts = [SizeCount(*size, len(images)) for size, images in self.by_size.items()]
        return sorted(counts, key=lambda count: -count.images)

    def _images_of(self, sizes: Iterable[tuple[int, int]]) -> list[int]:
        return sorted(image for size in sizes for image in self.by_size[size])

    def _finding(self, kind: str, images: list[int], **values: str) -> Finding:
        return _finding(kind, map(self.index.name, images), **values)


def _finding(kind: str, paths: Iterable[str], **values: str) -> Finding:
    """Return a finding of one of the KINDS; `values` are what its text has in braces."""
    severity, text = KINDS[kind]
    names = tuple(paths)
    text = text.format(paths=_shorten(names), count=f"{len(names):,}", **values)
    return Finding(severity, kind, names, text)


def _shorten(names: Sequence[str], maximum: int = 3) -> str:
    """List the first names and the number of the others."""
    more = f" and {len(names) - maximum:,} more" if len(names) > maximum else ""
    return ", ".join(names[:maximum]) + more


def _skipped_finding(skipped: Skipped) -> Finding:
    """Explain why something in the folder is not in the index."""
    is_photo = Path(skipped.path).suffix.lower() in (*READABLE, *OTHER_IMAGES)
    if skipped.reason == "stray_file" and is_photo:
        return replace(_finding("stray_photo", [skipped.path]), kind="stray_file")
    return _finding(skipped.reason, [skipped.path])


def _similar_names(index: FaceIndex) -> Iterator[Finding]:
    """Yield folders whose names differ only by case or Unicode form: probably one person."""
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name in index.people:
        alike[unicodedata.normalize("NFC", name).casefold()].append(name)
    for people in alike.values():
        if len(people) > 1:
            yield _finding("same_name", people, people=_shorten(people))


def _count(index: FaceIndex, sizes: list[SizeCount]) -> Counts:
    images = index.image_counts
    return Counts(
        people=len(index.people),
        images=len(index),
        people_with_one_image=int((images == 1).sum()),
        images_per_person_min=int(images.min()),
        images_per_person_median=float(np.median(images)),
        images_per_person_max=int(images.max()),
        genuine_pairs=int((images * (images - 1) // 2).sum()),
        megabytes=round(int(index.sizes.sum()) / 1e6, 3),
        sizes=tuple(sizes[:MAX_COMMON_SIZES]),
    )
