"""What is wrong with the faces in photos: several, very small or strongly turned ones."""

from collections.abc import Iterator

from facepairs.data.index import FaceIndex
from facepairs.doctor.findings import MAX_TURN_DEG, Finding, make_finding
from facepairs.faces.face_problem import MIN_FACE_PX
from facepairs.faces.hints import PROFILE_YAW
from facepairs.faces.photo_record import PhotoRecord


class FaceSurvey:
    """Collects the faces of an index's photos and turns them into findings.

    Attributes:
        small: Numbers of the images whose face is too small for a verdict.
    """

    def __init__(self, index: FaceIndex) -> None:
        self._index = index
        self._images: dict[str, list[int]] = {
            "several_faces": [],
            "small_face": [],
            "turned_face": [],
        }
        self.small = self._images["small_face"]

    def add(self, image: int, record: PhotoRecord) -> None:
        """Add the record of an image; one without a face is a finding of its file."""
        face = record.face
        if face is None:
            return
        if len(record.faces or ()) > 1:
            self._images["several_faces"].append(image)
        if face.side_px < MIN_FACE_PX:
            self._images["small_face"].append(image)
        # A nose tip beside the eyes' middle by PROFILE_YAW: about MAX_TURN_DEG to the side.
        if abs(face.roll_deg) > MAX_TURN_DEG or abs(face.yaw) > PROFILE_YAW:
            self._images["turned_face"].append(image)

    def findings(self) -> Iterator[Finding]:
        """Yield one finding for all photos of a kind."""
        for kind, images in self._images.items():
            if images:
                yield make_finding(kind, map(self._index.name, images))
