"""Photos whose faces dlib's `*_with_face_landmarks.xml` annotate with 68 landmarks."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from facepairs.errors import BadImage
from facepairs.evaluation.metrics.intervals import clopper_pearson
from facepairs.photos.frame import TEMPLATE, fit_similarity
from facepairs.verification.verifier import Verifier

SAME_FACE = 0.25  # landmark error, in eye distances, up to which a face is the annotated one

Points = npt.NDArray[np.float64]


def annotated(folder: Path) -> dict[str, list[Points]]:
    """Return the five landmarks of each annotated face, by the name of the photo."""
    photos: dict[str, list[Points]] = {}
    for path in sorted(folder.glob("*_with_face_landmarks.xml")):
        for image in ElementTree.parse(path).iter("image"):
            faces = photos.setdefault(str(image.get("file")), [])
            for box in image.iter("box"):
                points = np.array(
                    [(int(p.get("x", 0)), int(p.get("y", 0))) for p in box.iter("part")]
                )
                eyes = points[36:42].mean(axis=0), points[42:48].mean(axis=0)
                faces.append(np.stack([*eyes, points[30], points[48], points[54]]))
    return photos


def annotated_figures(verifier: Verifier, folder: Path) -> dict[str, Any]:
    """Look for all faces of annotated photos, and of the photos beside them."""
    truth = annotated(folder)
    photos: dict[str, dict[str, int]] = {}
    errors: list[Points] = []
    for path in sorted(folder.glob("*.jpg")):
        try:
            found = [one.face for one in verifier.detect(path) if one.face]
        except BadImage:
            found = []
        marks = np.array([face.landmarks for face in found]).reshape(-1, 5, 2)
        matched: set[int] = set()
        for points in truth.get(path.name, []):
            # The template's eye distance at the size of the face: profiles have a smaller one.
            unit = (TEMPLATE[1, 0] - TEMPLATE[0, 0]) / fit_similarity(points).scale
            distance = np.linalg.norm(marks - points, axis=2) / unit
            nearest = int(distance.mean(axis=1).argmin()) if len(marks) else -1
            if len(marks) and distance[nearest].mean() <= SAME_FACE and nearest not in matched:
                matched.add(nearest)
                errors.append(distance[nearest])
        photos[path.name] = {
            "annotated": len(truth.get(path.name, [])),
            "found": len(matched),
            "other_faces": len(found) - len(matched),
        }
    table = np.array(errors).reshape(-1, 5)
    parts = ("left eye", "right eye", "nose", "left mouth corner", "right mouth corner")
    faces = sum(map(len, truth.values()))
    return {
        "photos": photos,
        "faces": faces,
        "found": len(errors),
        "interval": clopper_pearson(len(errors), faces),
        "median_error": {
            name: float(np.median(column)) for name, column in zip(parts, table.T, strict=True)
        },
        "median_mean_error": float(np.median(table.mean(axis=1))),
        "p95_mean_error": float(np.quantile(table.mean(axis=1), 0.95)),
    }
