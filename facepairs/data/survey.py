"""What the files of a folder say: photos that cannot be used, and copies."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from facepairs.data.findings import Counts, Finding, make_finding, shorten
from facepairs.data.index import FaceIndex


class PhotoFacts(NamedTuple):
    """What is known of one photo.

    Attributes:
        problem: Why it cannot be used, in a word; "" if it can.
        reason: The problem in words.
        size_px: Width and height of the upright photo, (0, 0) if it cannot be read.
        digest: SHA-256 of the file, b"" if it cannot be read.
        faces: How many faces it shows, if one of them can be used.
    """

    problem: str
    reason: str
    size_px: tuple[int, int]
    digest: bytes
    faces: int = 0


def file_findings(index: FaceIndex, photos: Sequence[PhotoFacts]) -> Iterator[Finding]:
    """Yield what is wrong with the photos of an index.

    Args:
        index: The photos.
        photos: What is known of each.
    """
    for path, reason in index.skipped:
        yield make_finding(reason, [path])
    for name, photo in zip(index.names(), photos, strict=True):
        if photo.problem:
            yield Finding("error", photo.problem, (name,), f"{name}: {photo.reason}.")
    yield from _duplicates(index, photos)
    several = [at for at, photo in enumerate(photos) if photo.faces > 1]
    if several:
        yield make_finding("several_faces", map(index.name, several))


def count_photos(index: FaceIndex, photos: Sequence[PhotoFacts]) -> Counts:
    """Return a folder in figures; arguments as for `file_findings`."""
    images = index.image_counts
    sizes = Counter(photo.size_px for photo in photos if any(photo.size_px))
    by_area = sorted(sizes, key=lambda size: (size[0] * size[1], size))
    return Counts(
        people=len(index.people),
        images=len(index),
        people_with_one_image=int((images == 1).sum()),
        images_per_person_min=int(images.min()),
        images_per_person_median=float(np.median(images)),
        images_per_person_max=int(images.max()),
        genuine_pairs=int((images * (images - 1) // 2).sum()),
        megabytes=round(int(index.sizes.sum()) / 1e6, 3),
        sizes_px=(by_area[0], sizes.most_common(1)[0][0], by_area[-1]) if sizes else (),
    )


def _duplicates(index: FaceIndex, photos: Sequence[PhotoFacts]) -> Iterator[Finding]:
    """Yield groups of images with the same bytes; links to one photo count as such."""
    by_digest: defaultdict[bytes, list[int]] = defaultdict(list)
    for image, photo in enumerate(photos):
        if any(photo.size_px):
            by_digest[photo.digest].append(image)
    for images in by_digest.values():
        if len(images) > 1:
            people = sorted({index.people[int(index.person_of[i])] for i in images})
            kind = "duplicate" if len(people) == 1 else "same_photo_two_people"
            yield make_finding(kind, map(index.name, images), people=shorten(people))
