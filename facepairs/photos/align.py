"""Find the faces of a photo and cut out the aligned crops that a network knows.

Training, evaluation and verification share these steps: the photo is turned upright, its faces and
their landmarks are found, and the crop is cut where the canonical frame of `frame` lies. A
model of alignment `lfw-frame` takes the centre square of the whole image instead, of any image.
"""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from facepairs.errors import BadConfig, NoFace, TooSmallFace
from facepairs.photos.crop import Crop, CropSpec, crop_photo, warp_photo
from facepairs.photos.detector import Face, locate_in_photo, search_photo
from facepairs.photos.frame import fit_crop
from facepairs.photos.hints import Hint, face_hints, whole_hints
from facepairs.photos.photo import ImageSource, Photo, open_photo
from facepairs.photos.photo_record import PhotoRecord, face_problem, large_enough
from facepairs.photos.warp import Similarity
from facepairs.support.words import counted

LEVEL_DEG = 5.0  # a smaller roll is not worth a word


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

    def describe(self) -> str:
        """Return in words what the network sees."""
        if self.face is None:
            return "the whole image"
        side, roll_deg = round(self.face.side_px), self.face.roll_deg
        turned = f", turned by {abs(roll_deg):.0f} degrees" if abs(roll_deg) >= LEVEL_DEG else ""
        chosen = f"number {self.number}" if self.number > 1 else "the most prominent"
        others = f", {chosen} of {self.faces}" if (self.faces or 0) > 1 else ""
        return f"face of {side} x {side} pixels{turned}{others}"

    @property
    def box(self) -> list[int] | None:
        """The square around the face, see `box_of`; None without a face."""
        return None if self.face is None else box_of(self.face)

    def to_json(self) -> dict[str, Any]:
        """Return a plain dict: number, box [left, top, side], landmarks, score, roll_deg, faces,
        hints.
        """
        face = self.face
        return {
            "number": self.number,
            "box": self.box,
            "landmarks": face and face.landmarks.round(1).tolist(),
            "score": face and round(face.score, 3),
            "roll_deg": face and round(face.roll_deg, 1),
            "faces": self.faces,
            "hints": msgspec.to_builtins(self.hints),
        }


def box_of(face: Face) -> list[int]:
    """Return the square around a face, from the brows to the chin: left, top and side in pixels."""
    side = face.side_px
    left, top = face.centre - side / 2
    return [round(value) for value in (left, top, side)]


def align_faces(
    source: ImageSource,
    spec: CropSpec,
    name: str | None = None,
    every: bool = False,
) -> list[AlignedFace]:
    """Find and align the most prominent face of an image.

    Args:
        source: An image, see `load_crop`.
        spec: Which crop of the canonical frame the network sees.
        name: What messages call the image.
        every: Align every face, located as precisely as the first, and small ones of a large photo.

    Returns:
        At least one face.

    Raises:
        BadImage: The image cannot be read.
        NoFace: No face is found.
        TooSmallFace: Every face is smaller than MIN_FACE_PX.
    """
    photo = open_photo(source, name)
    found = search_photo(photo)
    usable, count = usable_faces(found, photo.name), len(found)
    if every:
        known, located = len(usable), locate_in_photo(photo, usable)
        count += len(located) - known
        usable = [*located[:known], *large_enough(located[known:])]  # numbers stay as they are
    chosen = usable if every else usable[:1]
    return [_align(photo, spec, face, count, number) for number, face in enumerate(chosen, 1)]


def usable_faces(found: list[Face], name: str) -> list[Face]:
    """Return the faces that are large enough, the most prominent first.

    Raises:
        NoFace: There are no faces.
        TooSmallFace: All are smaller than MIN_FACE_PX.
    """
    if problem := face_problem(found):
        kind, reason = problem
        error = NoFace if kind == "no_face" else TooSmallFace
        raise error(f"{name}: {reason}")
    return large_enough(found)


def known_face(record: PhotoRecord, number: int, name: str) -> Face:
    """Return one of the faces that are large enough, by its number from 1.

    Raises:
        NoFace: There is no such face, or not any more: the photo has changed.
        TooSmallFace: All are smaller than MIN_FACE_PX.
    """
    faces = usable_faces(record.found, name)
    if number > len(faces):
        raise NoFace(f"{name}: changed since its faces were found; run it again")
    return faces[number - 1]


def chosen_face(faces: list[AlignedFace], number: int, name: str, *arguments: str) -> AlignedFace:
    """Return one face of a photo.

    Args:
        faces: The most prominent first.
        number: From 1.
        name: What messages call the photo.
        *arguments: What gave the number, for messages.

    Raises:
        BadConfig: There is no face of that number.
    """
    if not 1 <= number <= len(faces):
        shown = counted(len(faces), "face")
        raise BadConfig(
            f"{name}: no face {number}; it shows {shown}, numbered from 1",
            *arguments,
        )
    return faces[number - 1]


def unaligned_face(source: ImageSource, spec: CropSpec, name: str | None = None) -> AlignedFace:
    """Return the centre square of a whole image, for models of alignment `lfw-frame`.

    Args:
        source: An image, see `load_crop`.
        spec: Which square.
        name: What messages call the image.

    Raises:
        BadImage: The image cannot be read.
    """
    photo = open_photo(source, name)
    return AlignedFace(crop_photo(photo, spec), hints=whole_hints(photo))


def crop_known(photo: Photo, record: PhotoRecord, spec: CropSpec, number: int = 1) -> Crop:
    """Cut the crop that a network sees of a photo whose record is known.

    Args:
        photo: What `open_photo` returned.
        record: Its record.
        spec: What the network sees.
        number: Which of the faces that are large enough, from 1 for the most prominent.

    Raises:
        BadImage: As in `align_faces`.
    """
    if record.faces is None:
        return crop_photo(photo, spec)
    face = known_face(record, number, photo.name)
    return warp_photo(photo, fit_crop(face.landmarks, spec), spec.crop_px)


def _align(photo: Photo, spec: CropSpec, face: Face, faces: int, number: int) -> AlignedFace:
    to_crop = fit_crop(face.landmarks, spec)
    crop = warp_photo(photo, to_crop, spec.crop_px)
    return AlignedFace(crop, face, to_crop, faces, face_hints(photo, face), number)
