"""What is unusual about the faces in photos: several, or strongly turned ones."""

from collections.abc import Iterator

from facepairs.data.index import FaceIndex
from facepairs.doctor.findings import MAX_TURN_DEG, Finding, make_finding
from facepairs.faces.hints import PROFILE_YAW
from facepairs.faces.photo_record import PhotoRecord


class FaceSurvey:
    """Collects the faces of an index's photos and turns them into findings."""

    def __init__(self, index: FaceIndex) -> None:
        self._index = index
        self._several: list[int] = []
        self._turned: list[int] = []

    def add(self, image: int, record: PhotoRecord) -> None:
        """Add the record of an image; one without a face is a finding of its file."""
        face = record.face
        if face is None:
            return
        if len(record.faces or ()) > 1:
            self._several.append(image)
        # A nose tip beside the eyes' middle by PROFILE_YAW: about MAX_TURN_DEG to the side.
        if abs(face.roll_deg) > MAX_TURN_DEG or abs(face.yaw) > PROFILE_YAW:
            self._turned.append(image)

    def findings(self) -> Iterator[Finding]:
        """Yield one finding for all photos of a kind."""
        for kind, images in (("several_faces", self._several), ("turned_face", self._turned)):
            if images:
                yield make_finding(kind, map(self._index.name, images))
