"""Check a folder of faces: its files, the faces in them, and whether they fit their folders."""

import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.bundles.scorer import BATCH_CROPS
from facepairs.data.findings import (
    SEVERITIES,
    Counts,
    DatasetReport,
    Finding,
    make_finding,
    shorten,
)
from facepairs.data.index import FaceIndex
from facepairs.data.likeness import likeness_findings
from facepairs.grouping.linkage import GroupMeans, average_linkage
from facepairs.photos.photo import read_below
from facepairs.photos.photo_record import PhotoRecord
from facepairs.photos.subject_faces import SubjectFaces
from facepairs.support.parallel import batches, thread_map, unbatched
from facepairs.verification.verifier import Verifier, subject_faces

Embedding = npt.NDArray[np.float32]
MIN_PHOTOS = 3  # in a folder: of two photos that differ, neither is the wrong one
SAME_PERSON = 0.055  # height at which two people are proposed to be one
MOST_PAIRS = 1000  # of such people
STRANGER = 0.11  # height at which the photos of a folder are grouped, see `find_mislabelled`


def check_dataset(root: Path) -> DatasetReport:
    """Check a folder of faces; every photo is read whole, hashed, decoded and searched for faces.

    Faces are compared by the default model.

    Args:
        root: A folder `Person_Name/photo.jpg`.

    Raises:
        BadData: The folder is missing, not readable, or has no images.
    """
    index = FaceIndex.scan(root)
    verifier = Verifier.load(threads=1)
    reader = replace(verifier.reader(), open=partial(read_below, index.root))
    records: list[PhotoRecord] = []
    embeddings: list[Embedding | None] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Pillow warns about is part of the records
        named = ((name, name) for name in index.names())
        read = thread_map(reader.read, batches(named, BATCH_CROPS))
        for sample in unbatched(read, "checking photos", len(index)):
            records.append(sample.to_record())
            embeddings.append(sample.embedding)
    problems = {
        image: problem
        for image, record in enumerate(records)
        if (problem := record.why_unusable(aligned=True))
    }
    faces = subject_faces(index, range(len(index)), dict(enumerate(records)))
    for image in faces.numbers:
        (embeddings[image],) = verifier.embed([faces.face_of(index, image)])
    findings = [make_finding(reason, [path]) for path, reason in index.skipped]
    for image, (kind, reason) in problems.items():
        name = index.name(image)
        findings.append(Finding("error", kind, (name,), f"{name}: {reason}."))
    findings += _duplicates(index, records, faces)
    findings += _face_findings(index, records, faces)
    findings += _likeness(index, verifier, embeddings)
    findings.sort(key=lambda one: (SEVERITIES.index(one.severity), one.kind, one.paths))
    content = np.array([record.content for record in records])
    return DatasetReport(
        ok=all(finding.severity != "error" for finding in findings),
        root=str(index.root),
        fingerprint=replace(index, content=content).fingerprint,
        counts=_count(index, records),
        findings=tuple(findings),
        bad_images=tuple(problems),
    )


def _count(index: FaceIndex, records: Sequence[PhotoRecord]) -> Counts:
    """Return a folder in figures."""
    images = index.image_counts
    sizes = Counter((record.width_px, record.height_px) for record in records if record.width_px)
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


def _duplicates(
    index: FaceIndex, records: Sequence[PhotoRecord], faces: SubjectFaces
) -> Iterator[Finding]:
    """Yield groups of images with the same bytes; links to one photo count as such."""
    by_digest: defaultdict[bytes, list[int]] = defaultdict(list)
    for image, record in enumerate(records):
        if record.width_px:
            by_digest[record.digest].append(image)
    for images in by_digest.values():
        if len(images) == 1:
            continue
        face_of = {(faces.numbers.get(i, 1), index.people[int(index.person_of[i])]) for i in images}
        people = sorted({person for _, person in face_of})
        if len(people) == 1:
            kind = "duplicate"
        elif len({face for face, _ in face_of}) == len(face_of):
            kind = "shared_photo"  # of several people, in the folder of each
        else:
            kind = "same_face_two_people"
        yield make_finding(kind, map(index.name, images), people=shorten(people))


def _face_findings(
    index: FaceIndex, records: Sequence[PhotoRecord], faces: SubjectFaces
) -> Iterator[Finding]:
    """Yield which face is used of photos that show several."""
    told = {*faces.numbers, *faces.unclear}
    several = [
        image
        for image, record in enumerate(records)
        if image not in told and len(record.faces or ()) > 1 and record.usable
    ]
    found = {
        "several_faces": several,
        "other_face": sorted(faces.numbers),
        "unclear_face": faces.unclear,
    }
    for kind, images in found.items():
        if images:
            yield make_finding(kind, map(index.name, images))


def _likeness(
    index: FaceIndex, verifier: Verifier, found: Sequence[Embedding | None]
) -> list[Finding]:
    """Return the findings from the embeddings of the photos."""
    missing = np.full(verifier.scorer.width, np.nan, np.float32)
    embeddings = np.stack([missing if row is None else row for row in found])
    same = find_same_people(index, embeddings, verifier.model.profile.cohort)
    return list(likeness_findings(index, embeddings, find_mislabelled(index, embeddings), same))


def find_same_people(
    index: FaceIndex, embeddings: Embedding, cohort: Embedding | None
) -> Iterator[tuple[int, int]]:
    """Yield pairs of people who may be one, by their numbers, the most alike first.

    Measured on LFW with the included model: of its 16.5 million pairs of people 23 are proposed; 21
    are one person under two names, or show one person under a wrong name, or look it. Of people
    whose photos were dealt to two folders, 65 % are found, and 83 % of those with three or more
    photos in each. See `scripts/studies/same_people.py`.

    Args:
        index: The photos.
        embeddings: float32[N, D], rows of length 1, or of NaN for photos that cannot be used.
        cohort: The model's, see `grouping.linkage`.
    """
    usable = np.isfinite(embeddings[:, 0])
    people, number = np.unique(index.person_of[usable], return_inverse=True)
    if not len(people):
        return
    means = GroupMeans.of(embeddings[usable], number, cohort)
    for _, one, other in means.nearest(SAME_PERSON, MOST_PAIRS):
        yield int(people[one]), int(people[other])


def find_mislabelled(index: FaceIndex, embeddings: Embedding) -> Iterator[int]:
    """Yield the photos that probably show another person than the rest of their folder.

    The photos of a folder are grouped. Where at least half of them make one group, the others are
    found. With 3 % of the photos exchanged for other people's, 96 % of those are found among View
    1's training people, and 95 % of what is found are such; among its test people 95 % and 95 %.

    Args:
        index: The photos.
        embeddings: float32[N, D], rows of length 1, or of NaN for photos that cannot be used.
    """
    is_usable = np.isfinite(embeddings[:, 0])
    for person in range(len(index.people)):
        images = np.array(index.images_of(person))
        images = images[is_usable[images]]
        if len(images) < MIN_PHOTOS:
            continue
        group = average_linkage(embeddings[images], STRANGER).labels(STRANGER)
        size = np.bincount(group)
        if 2 * size.max() >= len(images):
            yield from images[group != size.argmax()].tolist()
