"""The picture of a verdict: two photos side by side with the faces that were compared."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import ExifTags, Image, ImageDraw, ImageFont

from facepairs.errors import BadData, BadImage
from facepairs.faces.align import AlignedFace
from facepairs.faces.alignment import FRAME_PX
from facepairs.faces.detector import FACE_PX, Face, search_photo
from facepairs.images.decode import upright
from facepairs.images.photo import ImageSource, open_photo
from facepairs.images.warp import Points, Similarity
from facepairs.support.atomic import atomic_file
from facepairs.support.places import check_output_file
from facepairs.verification.verdict import NOT_CONFIRMED, Verdict, detail_rows

COLUMN_PX, MOST_PX = 440, 560  # largest width and height of a photo
CROP_PX = 200
GAP_PX = 16
TITLE_PX, LINE_PX, TEXT_PX = 42, 22, 15
DOT = 0.025  # radius of a landmark, in sides of the face
MAX_LISTED = 8  # faces that are listed where none was compared
WHITE, INK, GRAY, LIGHT = (255, 255, 255), (24, 24, 27), (113, 113, 122), (228, 228, 231)
BOX, FRAME, LANDMARK = (250, 204, 21), (56, 189, 248), (244, 63, 94)
COLOURS = {True: (21, 128, 61), False: (185, 28, 28), None: INK}
UNSURE = (161, 98, 7)  # below the threshold, but more likely one person than two
FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}
MARK = b"facepairs verdict"  # in the metadata of every picture, so that only these are replaced
CORNERS = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])


@dataclass(frozen=True)
class NoVerdict:
    """Two photos that could not be compared, and why; the faces are those that can be used."""

    reason: str
    left: AlignedFace | None
    right: AlignedFace | None


class _Column(NamedTuple):
    """One photo, drawn: with its marks, its crop if there is one, and what is said of it."""

    photo: Image.Image
    crop: Image.Image | None
    texts: list[str]


def picture_format(out: Path) -> str:
    """Return Pillow's name of the format that a file name asks for.

    Raises:
        BadData: Its ending is not that of a format in FORMATS.
    """
    name = FORMATS.get(out.suffix.lower())
    if name is None:
        raise BadData(f"{out}: cannot be drawn; choose a name that ends in {', '.join(FORMATS)}")
    return name


def write_overlay(
    out: Path, left: ImageSource, right: ImageSource, comparison: Verdict | NoVerdict
) -> None:
    """Draw two photos, the faces that were compared, their crops and the result.

    Landmarks are red, the square around the face is yellow, that of the crop is blue. Below each
    photo is what the network saw. Without a verdict, all faces that were found are marked.

    Args:
        out: A .png, .jpg or .webp file; it appears complete or not at all.
        left: The first photo.
        right: The second photo.
        comparison: The result of `Verifier.verify` for the two photos, or why there is none.

    Raises:
        BadData: `out` cannot be written or is another picture, or a verdict lacks its faces.
    """
    name = picture_format(out)
    check_output_file(out, mark=MARK)
    data, metadata = io.BytesIO(), Image.Exif()
    metadata[ExifTags.Base.Software] = MARK.decode()
    draw_overlay(left, right, comparison).save(data, name, exif=metadata)
    with atomic_file(out, "wb") as handle:
        handle.write(data.getvalue())


def draw_overlay(
    left: ImageSource, right: ImageSource, comparison: Verdict | NoVerdict
) -> Image.Image:
    """Draw the picture that `write_overlay` writes.

    Args:
        left: The first photo, as `load_crop` takes it.
        right: The second photo.
        comparison: The verdict on the two with both faces, or why there is none.

    Returns:
        The picture, in RGB.

    Raises:
        BadData: The verdict has no faces.
    """
    title, colour, details = _headline(comparison)
    width = 2 * COLUMN_PX + 3 * GAP_PX
    lines = [part for line in details for part in _wrap(line, width - 2 * GAP_PX)]
    sides = (left, comparison.left), (right, comparison.right)
    columns = [_draw_column(photo, face) for photo, face in sides]
    photos_px = max(column.photo.height for column in columns)
    top = 2 * GAP_PX + TITLE_PX + LINE_PX * len(lines)
    height = top + photos_px + CROP_PX + 2 * GAP_PX
    picture = Image.new("RGB", (width, height), WHITE)
    draw = ImageDraw.Draw(picture)
    draw.text((GAP_PX, GAP_PX), title, colour, _font(28))
    _write(draw, (GAP_PX, GAP_PX + TITLE_PX), lines, GRAY)
    for number, column in enumerate(columns):
        x, y = GAP_PX + number * (COLUMN_PX + GAP_PX), top
        picture.paste(column.photo, (x, y))
        y += column.photo.height + GAP_PX
        if column.crop:
            picture.paste(column.crop, (x, y))
        text_x = x + (CROP_PX + GAP_PX if column.crop else 0)
        room = x + COLUMN_PX - text_x
        _write(draw, (text_x, y), [part for text in column.texts for part in _wrap(text, room)])
    return picture


def _font(size_px: int) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    return ImageFont.load_default(size_px)


def _headline(comparison: Verdict | NoVerdict) -> tuple[str, tuple[int, int, int], list[str]]:
    """Return the title, its colour and the lines below it."""
    if isinstance(comparison, NoVerdict):
        return "no verdict", INK, [comparison.reason]
    if comparison.left is None or comparison.right is None:
        raise BadData("a verdict without its faces cannot be drawn; use one that verify returned")
    details = [f"{label} {text}".strip() for label, text in detail_rows(comparison)]
    if comparison.words == "not confirmed":
        return comparison.words, UNSURE, [NOT_CONFIRMED, *details]
    return comparison.words, COLOURS[comparison.same], details


def _draw_column(source: ImageSource, aligned: AlignedFace | None) -> _Column:
    try:
        photo = open_photo(source)
        faces = search_photo(photo, every=True) if aligned is None else []
        shrink = max(photo.width_px, photo.height_px) / (2 * COLUMN_PX)
        with upright(photo, shrink) as (image, divisor):
            factor = min(COLUMN_PX / image.width, MOST_PX / image.height)
            size = max(1, round(image.width * factor)), max(1, round(image.height * factor))
            picture = image.resize(size, Image.Resampling.BICUBIC, reducing_gap=2)
            factor /= divisor
    except BadImage as error:
        return _Column(Image.new("RGB", (COLUMN_PX, COLUMN_PX // 2), LIGHT), None, [str(error)])
    if aligned is None:
        for face in faces:
            _mark(picture, face.scaled(factor))
        sizes = [f"face of {face.side_px:.0f} x {face.side_px:.0f} pixels" for face in faces]
        more = [f"and {len(faces) - MAX_LISTED} more"] if len(faces) > MAX_LISTED else []
        return _Column(picture, None, [*sizes[:MAX_LISTED], *more] or ["no face found"])
    if aligned.face and aligned.to_crop:
        to_crop = aligned.to_crop.of_scaled_image(factor)
        _draw_square(picture, to_crop, len(aligned.crop), len(aligned.crop), FRAME)
        _mark(picture, aligned.face.scaled(factor))
    crop = Image.fromarray(aligned.crop).resize((CROP_PX, CROP_PX), Image.Resampling.BICUBIC)
    hints = [hint.text for hint in aligned.hints]
    return _Column(picture, crop, ["the model saw this:", aligned.describe(), *hints])


def _mark(picture: Image.Image, face: Face) -> None:
    """Draw the square around a face, and its landmarks."""
    _draw_square(picture, face.to_frame, FRAME_PX, FACE_PX, BOX)
    draw, radius = ImageDraw.Draw(picture), min(4.0, max(1.0, DOT * face.side_px))
    for x, y in face.landmarks.tolist():
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), LANDMARK)


def _draw_square(
    picture: Image.Image,
    to_frame: Similarity,
    frame_px: int,
    side_px: float,
    colour: tuple[int, int, int],
) -> None:
    """Draw the centre square of a frame that lies rotated in the picture."""
    corners: Points = to_frame.inverse()(CORNERS * side_px + (frame_px - 1) / 2)
    points = [(x, y) for x, y in corners.tolist()]
    ImageDraw.Draw(picture).line([*points, points[0]], colour, width=2, joint="curve")


def _write(
    draw: ImageDraw.ImageDraw,
    corner: tuple[int, int],
    lines: list[str],
    colour: tuple[int, int, int] = INK,
) -> None:
    for number, line in enumerate(lines):
        x, y = corner
        draw.text((x, y + number * LINE_PX), line, colour, _font(TEXT_PX))


def _wrap(text: str, width_px: int) -> list[str]:
    """Break a text into lines that fit into `width_px`."""
    font = _font(TEXT_PX)
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if font.getlength(longer) <= width_px or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
