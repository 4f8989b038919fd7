"""Photos that need framing: drawn faces, scaled and rotated, on a larger canvas."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from facepairs.data.synth.folder import write_synthetic_faces
from facepairs.faces.framing import FRAME_BOXES


class Place(NamedTuple):
    """Where a frame of 250 x 250 pixels is pasted: centre, side, roll counter-clockwise."""

    x: float
    y: float
    side_px: float
    roll_deg: float = 0.0

    @property
    def box_px(self) -> float:
        return self.side_px / FRAME_BOXES


def drawn_faces(folder: Path, people: int = 3, images: int = 2) -> list[Path]:
    write_synthetic_faces(folder, people=people, images=images, seed=5)
    return sorted(folder.glob("*/*.jpg"))


def canvas(width: int, height: int) -> Image.Image:
    """Return a background without faces: a smooth gradient."""
    across = np.linspace(70, 190, width)[None, :, None]
    down = np.linspace(-30, 30, height)[:, None, None]
    pixels = np.broadcast_to(across + down, (height, width, 3))
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def paste(picture: Image.Image, face: Path, place: Place) -> Image.Image:
    side = round(place.side_px)
    with Image.open(face) as opened:
        small = opened.convert("RGB").resize((side, side), Image.Resampling.BICUBIC)
    mask = Image.new("L", small.size, 255)
    turned = [
        image.rotate(place.roll_deg, Image.Resampling.BILINEAR, expand=True)
        for image in (small, mask)
    ]
    corner = round(place.x - turned[0].width / 2), round(place.y - turned[0].height / 2)
    picture.paste(turned[0], corner, turned[1])
    return picture
