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
    list_first,
    make_finding,
)
from facepairs.data.index import FaceIndex
from facepairs.evaluation.likeness import likeness_findings
from facepairs.evaluation.planning import shown_rates
from facepairs.photos.photo import read_below
from facepairs.photos.photo_record import PhotoRecord
from facepairs.photos.subject_faces import SubjectFaces
from facepairs.support.extras import has_extra
from facepairs.support.parallel import batches, thread_map, unbatched
from facepairs.verification.verifier import Verifier, subject_faces

Embedding = npt.NDArray[np.float32]


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
    missing = np.full(verifier.scorer.width, np.nan, np.float32)
    rows = np.stack([missing if row is None else row for row in embeddings])
    findings += likeness_findings(index, rows, verifier.model.profile.cohort)
    findings.sort(key=lambda one: (SEVERITIES.index(one.severity), one.kind, one.paths))
    photos = np.bincount(np.delete(index.person_of, [*problems]), minlength=1)
    content = np.array([record.content for record in records])
    return DatasetReport(
        ok=all(finding.severity != "error" for finding in findings),
        root=str(index.root),
        fingerprint=replace(index, content=content).fingerprint,
        counts=_count(index, records),
        shown_rates=shown_rates(photos) if has_extra("measure") else None,
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
        yield make_finding(kind, map(index.name, images), people=list_first(people))


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
