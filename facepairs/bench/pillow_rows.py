"""Rows that decode with Pillow: what people write first, and the best that can be had of it."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from PIL import Image

from facepairs.bench.job import Batch, Job, window


def crop(path: str, job: Job) -> npt.NDArray[np.uint8]:
    """Read one image's centre square, uint8[crop_px, crop_px, 3], with what spares Pillow work."""
    with Image.open(path) as image:
        side = window(*image.size, job)[2]
        if side >= 2 * job.crop_px:  # libjpeg then decodes at a half, a quarter or an eighth
            shrunk = job.crop_px / side
            image.draft("RGB", (round(image.width * shrunk), round(image.height * shrunk)))
        top, left, side = window(*image.size, job)
        square = image.convert("RGB").crop((left, top, left + side, top + side))
        if side != job.crop_px:
            square = square.resize((job.crop_px, job.crop_px), Image.Resampling.BILINEAR)
        return np.asarray(square)


def whole(path: str, job: Job) -> npt.NDArray[np.float32]:
    """Read one whole image at the size of a crop: float32[crop_px, crop_px, 3] in [0, 1]."""
    with Image.open(path) as image:
        small = image.convert("RGB").resize((job.crop_px, job.crop_px))
        return np.asarray(small, np.float32) / np.float32(255)


def pil(job: Job) -> Iterator[Batch]:
    """Stack whole images, decoded and resized one after the other."""
    for pairs in job.batches():
        left = np.stack([whole(job.paths[image], job) for image in pairs.left])
        right = np.stack([whole(job.paths[image], job) for image in pairs.right])
        yield Batch(len(pairs), (left, right), pairs.genuine)


def pil_draft(job: Job) -> Iterator[Batch]:
    """Cut the crops straight into a batch of bytes."""
    for pairs in job.batches():
        images = np.empty((2 * len(pairs), job.crop_px, job.crop_px, 3), np.uint8)
        for place, image in enumerate([*pairs.left, *pairs.right]):
            images[place] = crop(job.paths[image], job)
        yield Batch(len(pairs), images, pairs.genuine)
