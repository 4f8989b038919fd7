"""Which faces are clear enough to be grouped.

Errors of grouping are measured on the main faces of press photos. Small, blurred, turned and
cut-off faces in the background resemble each other, whoever they are. The share of pairs of
strangers that are nearer than .062 with the included model: main faces of LFW .0001; main faces
that are blurred to a sharpness below .52, .003, and to .53, .0007; shrunk to 30 to 40 pixels and
not blurred, .0002; background faces .003, and those of them that are clear by these limits .0007,
some of which show one person; an unclear face and a clear main face, .0001. The limits were chosen
on photos of View 1's training people, see `scripts/studies/bystanders.py`.
"""

import hashlib
from pathlib import Path

import numpy as np

from facepairs.photos.align import box_of
from facepairs.photos.crop import warp_photo
from facepairs.photos.detector import Face
from facepairs.photos.frame import fit_crop
from facepairs.photos.hints import HINTS_SPEC, gray_of, sharpness
from facepairs.photos.photo import open_photo
from facepairs.photos.photo_record import PhotoRecord, large_enough, record_kind
from facepairs.verification.photos import PhotoReader, SeenPhoto

CLEAR_PX = 48  # from the brows to the chin
CLEAR_YAW = 0.4  # the nose's offset from the middle of the eyes, in eye distances
CLEAR_SCORE = 0.88  # of the detector
CLEAR_SHARPNESS = 0.54
OUTSIDE = 0.25  # of the face's side
SHARPNESS = hashlib.sha256(f"sharpness {record_kind(True)}".encode()).digest()[:16]
"""The name in the cache of photos under which the sharpness of faces is kept."""


def doubts(reader: PhotoReader, root: Path, photos: list[SeenPhoto]) -> list[str]:
    """Return why faces are too unclear to be grouped, "" for clear ones and photos without one.

    Args:
        reader: Its cache keeps the sharpness of faces.
        root: The folder that the photos' names count from.
        photos: Faces of photos; their files are read again where a sharpness is not known.
    """
    found: dict[tuple[bytes, int], np.ndarray] = {}
    result = []
    for one in photos:
        faces = large_enough(one.record.found) if one.record and one.error is None else []
        if one.record is None or one.face > len(faces):
            result.append("")
            continue
        face = faces[one.face - 1]
        doubt = _doubt(face, one.record)
        if not doubt and _may_be_blurred(one):
            key = (one.digest, one.face)
            known = reader.cache.embedding(SHARPNESS, *key) if reader.cache else None
            if known is None:
                known = found[key] = np.array([_sharpness(root / one.name, face)], np.float32)
            doubt = "blurred" if known[0] < CLEAR_SHARPNESS else ""
        result.append(doubt)
    if reader.cache and reader.keep and found:
        reader.cache.put([], SHARPNESS, found)
    return result


def _doubt(face: Face, record: PhotoRecord) -> str:
    """Return what its landmarks and its score say against a face."""
    left, top, side = box_of(face)
    beyond = max(-left, -top, left + side - record.width_px, top + side - record.height_px)
    if side < CLEAR_PX:
        return "small"
    if abs(face.yaw) > CLEAR_YAW:
        return "turned"
    if beyond > OUTSIDE * side:
        return "cut off"
    return "hard to make out" if face.score < CLEAR_SCORE else ""


def _may_be_blurred(seen: SeenPhoto) -> bool:
    """Return whether a face's sharpness must be looked at: hints exist of the first one alone."""
    kinds = {hint.kind for hint in seen.record.hints} if seen.record else set()
    return seen.face > 1 or bool(kinds & {"small", "blurred"})


def _sharpness(path: Path, face: Face) -> float:
    to_square = fit_crop(face.landmarks, HINTS_SPEC)
    return sharpness(gray_of(warp_photo(open_photo(path), to_square, HINTS_SPEC.crop_px)))
