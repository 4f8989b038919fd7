"""Why the faces of a photo cannot be used: one rule for training, evaluation and verification."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from facepairs.faces.detector import Face

MIN_FACE_PX = 24  # from the brows to the chin; smaller faces give no verdict


class FaceProblem(NamedTuple):
    """A kind of problem, and the problem in words."""

    problem: Literal["no_face", "small_face"]
    reason: str


def face_problem(faces: Sequence[Face]) -> FaceProblem | None:
    """Return why the most prominent face, the first one, cannot be used; None if it can."""
    if not faces:
        return FaceProblem("no_face", "no face found; use a photo in which the face is seen well")
    side_px = faces[0].side_px
    if side_px >= MIN_FACE_PX:
        return None
    return FaceProblem(
        "small_face",
        f"its face measures {side_px:.0f} pixels from the brows to the chin, too few for a "
        f"verdict; use a photo that shows it with {MIN_FACE_PX} or more",
    )
