"""Check a folder of faces: its files, the faces in them, and whether they fit their folders."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.choices import Align
from facepairs.data.index import FaceIndex
from facepairs.doctor.alike import alike_findings, mean_faces, tells_apart
from facepairs.doctor.files import PhotoSurvey
from facepairs.doctor.findings import SEVERITIES, DatasetReport, Finding, make_finding
from facepairs.doctor.labels import find_mislabelled
from facepairs.errors import BadBundle
from facepairs.faces.inspection import photo_records
from facepairs.support.progress import ProgressFactory, ignore_phases
from facepairs.verification.verifier import Verifier


def check_dataset(
    root: Path,
    align: Align = "landmarks",
    labels: bool = True,
    progress: ProgressFactory = ignore_phases,
) -> DatasetReport:
    """Check a folder of faces; every photo is read whole, hashed, decoded and searched for faces.

    Args:
        root: A folder `Person_Name/photo.jpg`.
        align: With `none`, photos are taken as they are: no face is looked for or compared.
        labels: Compare faces by the default model.
        progress: Called with the name of each phase; counts photos.

    Raises:
        BadData: The folder is missing, not readable, or has no images.
    """
    index = FaceIndex.scan(root)
    photos = PhotoSurvey(index)
    aligned = align == "landmarks"
    display = progress("finding faces" if aligned else "checking images")
    content = np.zeros(len(index), np.int64)
    for image, record in enumerate(photo_records(index, align, display)):
        photos.add(image, record, aligned)
        content[image] = record.content
    findings = list(photos.findings(sizes=not aligned))
    if aligned and labels:
        usable = np.setdiff1d(np.arange(len(index)), photos.bad_images)
        findings += _face_findings(index, usable, progress)
    findings.sort(key=lambda one: (SEVERITIES.index(one.severity), one.kind, one.paths))
    return DatasetReport(
        str(index.root),
        replace(index, content=content).fingerprint,
        align,
        photos.counts(),
        tuple(findings),
        tuple(photos.bad_images),
    )


def _face_findings(
    index: FaceIndex,
    usable: npt.NDArray[np.int64],
    progress: ProgressFactory,
) -> Iterator[Finding]:
    """Yield what the default model finds: wrong folders, copies, one person in several folders."""
    try:
        verifier = Verifier.load(threads=1)
    except BadBundle:
        yield make_finding("labels_unchecked", [], reason="there is no default model")
        return
    model = verifier.bundle
    if model.kind != "embedding" or not model.aligned or model.calibration is None:
        reason = "the default model does not align faces"
        yield make_finding("labels_unchecked", [], reason=reason)
        return
    rows = verifier.embed(
        [index.path(image) for image in usable.tolist()],
        progress=progress("comparing faces"),
        errors={},  # of photos that have changed since they were inspected
    )
    embeddings = np.full((len(index), rows.shape[1]), np.nan, np.float32)
    embeddings[usable] = rows
    means = mean_faces(index, embeddings)
    if not tells_apart(means):
        reason = "most of these people look alike to the included model, as drawings do"
        yield make_finding("labels_unchecked", [], reason=reason)
        return
    for image in find_mislabelled(index, embeddings, model.calibration):
        yield make_finding("mislabelled", [index.name(int(image))])
    yield from alike_findings(index, embeddings, means)
