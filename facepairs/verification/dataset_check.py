"""Check a folder of faces: its files, the faces in them, and whether they fit their folders."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.data.findings import MAX_TURN_DEG, SEVERITIES, DatasetReport, Finding, make_finding
from facepairs.data.index import FaceIndex
from facepairs.data.likeness import likeness_findings
from facepairs.data.survey import PhotoFacts, count_photos, file_findings
from facepairs.errors import BadBundle
from facepairs.faces.face_problem import face_problem
from facepairs.faces.hints import PROFILE_YAW
from facepairs.faces.inspection import InspectPhotos
from facepairs.faces.photo_cache import photo_cache
from facepairs.faces.photo_record import PhotoRecord
from facepairs.images.photo import read_below
from facepairs.support import console
from facepairs.support.parallel import batches, thread_map
from facepairs.verification.scorer import BATCH_CROPS
from facepairs.verification.verifier import Verifier

Embedding = npt.NDArray[np.float32]


def check_dataset(root: Path, labels: bool = True) -> DatasetReport:
    """Check a folder of faces; every photo is read whole, hashed, decoded and searched for faces.

    Args:
        root: A folder `Person_Name/photo.jpg`.
        labels: Compare faces by the default model.

    Raises:
        BadData: The folder is missing, not readable, or has no images.
    """
    index = FaceIndex.scan(root)
    verifier, unchecked = _default_verifier() if labels else (None, "")
    progress = console.progress("checking photos")
    facts: list[PhotoFacts] = []
    embeddings: list[Embedding | None] = []
    content = np.zeros(len(index), np.int64)
    examine = _ExaminePhotos(index.root, verifier)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Pillow warns about is part of the records
        for records, found in thread_map(examine, batches(index.names(), BATCH_CROPS)):
            for record in records:
                content[len(facts)] = record.content
                facts.append(_facts_of(record))
            embeddings += found
            progress(len(facts), len(index))
    findings = list(file_findings(index, facts))
    if unchecked:
        findings.append(make_finding("labels_unchecked", [], reason=unchecked))
    if verifier:
        findings += _likeness(index, verifier, embeddings)
    findings.sort(key=lambda one: (SEVERITIES.index(one.severity), one.kind, one.paths))
    return DatasetReport(
        str(index.root),
        replace(index, content=content).fingerprint,
        count_photos(index, facts),
        tuple(findings),
        tuple(image for image, fact in enumerate(facts) if fact.problem),
    )


def _default_verifier() -> tuple[Verifier | None, str]:
    """Return the default model, or None and why it cannot compare faces."""
    try:
        verifier = Verifier.load(threads=1)
    except BadBundle:
        return None, "there is no default model"
    model = verifier.bundle
    if model.kind != "embedding" or not model.aligned or model.calibration is None:
        return None, "the default model does not align faces"
    return verifier, ""


@dataclass(frozen=True)
class _ExaminePhotos:
    """Reads each photo once: finds its faces, and embeds the most prominent one.

    Attributes:
        root: The folder that names count from.
        verifier: What embeds them; None for no embeddings.
    """

    root: Path
    verifier: Verifier | None

    def __call__(self, names: list[str]) -> tuple[list[PhotoRecord], list[Embedding | None]]:
        """Return the record of each photo, and its embedding, None without a face to use."""
        read = partial(read_below, self.root)
        if self.verifier is None:
            return InspectPhotos(True, photo_cache(), read)(names), [None] * len(names)
        reader = replace(self.verifier.reader(), open=read)
        seen = reader.read([(name, name) for name in names])
        return [one.to_record() for one in seen], [one.embedding for one in seen]


def _facts_of(record: PhotoRecord) -> PhotoFacts:
    problem, reason = record.problem, record.reason
    if not problem:
        problem, reason = face_problem(record.found) or ("", "")
    face = record.face
    return PhotoFacts(
        problem=problem,
        reason=reason,
        size_px=(record.width_px, record.height_px),
        digest=record.digest,
        faces=len(record.found) if face else 0,
        # A nose tip beside the eyes' middle by PROFILE_YAW: about MAX_TURN_DEG to the side.
        turned=face is not None
        and (abs(face.roll_deg) > MAX_TURN_DEG or abs(face.yaw) > PROFILE_YAW),
    )


def _likeness(
    index: FaceIndex, verifier: Verifier, found: Sequence[Embedding | None]
) -> list[Finding]:
    """Return what the embeddings of the photos say."""
    calibration = verifier.bundle.calibration
    assert calibration is not None
    missing = np.full(verifier.scorer.width, np.nan, np.float32)
    embeddings = np.stack([missing if row is None else row for row in found])
    return list(likeness_findings(index, embeddings, calibration.scale, calibration.offset))
