"""Photos of any kind: drawn faces, scaled and rotated, on a larger canvas, or cut out tightly."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from facepairs.data.synth.folder import write_synthetic_faces
from facepairs.photos.frame import FACE_PX, FRAME_PX


class Place(NamedTuple):
    """Where a frame of 250 x 250 pixels is pasted: centre, side, roll counter-clockwise."""

    x: float
    y: float
    side_px: float
    roll_deg: float = 0.0

    @property
    def face_px(self) -> float:
        """Side of the square around the face, from the brows to the chin, about."""
        return self.side_px * FACE_PX / FRAME_PX


def drawn_faces(folder: Path, people: int = 3, images: int = 2) -> list[Path]:
    write_synthetic_faces(folder, people=people, photos=images, seed=5)
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


def tight_crop(face: Path) -> Image.Image:
    """Return a face cut out tightly, 92 x 112 in grey: as the ORL database has them."""
    with Image.open(face) as opened:
        return opened.convert("L").crop((67, 55, 183, 196)).resize((92, 112))


def faceless() -> dict[str, Image.Image]:
    """Return images without a face: blank ones of several colours, noise, and a gradient."""
    rng = np.random.default_rng(0)
    noise = {
        f"noise of {size} pixels": Image.fromarray(
            rng.integers(0, 256, (size, size, 3), np.uint8)
        ).resize((150, 150), Image.Resampling.BICUBIC)
        for size in (8, 30, 150)
    }
    colours = {f"blank {level}": (level, level, 200) for level in (0, 90, 200)}
    blank = {name: Image.new("RGB", (150, 150), colour) for name, colour in colours.items()}
    tiny = {"one pixel": Image.new("RGB", (1, 1)), "thin": Image.new("RGB", (300, 1), "white")}
    return {**blank, **noise, **tiny, "gradient": canvas(160, 120)}


def write_scenes(faces: Path, out: Path, suffix: str = ".jpg") -> Path:
    """Paste each face of a folder into a larger photo of another size, at some scale and angle."""
    rng = np.random.default_rng(0)
    for face in sorted(faces.glob("*/*.jpg")):
        scale = rng.uniform(0.5, 1.2)
        width, height = (round(scale * side) for side in rng.uniform(350, 600, 2))
        place = Place(
            width / 2 + rng.uniform(-0.05, 0.05) * width,
            height / 2 + rng.uniform(-0.05, 0.05) * height,
            250 * scale,
            rng.uniform(-15, 15),
        )
        picture = paste(canvas(width, height), face, place)
        target = (out / face.parent.name / face.name).with_suffix(suffix)
        target.parent.mkdir(parents=True, exist_ok=True)
        picture.save(target, quality=95, compress_level=1)
    return out
