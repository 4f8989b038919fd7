"""The dataset doctor: decodes every photo of a folder and reports what would mislead a training."""

import json
import unicodedata
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from facepairs.data.index import OTHER_IMAGES, READABLE, FaceIndex, Skipped, SkipReason
from facepairs.images.check import ImageCheck, InspectFiles
from facepairs.support.parallel import OrderedMap, batches, thread_map
from facepairs.support.platform import return_freed_memory
from facepairs.support.progress import ProgressCallback, ignore_progress

SCHEMA = 1
MIN_SIDE_PX = 64
MAJORITY = 0.5  # if more than this share of the images have one size, the other sizes are odd
BATCH = 64  # images per task: a task for each image costs more than decoding it
MAX_COMMON_SIZES = 10

InspectNames = Callable[[list[str]], list[ImageCheck]]
"""Called with the names of images below the root; returns a check for each."""

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
SKIPPED: dict[SkipReason, tuple[Severity, str]] = {
    "broken_link": ("error", "is a link to nothing; restore its target or remove it"),
    "symlink_loop": (
        "warning",
        "is a circular link or a link to a folder, and not followed; put the photos there",
    ),
    "unsupported": ("error", "is a {format} file, which is not used; convert it to JPEG or PNG"),
    "no_permission": ("error", "may not be read; grant yourself read permission"),
    "nested_folder": (
        "warning",
        "is a folder within a person's folder, and not used; move its photos one level up",
    ),
    "empty_person": ("warning", "is a folder without a usable photo; add photos or remove it"),
    "special_file": ("warning", "is a pipe, socket or device, and was not opened; remove it"),
    "stray_file": ("note", "is not a photo of a person, and not used"),
    "not_image": ("note", "is not a photo of a person, and not used"),
}
STRAY_PHOTO: tuple[Severity, str] = (
    "warning",
    "is a photo outside any person's folder, and not used; move it into one",
)


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
        plain: dict[str, Any] = json.loads(json.dumps(values))  # tuples become lists
        return plain


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
    inspect: InspectNames | None = None,
) -> DatasetReport:
    """Check the images of an index as `check_dataset` does.

    Args:
        index: The index of the images.
        progress: Called with the images checked and the images in all.
        ordered_map: Runs the work.
        inspect: Checks images thoroughly; None reads the files below the index's root.
    """
    survey = _Survey(index)
    inspect = inspect or InspectFiles(index.root, thorough=True)
    for image, check in _inspect_images(index, inspect, progress, ordered_map):
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
    inspect: InspectNames | None = None,
) -> list[tuple[int, str]]:
    """Decode every image of an index.

    Args:
        index: The index of the images.
        progress: Called with the images decoded and the images in all.
        ordered_map: Runs the work.
        inspect: Decodes images; None reads the files below the index's root.

    Returns:
        The number of each image that cannot be read, and the reason.
    """
    inspect = inspect or InspectFiles(index.root, thorough=False)
    checks = _inspect_images(index, inspect, progress, ordered_map)
    return [(image, check.reason) for image, check in checks if check.problem]


def _inspect_images(
    index: FaceIndex, inspect: InspectNames, progress: ProgressCallback, ordered_map: OrderedMap
) -> Iterator[tuple[int, ImageCheck]]:
    """Yield the number and the check of every image, in order; Pillow decodes without the GIL."""
    done = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's warnings are findings here
        for checks in ordered_map(inspect, batches(index.names(), BATCH)):
            yield from enumerate(checks, done)
            done += len(checks)
            progress(done, len(index))
    return_freed_memory()  # a training follows


