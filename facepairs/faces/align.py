"""Find the faces of a photo and cut out the aligned crops that a network knows.

Training, evaluation and verification share these steps: the photo is turned upright, its faces and
their landmarks are found, and the crop is cut where the canonical frame of `alignment` lies. A
model of alignment `lfw-frame` takes the centre square of the whole image instead, of any image.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from facepairs.errors import BadImage, NoFace, TooSmallFace
from facepairs.faces.alignment import fit_crop
from facepairs.faces.detector import Face, search_photo
from facepairs.faces.face_problem import face_problem, large_enough
from facepairs.faces.hints import CUT_OFF, UNALIGNED, Hint, photo_hints
from facepairs.images.crop import Crop, CropSpec, crop_photo, warp_photo
from facepairs.images.jpeg import lacks_end
from facepairs.images.photo import ImageSource, Photo, open_photo
from facepairs.images.warp import Similarity

HINTS_SPEC = CropSpec(frame_px=250, crop_px=128)  # what the limits of hints were measured on
LEVEL_DEG = 5.0  # a smaller roll is not worth a word


class FaceCells(NamedTuple):
    """A face in a row of CSV: box "left top side", number of faces, and kinds of hints."""

    box: str = ""
    faces: str = ""
    hints: str = ""


@dataclass(frozen=True, eq=False)
class AlignedFace:
    """One face as the network sees it, and where it comes from.

    Attributes:
        crop: uint8[crop_px, crop_px, 3].
        face: The face in pixels of the upright photo; None where the whole image was used.
        to_crop: Map from the upright photo to the crop; None without a face.
        faces: Number of faces found, None where nobody looked for them.
        hints: What makes the photo hard to judge.
        number: Which of the photo's faces it is, from 1 for the most prominent.
    """

    crop: Crop = field(repr=False)  # an image of a person belongs in no log
    face: Face | None = None
    to_crop: Similarity | None = None
    faces: int | None = None
    hints: tuple[Hint, ...] = ()
    number: int = 1

    def describe(self, chosen: str = "") -> str:
        """Return in words what the network sees; `chosen` says why this one of several faces."""
        if self.face is None:
            return "the whole image"
        side, roll_deg = round(self.face.side_px), self.face.roll_deg
        turned = f", turned by {abs(roll_deg):.0f} degrees" if abs(roll_deg) >= LEVEL_DEG else ""
        chosen = chosen or (f"number {self.number}" if self.number > 1 else "the most prominent")
        others = f", {chosen} of {self.faces}" if (self.faces or 0) > 1 else ""
        return f"face of {side} x {side} pixels{turned}{others}"

    @property
    def box(self) -> list[int] | None:
        """The square around the face, from the brows to the chin: left, top and side in pixels."""
        if self.face is None:
            return None
        side = self.face.side_px
        left, top = self.face.centre - side / 2
        return [round(value) for value in (left, top, side)]

    def describe_box(self) -> str:
        """Return in words where the face is."""
        return "{0},{1} {2}x{2}".format(*self.box) if self.box else "the whole image"

    def to_json(self) -> dict[str, Any]:
        """Return a plain dict: box [left, top, side], landmarks, score, roll_deg, faces, hints."""
        face = self.face
        return {
            "box": self.box,
            "landmarks": face and face.landmarks.round(1).tolist(),
            "score": face and round(face.score, 3),
            "roll_deg": face and round(face.roll_deg, 1),
            "faces": self.faces,
            "hints": msgspec.to_builtins(self.hints),
        }

    def to_cells(self) -> FaceCells:
        """Return box, number of faces and hints as a row of CSV has them."""
        return FaceCells(
            box=" ".join(map(str, self.box or ())),
            faces="" if self.faces is None else str(self.faces),
            hints=" ".join(hint.kind for hint in self.hints),
        )


def align_faces(
    source: ImageSource,
    spec: CropSpec,
    name: str | None = None,
    every: bool = False,
    hints: bool = True,
) -> list[AlignedFace]:
    """Find and align the most prominent face of an image.

    Args:
        source: An image, see `load_crop`.
        spec: Which crop of the canonical frame the network sees.
        name: What messages call the image.
        every: Align every face found, the most prominent first.
        hints: Look for what makes the photo hard to judge.

    Returns:
        At least one face.

    Raises:
        BadImage: The image cannot be read.
        NoFace: No face is found.
        TooSmallFace: Every face is smaller than MIN_FACE_PX.
    """
    photo = open_photo(source, name)
    found = search_photo(photo, every)
    chosen = usable_faces(found, photo.name)[: None if every else 1]
    return [
        _align(photo, spec, face, len(found), hints, number)
        for number, face in enumerate(chosen, 1)
    ]


def align_and_keep(photo: Photo, spec: CropSpec, hints: bool = False) -> AlignedFace:
    """Align the most prominent face of a file, as `align_faces`; what is found is kept.

    Args:
        photo: A file or its bytes, from `open_photo`; the faces of a content that was met before
            come out of the default `FaceCache`.
        spec: As in `align_faces`.
        hints: As in `align_faces`.

    Raises:
        BadImage: As in `align_faces`.
        NoFace: As in `align_faces`.
        TooSmallFace: As in `align_faces`.
    """
    found = _kept_faces(photo)
    return _align(photo, spec, usable_faces(found, photo.name)[0], len(found), hints)


def align_every(photo: Photo, spec: CropSpec) -> list[AlignedFace]:
    """Align every face of a file, the most prominent first, as `align_and_keep`."""
    found = _kept_faces(photo)
    faces = enumerate(usable_faces(found, photo.name), 1)
    return [_align(photo, spec, face, len(found), False, number) for number, face in faces]


def _kept_faces(photo: Photo) -> list[Face]:
    from facepairs.faces.face_cache import face_cache  # two photos alone need no SQLite
    from facepairs.faces.inspection import inspect_content

    assert isinstance(photo.content, bytes)
    record = inspect_content(photo.content, True, face_cache(), photo.name)
    if record.problem:
        raise BadImage(f"{photo.name}: {record.reason}")
    return record.found


def usable_faces(found: list[Face], name: str) -> list[Face]:
    """Return the faces that are large enough, the most prominent first.

    Raises:
        NoFace: There are no faces.
        TooSmallFace: All are smaller than MIN_FACE_PX.
    """
    if problem := face_problem(found):
        error = NoFace if problem.problem == "no_face" else TooSmallFace
        raise error(f"{name}: {problem.reason}")
    return large_enough(found)


def unaligned_face(photo: Photo, spec: CropSpec, hints: bool = True) -> AlignedFace:
    """Return the centre square of a whole image, for models of alignment `lfw-frame`.

    Args:
        photo: What `open_photo` returned.
        spec: Which square.
        hints: Look for what makes the photo hard to judge, and say that nobody looked for a face.

    Raises:
        BadImage: The photo is damaged.
    """
    crop = crop_photo(photo, spec)
    side_px = spec.side_px(photo.width_px, photo.height_px)
    return AlignedFace(crop, hints=(*photo_hints(crop, side_px), UNALIGNED) if hints else ())


def _align(
    photo: Photo, spec: CropSpec, face: Face, faces: int, hints: bool, number: int = 1
) -> AlignedFace:
    to_square = fit_crop(face.landmarks, spec)
    crop = warp_photo(photo, to_square, spec.crop_px)
    found: tuple[Hint, ...] = ()
    if hints and spec.points is not None:  # of a square that enlarges the face no more
        found = _align(photo, HINTS_SPEC, face, faces, hints).hints
    elif hints:
        found = photo_hints(crop, spec.crop_px / to_square.scale, face)
        if isinstance(photo.content, bytes) and lacks_end(photo.content):
            found += (CUT_OFF,)
    return AlignedFace(crop, face, to_square, faces, found, number)
