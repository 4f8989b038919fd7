"""The report of a folder check: findings of fixed kinds, and counts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from facepairs.support.results import Result

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
KINDS: dict[str, tuple[Severity, str]] = {
    "duplicate": (
        "warning",
        "{count} files of {people} are the same photo: a genuine pair of them teaches and proves "
        "nothing; keep one: {paths}.",
    ),
    "empty_person": ("warning", "{paths} has no photo that can be used; add some or remove it."),
    "labels_unchecked": ("note", "Faces are not compared: {reason}."),
    "mislabelled": (
        "warning",
        "{paths} probably shows another person than the other photos in its folder; look at it.",
    ),
    "near_duplicate": (
        "warning",
        "{count} photos of {people} may be copies of one photo, saved again or cropped, of which a "
        "genuine pair would teach and prove little: look at {paths}, and if they are, keep one.",
    ),
    "nested_folder": (
        "warning",
        "{paths} is a folder within a person's folder, and not used; move its photos one level up.",
    ),
    "not_image": ("note", "{paths} is not a photo of a person, and not used."),
    "other_face": (
        "note",
        "Of several faces, the one that fits the folder's other photos is used, not the most "
        "prominent ({count}): {paths}.",
    ),
    "same_face_two_people": (
        "error",
        "The same face of one photo has several names ({people}): pairs of its copies would count "
        "as impostors; keep the photo under the right name only, or cut out each person's face: "
        "{paths}.",
    ),
    "same_person": (
        "warning",
        "{people} may be one person: look at {paths}; if they are, put all photos into one folder, "
        "or move a photo that is in the wrong one.",
    ),
    "several_faces": (
        "note",
        "Of several faces in a photo the most prominent one is used; check that it is the right "
        "one ({count}): {paths}.",
    ),
    "shared_photo": (
        "note",
        "One photo is in the folders of {people}, and another face of it is used for each: "
        "{paths}.",
    ),
    "stray_photo": (
        "warning",
        "{paths} is a photo outside any person's folder, and not used; move it into one.",
    ),
    "unclear_face": (
        "warning",
        "Several faces, and none fits the folder's other photos clearly; the most prominent one is "
        "used, so cut out the right one ({count}): {paths}.",
    ),
    "unreadable": (
        "error",
        "{paths} is a broken link or no file, or may not be read; restore or remove it, or grant "
        "yourself read permission.",
    ),
    "unsupported": (
        "error",
        "{paths} is of a format that is not read, and not used; convert it to JPEG or PNG.",
    ),
}


@dataclass(frozen=True)
class Finding:
    """A finding about some photos.

    Attributes:
        severity: "error" (training would refuse or be misled), "warning" or "note".
        kind: The kind of finding, for programs, such as "duplicate".
        paths: Paths relative to the root, with `/`.
        text: A sentence that tells the user what to do.
    """

    severity: Severity
    kind: str
    paths: tuple[str, ...]
    text: str


def make_finding(kind: str, paths: Iterable[str], **values: str) -> Finding:
    """Return a finding of one of the KINDS; `values` fill the braces of its text."""
    severity, text = KINDS[kind]
    names = tuple(paths)
    text = text.format(paths=list_first(names), count=f"{len(names):,}", **values)
    return Finding(severity, kind, names, text)


def list_first(names: Sequence[str], maximum: int = 3) -> str:
    """List the first names and the number of the others."""
    more = f" and {len(names) - maximum:,} more" if len(names) > maximum else ""
    return ", ".join(names[:maximum]) + more


@dataclass(frozen=True)
class Counts:
    """Counts of a folder.

    Attributes:
        people: Number of people.
        images: Number of images.
        people_with_one_image: Number of people with a single image.
        images_per_person_min: Smallest number of images of a person.
        images_per_person_median: Median number of images of a person.
        images_per_person_max: Largest number of images of a person.
        genuine_pairs: Number of possible genuine pairs.
        megabytes: Size of all images, in 10^6 bytes.
        sizes_px: Width and height of the smallest image, of most images, and of the largest; empty
            if none can be read.
    """

    people: int
    images: int
    people_with_one_image: int
    images_per_person_min: int
    images_per_person_median: float
    images_per_person_max: int
    genuine_pairs: int
    megabytes: float
    sizes_px: tuple[tuple[int, int], ...]


class ShownRates(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest rates that a study of a folder can show; None where it shows none.

    A study shows a rate where the upper end of the interval of 95 % is not above it.

    Attributes:
        fmr_without_errors: The FMR that it shows if no stranger is accepted.
        fnmr_without_errors: The FNMR that it shows if no genuine pair is missed.
        fmr: The FMR that four of five studies show if half of it is the true rate.
        fnmr: The FNMR that four of five studies show if half of it is the true rate.
    """

    fmr_without_errors: float | None = None
    fnmr_without_errors: float | None = None
    fmr: float | None = None
    fnmr: float | None = None


class DatasetReport(Result, frozen=True, kw_only=True):
    """The result of `check_dataset`.

    Attributes:
        ok: Whether no finding is an error.
        root: The folder.
        fingerprint: The fingerprint of the index.
        counts: Counts of the folder.
        shown_rates: The smallest error rates that its photos with a face can show; None without the
            extra `measure`.
        findings: Errors first, then warnings, then notes.
        bad_images: Numbers of the images that training cannot use.
    """

    ok: bool
    root: str
    fingerprint: str
    counts: Counts
    shown_rates: ShownRates | None
    findings: tuple[Finding, ...]
    bad_images: tuple[int, ...]
