"""Which faces are clear enough to be grouped.

Errors of grouping are measured on the main faces of press photos. Small, blurred, turned and
cut-off faces in the background resemble each other, even those of different people. The share of
pairs of strangers that are nearer than .062 with the included model: main faces of LFW .0001; main
faces that are blurred to a sharpness below .52, .003, and to .53, .0007; shrunk to 30 to 40 pixels
and not blurred, .0002; background faces .003, and those of them that are clear by these limits
.0007, some of which show one person; an unclear face and a clear main face, .0001. The limits were
chosen on photos of View 1's training people, see `scripts/studies/bystanders.py`.
"""

from pathlib import Path

from facepairs.photos.face_sample import FaceSample
from facepairs.photos.frame import Face
from facepairs.photos.photo_record import PhotoRecord
from facepairs.photos.reader import PhotoReader

CLEAR_PX = 48  # from the brows to the chin
CLEAR_YAW = 0.4  # the nose's offset from the middle of the eyes, in eye distances
CLEAR_SCORE = 0.88  # of the detector
CLEAR_SHARPNESS = 0.54
OUTSIDE = 0.25  # of the face's side


def doubts(reader: PhotoReader, root: Path, faces: list[FaceSample]) -> list[str]:
    """Return why faces are too unclear to be grouped, "" for clear ones and photos without one.

    Args:
        reader: Measures the sharpness of faces that may be blurred.
        root: The folder that the photos' names count from.
        faces: Faces of photos.
    """
    found = [_doubt(face.face, face.record) if face.face and face.record else "" for face in faces]
    places = [
        place
        for place, one in enumerate(faces)
        if one.face and not found[place] and _may_be_blurred(one)
    ]
    measured = reader.sharpness([(faces[place], root / faces[place].name) for place in places])
    for place, sharpness in zip(places, measured, strict=True):
        found[place] = "blurred" if sharpness < CLEAR_SHARPNESS else ""
    return found


def _doubt(face: Face, record: PhotoRecord) -> str:
    """Return the reasons against a face by its landmarks and score."""
    left, top, side = face.box
    beyond = max(-left, -top, left + side - record.width_px, top + side - record.height_px)
    if side < CLEAR_PX:
        return "small"
    if abs(face.yaw) > CLEAR_YAW:
        return "turned"
    if beyond > OUTSIDE * side:
        return "cut off"
    return "hard to make out" if face.score < CLEAR_SCORE else ""


def _may_be_blurred(face: FaceSample) -> bool:
    """Return whether a face's sharpness must be looked at: hints exist of the first one alone."""
    kinds = {hint.kind for hint in face.hints}
    return face.number > 1 or bool(kinds & {"small", "blurred"})
