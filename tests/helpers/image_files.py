"""Small images made from a seed, and files of them."""

from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image


def picture(seed: int, size: tuple[int, int] = (80, 80)) -> Image.Image:
    coarse = np.random.default_rng(seed).integers(0, 256, (6, 6, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    out = BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def jpeg(seed: int, size: tuple[int, int] = (80, 80), **options: object) -> bytes:
    return encoded(picture(seed, size), "JPEG", **options)


def put(root: Path, name: str, data: bytes) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
