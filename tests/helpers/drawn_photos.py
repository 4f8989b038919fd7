"""Photos to decode: drawn pixels, encoded in memory."""

import io

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
