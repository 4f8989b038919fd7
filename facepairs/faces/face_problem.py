"""Why the faces of a photo cannot be used: one rule for training, evaluation and verification."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from facepairs.faces.detector import MIN_FACE_PX, Face


class FaceProblem(NamedTuple):
    """A kind of problem, and the problem in words."""

    problem: Literal["no_face", "small_face"]
    reason: str


def large_enough(faces: Sequence[Face]) -> list[Face]:
    """Return the faces of MIN_FACE_PX or more, in their order."""
    return [face for face in faces if face.side_px >= MIN_FACE_PX]


def face_problem(faces: Sequence[Face]) -> FaceProblem | None:
    """Return why none of the faces of a photo, the most prominent first, can be used.

    None if one can.
    """
    if not faces:
        return FaceProblem("no_face", "no face found; use a photo that shows the face clearly")
    if large_enough(faces):
        return None
    side_px = faces[0].side_px
    return FaceProblem(
        "small_face",
        f"its face measures {side_px:.0f} pixels from the brows to the chin, too few for a "
        f"verdict; use a photo that shows it with {MIN_FACE_PX} or more",
    )
