"""Check a folder of faces: its files, the faces in them, and whether they fit their folders."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.data.findings import SEVERITIES, DatasetReport, Finding, make_finding
from facepairs.data.index import FaceIndex
from facepairs.data.likeness import likeness_findings
from facepairs.data.survey import PhotoFacts, count_photos, file_findings
from facepairs.faces.photo_record import PhotoRecord, face_problem
from facepairs.images.photo import read_below
from facepairs.support import console
from facepairs.support.parallel import batches, thread_map
from facepairs.verification.fitting_faces import FittingFaces, fitting_faces
from facepairs.verification.linkage import average_linkage
from facepairs.verification.scorer import BATCH_CROPS
from facepairs.verification.verifier import Verifier

Embedding = npt.NDArray[np.float32]
MIN_PHOTOS = 3  # in a folder: of two photos that differ, neither is the wrong one
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
    progress = console.progress("checking photos")
    facts: list[PhotoFacts] = []
    embeddings: list[Embedding | None] = []
    content = np.zeros(len(index), np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Pillow warns about is part of the records
        named = ((name, name) for name in index.names())
        for seen in thread_map(reader.read, batches(named, BATCH_CROPS)):
            for one in seen:
                record = one.to_record()
                content[len(facts)] = record.content
                facts.append(_facts_of(record))
                embeddings.append(one.embedding)
            progress(len(facts), len(index))
    faces = fitting_faces(index, np.array([fact.faces for fact in facts]))
    for image in faces.chosen:
        (embeddings[image],) = verifier.embed([faces.source(index, image)])
    for image in (*faces.chosen, *faces.unclear):
        facts[image] = facts[image]._replace(faces=1)  # is said of it below
    findings = [
        *file_findings(index, facts),
        *_face_findings(index, faces),
        *_likeness(index, verifier, embeddings),
    ]
    findings.sort(key=lambda one: (SEVERITIES.index(one.severity), one.kind, one.paths))
    return DatasetReport(
        str(index.root),
        replace(index, content=content).fingerprint,
        count_photos(index, facts),
        tuple(findings),
        tuple(image for image, fact in enumerate(facts) if fact.problem),
    )


def _facts_of(record: PhotoRecord) -> PhotoFacts:
    problem, reason = record.problem, record.reason
    if not problem:
        problem, reason = face_problem(record.found) or ("", "")
    return PhotoFacts(
        problem=problem,
        reason=reason,
        size_px=(record.width_px, record.height_px),
        digest=record.digest,
        faces=len(record.found) if record.face else 0,
    )


def _face_findings(index: FaceIndex, faces: FittingFaces) -> Iterator[Finding]:
    """Yield what was chosen in photos with several faces."""
    for kind, images in (("other_face", sorted(faces.chosen)), ("unclear_face", faces.unclear)):
        if images:
            yield make_finding(kind, map(index.name, images))


def _likeness(
    index: FaceIndex, verifier: Verifier, found: Sequence[Embedding | None]
) -> list[Finding]:
    """Return what the embeddings of the photos say."""
    missing = np.full(verifier.scorer.width, np.nan, np.float32)
    embeddings = np.stack([missing if row is None else row for row in found])
    return list(likeness_findings(index, embeddings, find_mislabelled(index, embeddings)))


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