class _Survey:
    """Collects the checks of images and turns them into findings."""

    def __init__(self, index: FaceIndex) -> None:
        self.index = index
        self.bad_images: list[int] = []
        self.problems: list[Finding] = []
        self.by_size: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        self._by_digest: dict[bytes, int] = {}  # the first image of each content
        self._copies: defaultdict[int, list[int]] = defaultdict(list)  # by the first image
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
        first = self._by_digest.setdefault(check.digest, image)
        if first != image:
            self._copies[first].append(image)
        if check.orientation != 1:
            self._rotated.append(image)

    def duplicates(self) -> Iterator[Finding]:
        """Yield groups of images with the same bytes; links to one photo count as such."""
        for first, copies in self._copies.items():
            images = [first, *copies]
            names = tuple(map(self.index.name, images))
            people = sorted({self.index.people[int(self.index.person_of[i])] for i in images})
            if len(people) > 1:
                yield Finding(
                    "error",
                    "same_photo_two_people",
                    names,
                    f"The same photo has {len(people)} names ({_shorten(people)}): pairs of its "
                    f"copies would count as impostors; keep it under the right name only.",
                )
            else:
                yield Finding(
                    "warning",
                    "duplicate",
                    names,
                    f"{len(names)} files of {people[0]} are the same photo: a genuine pair of "
                    f"them teaches and proves nothing; keep one.",
                )

    def unusual_images(self) -> Iterator[Finding]:
        """Yield one finding for all images that are tiny, rotated, or of an unusual size."""
        tiny = [size for size in self.by_size if min(size) < MIN_SIDE_PX]
        yield from self._group(
            "warning",
            "tiny",
            self._images_of(tiny),
            f"a short side below {MIN_SIDE_PX} px: too few pixels to tell people apart",
        )
        yield from self._group(
            "error",
            "orientation",
            self._rotated,
            "an EXIF orientation: training reads pixels as stored and would see them rotated; "
            "rotate the pixels themselves, as `mogrify -auto-orient` does",
        )
        common, *others = self.common_sizes() or [SizeCount(0, 0, 0)]
        if common.images > MAJORITY * sum(map(len, self.by_size.values())):
            yield from self._group(
                "warning",
                "odd_size",
                self._images_of((size.width_px, size.height_px) for size in others),
                f"another size than the other {common.images:,} "
                f"({common.width_px}x{common.height_px}): check that their faces are framed alike",
            )

    def common_sizes(self) -> list[SizeCount]:
        """Return all sizes, the most common first."""
        counts = [SizeCount(*size, len(images)) for size, images in self.by_size.items()]
        return sorted(counts, key=lambda count: -count.images)

    def _images_of(self, sizes: Iterable[tuple[int, int]]) -> list[int]:
        return sorted(image for size in sizes for image in self.by_size[size])

    def _group(
        self, severity: Severity, kind: str, images: list[int], what: str
    ) -> Iterator[Finding]:
        """Yield one finding for images with the same flaw, if there are any."""
        if images:
            have = "image has" if len(images) == 1 else "images have"
            names = tuple(map(self.index.name, images))
            text = f"{len(images):,} {have} {what} ({_shorten(names)})."
            yield Finding(severity, kind, names, text)


def _shorten(names: Iterable[str], maximum: int = 3) -> str:
    """List the first names and the number of the others."""
    shown = list(names)
    more = f" and {len(shown) - maximum:,} more" if len(shown) > maximum else ""
    return ", ".join(shown[:maximum]) + more


def _skipped_finding(skipped: Skipped) -> Finding:
    """Explain why something in the folder is not in the index."""
    path, reason = skipped
    suffix = Path(path).suffix.lower()
    is_stray_photo = reason == "stray_file" and suffix in (*READABLE, *OTHER_IMAGES)
    severity, text = STRAY_PHOTO if is_stray_photo else SKIPPED[reason]
    text = text.format(format=suffix[1:].upper())
    return Finding(severity, reason, (path,), f"{path} {text}.")


def _similar_names(index: FaceIndex) -> Iterator[Finding]:
    """Yield folders whose names differ only by case or Unicode form: probably one person."""
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name in index.people:
        alike[unicodedata.normalize("NFC", name).casefold()].append(name)
    for people in alike.values():
        if len(people) > 1:
            yield Finding(
                "warning",
                "same_name",
                tuple(people),
                f"{_shorten(people)} differ only by case or Unicode form: "
                f"put the photos into one folder if they show one person.",
            )


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
