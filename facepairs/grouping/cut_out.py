"""Cut one face out of a photo, so that the detector finds it and no other."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

from facepairs.errors import BadImage, ImageProblem
from facepairs.grouping.collection import Box
from facepairs.photos.decode import upright
from facepairs.photos.detector import search_photo
from facepairs.photos.photo import open_photo
from facepairs.photos.photo_record import large_enough

SIDES = (2.6, 2.2, 1.8, 1.5, 1.25, 1.1)  # of a picture, in sides of its face
PICTURE_SIDE = 1.6  # where the face is not found, or people look at it
QUALITY = 95  # of the JPEG
NEAR = 0.3  # distance of the face that is found from the one that is meant, in sides


def cut_out(photo: Path, box: Box) -> bytes:
    """Return a square picture of one face as a JPEG; what lies beyond the photo is grey.

    It is the widest in which the face is found, and no other one; else one of a usual size.

    Args:
        photo: The file.
        box: The face: left, top and side in pixels of the upright photo.

    Raises:
        BadImage: The photo cannot be read, or no longer has this place.
    """
    with upright(open_photo(photo)) as (picture, _):
        pictures = (_encode(_square(picture, photo, box, side)) for side in SIDES)
        alone = (picture for picture in pictures if _shows_alone(picture, box[2]))
        return next(alone, None) or _encode(_square(picture, photo, box, PICTURE_SIDE))


def _encode(picture: Image.Image) -> bytes:
    with io.BytesIO() as file:
        picture.save(file, "JPEG", quality=QUALITY)
        return file.getvalue()


def face_picture(photo: Path, box: Box, side_px: int) -> Image.Image:
    """Return a small picture of a face for people to look at; arguments and errors as `cut_out`."""
    with upright(open_photo(photo), PICTURE_SIDE * box[2] / side_px) as (picture, divisor):
        left, top, side = (round(value / divisor) for value in box)
        square = _square(picture, photo, (left, top, side), PICTURE_SIDE)
        return square.resize((side_px, side_px))


def _square(picture: Image.Image, photo: Path, box: Box, sides: float) -> Image.Image:
    """Return the square around a face, so many of its sides wide."""
    left, top, side = box
    if left >= picture.width or top >= picture.height:
        raise BadImage(f"{photo}: is smaller than before; group again")
    margin = round(side * (sides - 1) / 2)
    to_photo = (1, 0, left - margin, 0, 1, top - margin)
    size = (side + 2 * margin,) * 2
    return picture.transform(size, Image.Transform.AFFINE, to_photo, fillcolor=(127, 127, 127))


def _shows_alone(content: bytes, side_px: int) -> bool:
    """Return whether the face in the middle of a JPEG is found, and no other one."""
    picture = open_photo(content)
    try:
        found = large_enough(search_photo(picture))
    except ImageProblem:  # nearly black
        return False
    if len(found) != 1:
        return False
    left, top, side = found[0].box
    offset = np.array([left, top]) + side / 2 - picture.width_px / 2
    return bool(np.abs(offset).max() <= NEAR * side_px)
