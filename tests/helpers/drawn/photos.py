"""Small drawn photos, encoded in memory, and files of them."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

from facepairs.photos.decode import EXIF_ORIENTATION


def smooth(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Return uint8[height, width, 3], the sum of a few random waves: smooth like a face."""
    rng = np.random.default_rng(seed)
    y, x = np.indices((height, width))
    planes = []
    for _ in range(3):
        plane = np.zeros((height, width))
        for _ in range(4):
            fy, fx, phase = rng.uniform(-6, 6, 3)
            plane += np.sin(fy * y / height + fx * x / width + phase)
        planes.append(127.5 + 127.5 * plane / 4)
    return np.stack(planes, -1).round().astype(np.uint8)


def encoded(image: Image.Image | np.ndarray, kind: str, **options: object) -> bytes:
    if isinstance(image, np.ndarray):
        image = Image.fromarray(image)
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def picture(seed: int, size: tuple[int, int] = (80, 80)) -> Image.Image:
    coarse = np.random.default_rng(seed).integers(0, 256, (6, 6, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)


def jpeg(seed: int, size: tuple[int, int] = (80, 80), **options: object) -> bytes:
    return encoded(picture(seed, size), "JPEG", **options)


def put(root: Path, name: str, data: bytes) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def exif_of(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[EXIF_ORIENTATION] = orientation
    return exif


def stored(
    upright: Image.Image | np.ndarray, orientation: int, kind: str, **options: object
) -> bytes:
    """Return the file of a camera that notes an orientation, and shows `upright`."""
    undo = {1: None, 2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}[orientation]
    image = Image.fromarray(upright) if isinstance(upright, np.ndarray) else upright
    turned = image if undo is None else image.transpose(Image.Transpose(undo))
    return encoded(turned, kind, exif=exif_of(orientation), **options)


def noise_photos(folder: Path, count: int, size: tuple[int, int] = (32, 32)) -> list[Path]:
    """Write photos of random pixels, `0.png` and so on."""
    for number in range(count):
        pixels = np.random.default_rng(number).integers(0, 256, (*size[::-1], 3), np.uint8)
        put(folder, f"{number}.png", encoded(pixels, "PNG"))
    return [folder / f"{number}.png" for number in range(count)]
