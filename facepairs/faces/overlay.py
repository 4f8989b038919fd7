"""`verify --show`: two photos side by side with the faces that were compared, and the verdict."""

import io
import math
from pathlib import Path
from typing import Protocol

from PIL import Image, ImageDraw, ImageFont

from facepairs.errors import BadData
from facepairs.faces.detector import Face
from facepairs.faces.align import AlignedFace
from facepairs.images.photo import ImageSource, load_upright, open_photo
from facepairs.support.atomic import atomic_file

PHOTO_PX = 440  # side of the square that a photo is fitted into
CROP_PX = 180
GAP_PX = 16
TITLE_PX = 56
WHITE, INK, GRAY = (255, 255, 255), (24, 24, 27), (113, 113, 122)
BOX, FRAME = (250, 204, 21), (56, 189, 248)
COLOURS = {True: (21, 128, 61), False: (185, 28, 28), None: INK}
WORDS = {True: "same person", False: "different people", None: "no threshold, no verdict"}
FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}

Point = tuple[int, int]


class FacePair(Protocol):
    """What is drawn of a `Verdict`: the result, and both faces as `align_faces` returned them."""

    @property
    def same(self) -> bool | None: ...
    @property
    def score(self) -> float: ...
    @property
    def threshold(self) -> float | None: ...
    @property
    def probability(self) -> float | None: ...
    @property
    def left(self) -> AlignedFace | None: ...
    @property
    def right(self) -> AlignedFace | None: ...


def picture_format(out: Path) -> str:
    """Return Pillow's name of the format that a file name asks for.

    Raises:
        BadData: Its ending is not that of a format in FORMATS.
    """
    name = FORMATS.get(out.suffix.lower())
    if name is None:
        raise BadData(f"{out}: cannot be drawn; choose a name that ends in {', '.join(FORMATS)}")
    return name


def write_overlay(out: Path, left: ImageSource, right: ImageSource, comparison: FacePair) -> None:
    """Draw two photos, the faces that were compared, their crops and the result.

    The detector's box is yellow and the frame is blue; below each photo is what the network saw.

    Args:
        out: A .png, .jpg or .webp file; it appears complete or not at all.
        left: The first photo.
        right: The second photo.
        comparison: The result of `Verifier.verify` for the two photos.

    Raises:
        BadData: `out` cannot be written, or the comparison lacks its faces.
        BadImage: A photo cannot be read.
    """
    name = picture_format(out)
    data = io.BytesIO()
    draw_overlay(left, right, comparison).save(data, name)
    with atomic_file(out, "wb") as handle:
        handle.write(data.getvalue())


def draw_overlay(left: ImageSource, right: ImageSource, comparison: FacePair) -> Image.Image:
    """Draw the picture that `write_overlay` writes.

    Args:
        left: The first photo, as `load_crop` takes it.
        right: The second photo.
        comparison: The verdict on the two, with both faces.

    Returns:
        The picture, in RGB.

    Raises:
        BadData: The verdict has no faces.
        BadImage: A photo cannot be read.
    """
    if comparison.left is None or comparison.right is None:
        raise BadData("a verdict without its faces cannot be drawn; use one that verify returned")
    width = 2 * PHOTO_PX + 3 * GAP_PX
    height = 4 * GAP_PX + TITLE_PX + PHOTO_PX + CROP_PX
    picture = Image.new("RGB", (width, height), WHITE)
    draw = ImageDraw.Draw(picture)
    draw.text((GAP_PX, GAP_PX), WORDS[comparison.same], COLOURS[comparison.same], _font(28))
    draw.text((GAP_PX, GAP_PX + 36), _describe_result(comparison), GRAY, _font(14))
    sides = ((left, comparison.left), (right, comparison.right))
    for number, (source, face) in enumerate(sides):
        corner = (GAP_PX + number * (PHOTO_PX + GAP_PX), 2 * GAP_PX + TITLE_PX)
        _paste_photo(picture, corner, source, face)
        _paste_crop(picture, (corner[0], corner[1] + PHOTO_PX + GAP_PX), face)
    return picture


def _font(size_px: int) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    return ImageFont.load_default(size_px)


def _describe_result(comparison: FacePair) -> str:
    parts = [f"score {comparison.score:.4f}"]
    if comparison.threshold is not None:
        parts.append(f"threshold {comparison.threshold:.4f}")
    if comparison.probability is not None:
        parts.append(f"probability {comparison.probability:.3f} at equal priors")
    return ", ".join(parts)


def _paste_photo(
    picture: Image.Image, corner: Point, source: ImageSource, aligned: AlignedFace
) -> None:
    """Fit the upright photo into its square and draw the face's box and frame on it."""
    photo = Image.fromarray(load_upright(open_photo(source), 2 * PHOTO_PX)[0])
    photo.thumbnail((PHOTO_PX, PHOTO_PX))
    if aligned.face is not None:
        scale = photo.width / aligned.size_px[0]
        draw = ImageDraw.Draw(photo)
        for boxes, colour in ((1.0, BOX), (FRAME_BOXES, FRAME)):
            corners = _square_corners(aligned.face, boxes, aligned.roll_deg)
            points = [(scale * x, scale * y) for x, y in corners]
            draw.line([*points, points[0]], colour, width=2, joint="curve")
    left, top = (PHOTO_PX - photo.width) // 2, (PHOTO_PX - photo.height) // 2
    picture.paste(photo, (corner[0] + left, corner[1] + top))


def _square_corners(face: Face, boxes: float, roll_deg: float) -> list[tuple[float, float]]:
    """Return the corners of a square around a face, `boxes` wide, turned as the frame was."""
    half, roll = face.side_px * boxes / 2, math.radians(roll_deg)
    across, down = half * math.cos(roll), half * math.sin(roll)
    return [
        (face.x + x * across + y * down, face.y - x * down + y * across)
        for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))
    ]


def _paste_crop(picture: Image.Image, corner: Point, aligned: AlignedFace) -> None:
    """Paste what the network saw, and beside it how it was framed and the hints."""
    picture.paste(Image.fromarray(aligned.crop).resize((CROP_PX, CROP_PX)), corner)
    texts = ["the model saw this:", aligned.describe(), *(hint.text for hint in aligned.hints)]
    width_px = PHOTO_PX - CROP_PX - GAP_PX
    draw = ImageDraw.Draw(picture)
    lines = "\n".join(line for text in texts for line in _wrap(draw, text, width_px))
    draw.multiline_text((corner[0] + CROP_PX + GAP_PX, corner[1]), lines, INK, _font(14))


def _wrap(draw: ImageDraw.ImageDraw, text: str, width_px: int) -> list[str]:
    """Break a text into lines that fit into `width_px`."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if draw.textlength(longer, _font(14)) <= width_px or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
