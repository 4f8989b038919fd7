"""`verify --show`: two photos side by side with the faces that were compared, and the verdict."""

import io
import math
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from facepairs.errors import BadData
from facepairs.faces.detector import Face
from facepairs.faces.framing import FRAME_BOXES, Portrait
from facepairs.images.photo import Source, load_upright, open_photo
from facepairs.support.atomic import atomic_file
from facepairs.verification.verifier import Verdict

PHOTO_PX = 440  # side of the square that a photo is fitted into
CROP_PX = 180
GAP_PX = 16
PAPER, INK, PALE = (255, 255, 255), (24, 24, 27), (113, 113, 122)
BOX, FRAME = (250, 204, 21), (56, 189, 248)
COLOURS = {True: (21, 128, 61), False: (185, 28, 28), None: INK}
WORDS = {True: "same person", False: "different people", None: "no threshold, no verdict"}
FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}


def check_out(out: Path) -> str:
    """Give Pillow's name of the format that a file name asks for; raises BadData."""
    kind = FORMATS.get(out.suffix.lower())
    if kind is None:
        raise BadData(f"{out}: cannot be drawn; name a file that ends in {', '.join(FORMATS)}")
    return kind


def write_overlay(out: Path, left: Source, right: Source, verdict: Verdict) -> None:
    """Draw two photos with the faces compared, their crops and the verdict into a picture file.

    The detector's box is yellow, what the frame takes blue, and beneath is what the network saw.
    `verdict` is what `Verifier.verify` gave for the two. Raises BadData where `out` cannot be
    written, BadImage for a photo that cannot be read.
    """
    kind = check_out(out)
    picture = draw_overlay(left, right, verdict)
    data = io.BytesIO()
    picture.save(data, kind)
    with atomic_file(out, "wb") as handle:
        handle.write(data.getvalue())


def draw_overlay(left: Source, right: Source, verdict: Verdict) -> Image.Image:
    """Draw the picture that `write_overlay` writes: RGB."""
    if verdict.left is None or verdict.right is None:
        raise BadData("a verdict without its portraits cannot be drawn; take it from verify")
    width = 2 * PHOTO_PX + 3 * GAP_PX
    height = 4 * GAP_PX + 56 + PHOTO_PX + CROP_PX
    picture = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(picture)
    draw.text((GAP_PX, GAP_PX), WORDS[verdict.same], COLOURS[verdict.same], _font(28))
    draw.text((GAP_PX, GAP_PX + 36), _figures(verdict), PALE, _font(14))
    sides = ((left, verdict.left), (right, verdict.right))
    for number, (source, portrait) in enumerate(sides):
        corner = (GAP_PX + number * (PHOTO_PX + GAP_PX), 2 * GAP_PX + 56)
        _paste_photo(picture, corner, source, portrait)
        _paste_crop(picture, (corner[0], corner[1] + PHOTO_PX + GAP_PX), portrait)
    return picture


def _font(size_px: int) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    return ImageFont.load_default(size_px)


def _figures(verdict: Verdict) -> str:
    parts = [f"score {verdict.score:.4f}"]
    if verdict.threshold is not None:
        parts.append(f"threshold {verdict.threshold:.4f}")
    if verdict.probability is not None:
        parts.append(f"probability {verdict.probability:.3f} at equal priors")
    return ", ".join(parts)


def _paste_photo(
    picture: Image.Image, corner: tuple[int, int], source: Source, portrait: Portrait
) -> None:
    """Fit the upright photo into its square and draw the face's box and frame on it."""
    photo = Image.fromarray(load_upright(open_photo(source), 2 * PHOTO_PX)[0])
    photo.thumbnail((PHOTO_PX, PHOTO_PX))
    if portrait.face is not None:
        face, scale = portrait.face, photo.width / portrait.size_px[0]
        draw = ImageDraw.Draw(photo)
        for boxes, colour in ((1.0, BOX), (FRAME_BOXES, FRAME)):
            corners = _corners(face, boxes, portrait.level)
            points = [(scale * x, scale * y) for x, y in corners]
            draw.line([*points, points[0]], colour, width=2, joint="curve")
    left, top = (PHOTO_PX - photo.width) // 2, (PHOTO_PX - photo.height) // 2
    picture.paste(photo, (corner[0] + left, corner[1] + top))


def _corners(face: Face, boxes: float, level: float) -> list[tuple[float, float]]:
    """Give the corners of a square around a face, `boxes` wide, turned as the crop was."""
    half, turn = face.side_px * boxes / 2, math.radians(level)
    across, down = half * math.cos(turn), half * math.sin(turn)
    return [
        (face.x + x * across + y * down, face.y - x * down + y * across)
        for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))
    ]


def _paste_crop(picture: Image.Image, corner: tuple[int, int], portrait: Portrait) -> None:
    """Show what the network saw, and beside it what there is to say."""
    crop = Image.fromarray(portrait.crop).resize((CROP_PX, CROP_PX))
    picture.paste(crop, corner)
    lines = ["the model saw this:", portrait.told(), *(hint.text for hint in portrait.hints)]
    room = PHOTO_PX - CROP_PX - GAP_PX
    draw = ImageDraw.Draw(picture)
    text = "\n".join(line for told in lines for line in _wrapped(draw, told, room))
    draw.multiline_text((corner[0] + CROP_PX + GAP_PX, corner[1]), text, INK, _font(14))


def _wrapped(draw: ImageDraw.ImageDraw, text: str, room_px: int) -> list[str]:
    """Break a text into lines that fit."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if draw.textlength(longer, _font(14)) <= room_px or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
