"""Check a folder of faces: its files, the faces in them, and whether they fit their folders."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.choices import Align
from facepairs.data.index import FaceIndex, ReadFile
from facepairs.doctor.files import PhotoSurvey
from facepairs.doctor.findings import SEVERITIES, DatasetReport, Finding, make_finding
from facepairs.doctor.labels import find_mislabelled
from facepairs.errors import BadBundle
from facepairs.faces.inspection import photo_records
from facepairs.support.parallel import OrderedMap, thread_map
from facepairs.support.progress import ProgressFactory, ignore_phases
from facepairs.verification.verifier import Verifier


def check_dataset(
    root: Path,
    align: Align = "landmarks",
    labels: bool = True,
    progress: ProgressFactory = ignore_phases,
    ordered_map: OrderedMap = thread_map,
) -> DatasetReport:
    """Check a folder of faces; every photo is read whole, hashed, decoded and searched for faces.

    Args:
        root: A folder `Person_Name/photo.jpg`.
        align: With `none`, photos are taken as they are: no face is looked for or compared.
        labels: Compare the faces of each folder by the default model.
        progress: Called with the name of each phase; counts photos.
        ordered_map: Runs the work.

    Raises:
        BadData: The folder is missing, not readable, or has no images.
    """
    return check_index(FaceIndex.scan(root), align, labels, progress, ordered_map)


def check_index(
    index: FaceIndex,
    align: Align = "landmarks",
    labels: bool = True,
    progress: ProgressFactory = ignore_phases,
    ordered_map: OrderedMap = thread_map,
    read_file: ReadFile | None = None,
) -> DatasetReport:
    """Check the photos of an index as `check_dataset` does.

    Args:
        index: The index of the photos.
        align, labels, progress, ordered_map: As for `check_dataset`.
        read_file: Reads a photo by its name; by default from the file below the index's root.
    """
    photos = PhotoSurvey(index)
    aligned = align == "landmarks"
    display = progress("finding faces" if aligned else "checking images")
    records = photo_records(index, align, display, ordered_map, read_file)
    for image, record in enumerate(records):
        photos.add(image, record, aligned)
    findings = list(photos.findings(sizes=not aligned))
    if aligned and labels:
        usable = np.ones(len(index), np.bool_)
        usable[photos.bad_images] = False
        findings += _label_findings(index, usable, progress, ordered_map, read_file)
    findings.sort(key=lambda one: (SEVERITIES.index(one.severity), one.kind, one.paths))
    return DatasetReport(
        str(index.root),
        index.fingerprint,
        align,
        photos.counts(),
        tuple(findings),
        tuple(photos.bad_images),
    )


def _label_findings(
    index: FaceIndex,
    usable: npt.NDArray[np.bool_],
    progress: ProgressFactory,
    ordered_map: OrderedMap,
    read_file: ReadFile | None,
) -> Iterator[Finding]:
    """Yield a finding for each photo that is probably in the wrong folder."""
    try:
        verifier = Verifier.load(threads=1)
    except BadBundle:
        yield make_finding("labels_unchecked", [], reason="there is no default model")
        return
    if not verifier.bundle.aligned or verifier.bundle.calibration is None:
        reason = "the default model does not align faces"
        yield make_finding("labels_unchecked", [], reason=reason)
        return
    display = progress("comparing faces")
    for image in find_mislabelled(verifier, index, usable, display, ordered_map, read_file):
        yield make_finding("mislabelled", [index.name(int(image))])
