"""The row that people write first: a Python generator with Pillow. It needs no TensorFlow."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from PIL import Image

from facepairs.bench.job import Batch, Job


def pil(job: Job) -> Iterator[Batch]:
    """Yield batches of whole images, decoded and resized one after another."""
    for pairs in job.batches():
        left, right = (
            np.stack([_resized_image(job.paths[image], job.crop_px) for image in side])
            for side in (pairs.left, pairs.right)
        )
        yield Batch(len(pairs), (left, right), pairs.genuine)


def _resized_image(path: str, side_px: int) -> npt.NDArray[np.float32]:
    """Decode a whole image and resize it: float32[side_px, side_px, 3] in [0, 1]."""
    with Image.open(path) as image:
        resized = image.convert("RGB").resize((side_px, side_px))
        return np.asarray(resized, np.float32) / np.float32(255)
