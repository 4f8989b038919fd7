"""Crop plans of drawn photos."""

import math
from dataclasses import replace

import numpy as np
from PIL import Image, ImageOps

from facepairs.data.index import FaceIndex
from facepairs.photos.crop import CropPlan, CropSpec, Similarity
from facepairs.photos.photo_table import photo_records, plan_crops


def whole_plan(index: FaceIndex, crop_px: int, frame_px: int = 250) -> CropPlan:
    """Return the plan that takes the centre square of every photo."""
    records = list(photo_records(index, "none"))
    return plan_crops(records, CropSpec(frame_px, crop_px), "none")


def turned_plan(index: FaceIndex, crop_px: int, seed: int = 0) -> CropPlan:
    """Return a plan of any rotated squares, some of them partly or wholly outside of the photos.

    Args:
        index: The photos; they need not show faces.
        crop_px: Side of the squares.
        seed: Of the squares.
    """
    plan, rng = whole_plan(index, crop_px), np.random.default_rng(seed)
    maps = []
    for image in range(len(index)):
        with Image.open(index.path(image)) as opened:
            centre = rng.uniform(-0.3, 1.3, 2) * ImageOps.exif_transpose(opened).size
        scale, angle = np.exp(rng.uniform(np.log(0.3), np.log(3))), rng.uniform(-3, 3)
        matrix = np.array([(np.cos(angle), -np.sin(angle)), (np.sin(angle), np.cos(angle))]) / scale
        maps.append(np.column_stack([matrix, (crop_px - 1) / 2 - matrix @ centre]))
    return replace(plan, to_crop=np.array(maps), alignment="landmarks-5")


def rotated(
    scale: float, angle_deg: float, centre: tuple[float, float], side_px: int = 112
) -> Similarity:
    """Return the map to a square around a point of the image."""
    angle = math.radians(angle_deg)
    cos, sin = scale * math.cos(angle), scale * math.sin(angle)
    matrix = np.array([[cos, -sin], [sin, cos]])
    return Similarity(matrix, (side_px - 1) / 2 - matrix @ centre)
