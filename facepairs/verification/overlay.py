"""The picture of a verdict: two photos side by side with the faces that were compared."""

import io
import textwrap
from pathlib import Path

import numpy as np
from PIL import ExifTags, Image, ImageDraw, ImageFont

from facepairs.errors import BadData
from facepairs.faces.align import AlignedFace
from facepairs.images.decode import upright
from facepairs.images.photo import ImageSource, open_photo
from facepairs.support.atomic import atomic_file
from facepairs.support.places import check_output_file
from facepairs.verification.verdict import Verdict, verdict_rows

COLUMN_PX, MOST_PX = 440, 560  # largest width and height of a photo
CROP_PX = 200
GAP_PX = 16
TITLE_PX, LINE_PX, TEXT_PX = 42, 22, 15
WIDE, NARROW = 110, 28  # letters in a line across the picture, and beside a crop
DOT_PX = 3  # radius of a landmark
WHITE, INK = (255, 255, 255), (24, 24, 27)
FRAME, LANDMARK = (56, 189, 248), (244, 63, 94)
COLOURS = {
    "same person": (21, 128, 61),
    "not confirmed": (161, 98, 7),
    "different people": (185, 28, 28),
}
FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}
MARK = b"facepairs verdict"  # in the metadata of every picture, so that only these are replaced
CORNERS = np.array([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)])


def picture_format(out: Path) -> str:
    """Return Pillow's name of the format that a file name asks for.

    Raises:
        BadData: Its ending is not that of a format in FORMATS.
    """
    name = FORMATS.get(out.suffix.lower())
    if name is None:
        raise BadData(f"{out}: cannot be drawn; choose a name that ends in {', '.join(FORMATS)}")
    return name


def write_overlay(out: Path, left: ImageSource, right: ImageSource, verdict: Verdict) -> None:
    """Draw two photos, the faces that were compared, their crops and the result.

    Landmarks are red, the square of the crop is blue. Below each photo is what the network saw.

    Args:
        out: A .png, .jpg or .webp file; it appears complete or not at all.
        left: The first photo.
        right: The second photo.
        verdict: The result of `Verifier.verify` for the two photos.

    Raises:
        BadData: `out` cannot be written or is another picture, or the verdict lacks its faces.
    """
    name = picture_format(out)
    check_output_file(out, mark=MARK)
    data, metadata = io.BytesIO(), Image.Exif()
    metadata[ExifTags.Base.Software] = MARK.decode()
    draw_overlay(left, right, verdict).save(data, name, exif=metadata)
    with atomic_file(out, "wb") as handle:
        handle.write(data.getvalue())


def draw_overlay(left: ImageSource, right: ImageSource, verdict: Verdict) -> Image.Image:
    """Draw the picture that `write_overlay` writes, in RGB; arguments and errors as there."""
    if verdict.left is None or verdict.right is None:
        raise BadData("a verdict without its faces cannot be drawn; use one that verify returned")
    columns = (
        (_draw_photo(left, verdict.left), verdict.left),
        (_draw_photo(right, verdict.right), verdict.right),
    )
    rows = (f"{label} {text}".strip() for label, text in verdict_rows(verdict)[1:])
    lines = [line for row in rows for line in textwrap.wrap(row, WIDE)]
    top = 2 * GAP_PX + TITLE_PX + LINE_PX * len(lines)
    height = top + max(photo.height for photo, _ in columns) + CROP_PX + 2 * GAP_PX
    picture = Image.new("RGB", (2 * COLUMN_PX + 3 * GAP_PX, height), WHITE)
    title = ImageFont.load_default(28)
    ImageDraw.Draw(picture).text(
        (GAP_PX, GAP_PX), verdict.words, COLOURS.get(verdict.words, INK), title
    )
    _write(picture, (GAP_PX, GAP_PX + TITLE_PX), lines)
    for number, (photo, face) in enumerate(columns):
        x = GAP_PX + number * (COLUMN_PX + GAP_PX)
        picture.paste(photo, (x, top))
        y = top + photo.height + GAP_PX
        picture.paste(Image.fromarray(face.crop).resize((CROP_PX, CROP_PX)), (x, y))
        texts = ["the model saw this", *(hint.text for hint in face.hints)]
        lines = [line for text in texts for line in textwrap.wrap(text, NARROW)]
        _write(picture, (x + CROP_PX + GAP_PX, y), lines)
    return picture


def _draw_photo(source: ImageSource, aligned: AlignedFace) -> Image.Image:
    """Return a photo, scaled into its column, with the landmarks and the square of the crop."""
    photo = open_photo(source)
    shrink = max(photo.width_px, photo.height_px) / (2 * COLUMN_PX)
    with upright(photo, shrink) as (image, divisor):
        factor = min(COLUMN_PX / image.width, MOST_PX / image.height)
        size = max(1, round(image.width * factor)), max(1, round(image.height * factor))
        picture = image.resize(size, Image.Resampling.BICUBIC, reducing_gap=2)
    if aligned.face and aligned.to_crop:
        draw, scale = ImageDraw.Draw(picture), factor / divisor
        to_crop = aligned.to_crop.of_scaled_image(scale)
        corners = to_crop.inverse()(CORNERS * (len(aligned.crop) - 1.0))
        draw.line([(x, y) for x, y in corners.tolist()], FRAME, width=2, joint="curve")
        for x, y in aligned.face.scaled(scale).landmarks.tolist():
            draw.ellipse((x - DOT_PX, y - DOT_PX, x + DOT_PX, y + DOT_PX), LANDMARK)
    return picture


def _write(picture: Image.Image, corner: tuple[int, int], lines: list[str]) -> None:
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(TEXT_PX)
    for number, line in enumerate(lines):
        draw.text((corner[0], corner[1] + number * LINE_PX), line, INK, font)
