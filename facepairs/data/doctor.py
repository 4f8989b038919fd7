"""The dataset doctor: decodes every photo of a folder and says what would mislead a training."""

import stat
import unicodedata
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from facepairs.data.index import OTHER_IMAGES, READABLE, FaceIndex, Skipped
from facepairs.images.check import ImageCheck, InspectFiles
from facepairs.support.parallel import OrderedMap, batches, thread_map
from facepairs.support.platform import return_freed_memory

SCHEMA = 1
MIN_SIDE_PX = 64
MAJORITY = 0.5  # one size in more than this share of the images makes the others odd
BATCH = 64  # images a task: a task for each image costs more than decoding it
COMMON_SIZES = 10

Progress = Callable[[int, int], None]
InspectNames = Callable[[list[str]], list[ImageCheck]]  # of images below the root
Severity = Literal["error", "warning", "note"]


class Finding(NamedTuple):
    """One thing found: `error` (training would refuse or be misled), `warning` or `note`.

    `paths` are below the root, with `/`; `text` is a sentence that says what to do.
    """

    severity: Severity
    kind: str
    paths: tuple[str, ...]
    text: str


class SizeCount(NamedTuple):
    """How many images have one size in pixels."""

    width_px: int
    height_px: int
    images: int


@dataclass(frozen=True)
class Counts:
    """The folder in figures; one photo a person, and names in any script, are normal."""

    people: int
    images: int
    people_with_one_image: int
    images_per_person_min: int
    images_per_person_median: float
    images_per_person_max: int
    genuine_pairs: int  # all that are possible
    megabytes: float  # 10^6 bytes
    sizes: tuple[SizeCount, ...]  # the most common first, at most COMMON_SIZES


