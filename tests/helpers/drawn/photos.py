"""Small drawn photos, encoded in memory, and files of them."""

import io
from pathlib import Path

import numpy as np
from PIL import Image


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
