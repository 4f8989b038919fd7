"""Crop plans of drawn photos."""

from facepairs.data.index import FaceIndex
from facepairs.faces.inspection import inspect_photos
from facepairs.images.crop import CropSpec
from facepairs.images.crop_plan import CropPlan


def whole_plan(index: FaceIndex, crop_px: int, frame_px: int = 250) -> CropPlan:
    """Return the plan that takes the centre square of every photo."""
    return inspect_photos(index, "none").crop_plan(CropSpec(frame_px, crop_px), "none")


def face_plan(index: FaceIndex, crop_px: int, frame_px: int = 250) -> CropPlan:
    """Return the plan that aligns the face of every photo."""
    return inspect_photos(index, "landmarks").crop_plan(CropSpec(frame_px, crop_px), "landmarks")