@dataclass(frozen=True)
class DatasetReport:
    """What `check_dataset` found; `bad_images` are the image numbers that training cannot read."""

    root: str
    fingerprint: str
    counts: Counts
    findings: tuple[Finding, ...]
    bad_images: tuple[int, ...]

    @property
    def ok(self) -> bool:
        """Whether there is no finding of severity `error`."""
        return all(finding.severity != "error" for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Give a plain dict for `json.dumps`."""
        counts = asdict(self.counts)
        counts["sizes"] = [size._asdict() for size in self.counts.sizes]
        return {
            "schema": SCHEMA,
            "root": self.root,
            "ok": self.ok,
            "fingerprint": self.fingerprint,
            "counts": counts,
            "findings": [{**f._asdict(), "paths": list(f.paths)} for f in self.findings],
            "bad_images": list(self.bad_images),
        }


def check_dataset(
    root: Path, progress: Progress | None = None, ordered_map: OrderedMap = thread_map
) -> DatasetReport:
    """Examine a folder of faces: every image is read whole, hashed and decoded.

    `progress(done, total)` counts images; `ordered_map` does the work (default: in threads).
    Raises BadData when the folder is missing, not readable, or holds no image at all.
    """
    return check_index(FaceIndex.scan(root), progress, ordered_map)


def check_index(
    index: FaceIndex,
    progress: Progress | None = None,
    ordered_map: OrderedMap = thread_map,
    inspect: InspectNames | None = None,
) -> DatasetReport:
    """Examine the images of an index as `check_dataset` does.

    `inspect` reads a list of images by name, thoroughly; by default the files below `index.root`.
    """
    looks = _Looks(index)
    _look_at_all(index, inspect or InspectFiles(index.root, True), looks.add, progress, ordered_map)
    findings = [
        *(_left_out(index.root, skipped) for skipped in index.skipped),
        *looks.problems,
        *looks.duplicates(),
        *looks.groups(),
        *_same_names(index),
    ]
    order: tuple[Severity, ...] = ("error", "warning", "note")
    findings.sort(key=lambda finding: (order.index(finding.severity), finding.kind, finding.paths))
    return DatasetReport(
        str(index.root), index.fingerprint, _counts(index, looks), tuple(findings), tuple(looks.bad)
    )


def unreadable_images(
    index: FaceIndex,
    progress: Progress | None = None,
    ordered_map: OrderedMap = thread_map,
    inspect: InspectNames | None = None,
) -> list[tuple[int, str]]:
    """Decode every image, and give the number of each that cannot be read, with the reason.

    `progress`, `ordered_map` and `inspect` as for `check_index`. Never raises for a file.
    """
    bad: list[tuple[int, str]] = []

    def note(image: int, look: ImageCheck) -> None:
        if look.problem:
            bad.append((image, look.reason))

    _look_at_all(index, inspect or InspectFiles(index.root, False), note, progress, ordered_map)
    return bad


def _look_at_all(
    index: FaceIndex,
    look: InspectNames,
    take: Callable[[int, ImageCheck], None],
    progress: Progress | None,
    ordered_map: OrderedMap,
) -> None:
    """Look at every image (Pillow decodes without the GIL) and take what was seen in order."""
    done = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's; what they say is a finding here
        for found in ordered_map(look, batches(index.names(), BATCH)):
            for one in found:
                take(done, one)
                done += 1
            if progress:
                progress(done, len(index))
    return_freed_memory()  # a training follows


class _Looks:
    """What was seen so far, in the order of the index."""

    def __init__(self, index: FaceIndex) -> None:
        self.index = index
        self.bad: list[int] = []
        self.problems: list[Finding] = []
        self.sizes: Counter[tuple[int, int]] = Counter()
        self._by_size: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        self._by_content: dict[bytes, int] = {}
        self._same_content: defaultdict[int, list[int]] = defaultdict(list)
        self._turned: list[int] = []

    def add(self, image: int, look: ImageCheck) -> None:
        if look.problem:
            name = self.index.name(image)
            self.bad.append(image)
            self.problems.append(Finding("error", look.problem, (name,), f"{name} {look.reason}."))
            return
        size = look.width_px, look.height_px
        self.sizes[size] += 1
        self._by_size[size].append(image)
        first = self._by_content.setdefault(look.digest, image)
        if first != image:
            self._same_content[first].append(image)
        if look.orientation != 1:
            self._turned.append(image)

    def duplicates(self) -> Iterator[Finding]:
        """The same bytes twice; symbolic and hard links to one photo count as the same bytes."""
        for first, others in self._same_content.items():
            images = [first, *others]
            people = {int(self.index.person_of[image]) for image in images}
            names = tuple(self.index.name(image) for image in images)
            if len(people) > 1:
                who = _listed(self.index.people[person] for person in sorted(people))
                yield Finding(
                    "error",
                    "same_photo_two_people",
                    names,
                    f"The same photo stands under {len(people)} names ({who}): pairs of them "
                    f"would be called impostors; keep it under the right name only.",
                )
            else:
                yield Finding(
                    "warning",
                    "duplicate",
                    names,
                    f"{len(names)} files of {self.index.people[people.pop()]} are the same photo: "
                    f"a genuine pair of them teaches and proves nothing; keep one.",
                )

    def groups(self) -> Iterator[Finding]:
        """Findings that concern many images alike are told once."""
        tiny = [
            i for size, images in self._by_size.items() if min(size) < MIN_SIDE_PX for i in images
        ]
        if tiny:
            yield self._group(
                "warning",
                "tiny",
                tiny,
                f"a short side below {MIN_SIDE_PX} px: too little to tell people apart by",
            )
        if self._turned:
            yield self._group(
                "error",
                "orientation",
                self._turned,
                "an EXIF orientation: training reads pixels as stored and would see them turned; "
                "turn the pixels themselves, as `mogrify -auto-orient` does",
            )
        (common, count), *_ = self.sizes.most_common(1) or [((0, 0), 0)]
        if count <= MAJORITY * self.sizes.total():
            return
        odd = [i for size, images in self._by_size.items() if size != common for i in images]
        if odd:
            yield self._group(
                "warning",
                "odd_size",
                odd,
                f"another size than the other {count:,} ({common[0]}x{common[1]}): "
                f"see whether their faces are framed alike",
            )

    def _group(self, severity: Severity, kind: str, images: list[int], what: str) -> Finding:
        images.sort()
        have = "image has" if len(images) == 1 else "images have"
        names = tuple(map(self.index.name, images))
        return Finding(severity, kind, names, f"{len(images):,} {have} {what} ({_listed(names)}).")


def _listed(names: Iterable[str], most: int = 3) -> str:
    every = list(names)
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def _left_out(root: Path, skipped: Skipped) -> Finding:
    """Say why something in the folder is no part of the index, and whether that matters."""
    path, reason = skipped
    suffix = Path(path).suffix.lower()
    severity: Severity = "warning"
    if reason == "symlink_loop" and not _exists(root / path):
        severity, reason = "error", "broken_link"
        text = "is a link to nothing; restore what it points to or remove it"
    elif reason == "symlink_loop":
        text = "is a link in a circle or to a folder, and not followed; put the photos there"
    elif reason == "unsupported":
        severity = "error"
        text = f"is a {suffix[1:].upper()} file, which is not used; convert it to JPEG or PNG"
    elif reason == "no_permission":
        severity, text = "error", "may not be read; give yourself read permission"
    elif reason == "nested_folder":
        text = "is a folder within a person's folder, and not used; move its photos one level up"
    elif reason == "empty_person":
        text = "is a folder without a photo that can be used; add photos or remove it"
    elif reason == "special_file" or not _is_plain(root / path):
        reason, text = "special_file", "is a pipe, socket or device, and was not opened; remove it"
    elif reason == "stray_file" and suffix in (*READABLE, *OTHER_IMAGES):
        text = "is a photo outside any person's folder, and not used; move it into one"
    else:
        severity, text = "note", "is no photo of a person, and not used"
    return Finding(severity, reason, (path,), f"{path} {text}.")


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except OSError as error:
        # A circle of links and a folder that may not be entered do exist.
        return not isinstance(error, FileNotFoundError)
    return True


def _is_plain(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return True


def _same_names(index: FaceIndex) -> Iterator[Finding]:
    """Find folders whose names differ by case or Unicode form alone: one person, most likely."""
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for who in index.people:
        alike[unicodedata.normalize("NFC", who).casefold()].append(who)
    for people in alike.values():
        if len(people) > 1:
            yield Finding(
                "warning",
                "same_name",
                tuple(people),
                f"{_listed(people)} differ by case or Unicode form alone: "
                f"put the photos into one folder if that is one person.",
            )


def _counts(index: FaceIndex, looks: _Looks) -> Counts:
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
        sizes=tuple(SizeCount(*size, n) for size, n in looks.sizes.most_common(COMMON_SIZES)),
    )
