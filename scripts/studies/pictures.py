"""Pictures made from LFW's photos, with the map from the photo to each: scenes, turns, covers."""

from functools import partial
from typing import Any, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from facepairs.photos.crop import Similarity
from facepairs.photos.frame import FRAME_PX, fit_similarity

SCALES, LONG_PX = (0.4, 2.0), (640, 1280)
TURNS_DEG = {"scene": (0.0, 20.0), "steep scene": (20.0, 60.0)}
QUARTERS_DEG = (90, 180, 270)
COVERED = {  # rectangles of the canonical frame, left, top, right and bottom; and their colours
    "mouth and chin covered": ((80, 138, 170, 200), (150, 180, 210)),
    "eyes covered": ((85, 101, 165, 123), (20, 20, 20)),
}
BACKGROUNDS = ("noise", "gradient", "texture", "photo")

Pixels = npt.NDArray[np.uint8]
Points = npt.NDArray[np.float64]


class Picture(NamedTuple):
    """A changed photo, and the map from LFW's photo to it."""

    image: Pixels
    place: Similarity
    scale: float = 1.0
    turn_deg: float = 0.0
    background: str = ""


def turned(scale: float, angle_deg: float, x: float, y: float) -> Similarity:
    """Return the map that scales and turns (clockwise) LFW's photo and puts its centre at x, y."""
    angle = np.deg2rad(angle_deg)
    matrix = scale * np.array([(np.cos(angle), -np.sin(angle)), (np.sin(angle), np.cos(angle))])
    return Similarity(matrix, np.array([x, y]) - matrix @ np.full(2, (FRAME_PX - 1) / 2))


def make_scene(face: Pixels, other: Pixels, kind: str, seed: int, number: int) -> Picture:
    """Paste a photo into a larger picture; the same arguments give the same scene."""
    place_of = list(TURNS_DEG).index(kind)
    rng = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, place_of, number]))
    scale = float(np.exp(rng.uniform(*np.log(SCALES))))
    turn = float(rng.uniform(*TURNS_DEG[kind]) * rng.choice([-1, 1]))
    long = int(rng.uniform(*LONG_PX))
    width, height = (long, long * 3 // 4) if rng.random() < 0.5 else (long * 3 // 4, long)
    background = BACKGROUNDS[int(rng.integers(len(BACKGROUNDS)))]
    picture = _background(background, width, height, other, rng)
    half = min(FRAME_PX * scale, width, height) / 2
    x, y = rng.uniform(half, width - half), rng.uniform(half, height - half)
    place = turned(scale, turn, x - 0.5, y - 0.5)
    return Picture(_paste(picture, face, place), place, scale, turn, background)


def _paste(picture: Pixels, face: Pixels, place: Similarity) -> Pixels:
    size = round(FRAME_PX * min(1.0, place.scale))
    small = cv2.resize(face, (size, size), interpolation=cv2.INTER_AREA)
    edge = max(1, size // 25)  # soft, because a hard edge could influence the detector
    soft = np.zeros((size, size), np.float32)
    soft[edge:-edge, edge:-edge] = 1
    soft = cv2.GaussianBlur(soft, (0, 0), edge / 2)
    moved = partial(_warp, place=place.of_scaled_image(size / FRAME_PX), size=picture.shape[1::-1])
    mask = moved(soft)[..., None]
    return (moved(small, border=cv2.BORDER_REPLICATE) * mask + picture * (1 - mask)).astype(
        np.uint8
    )


def _warp(
    image: Any, place: Similarity, size: tuple[int, ...], border: int = cv2.BORDER_CONSTANT
) -> Any:
    matrix = np.column_stack([place.matrix, place.offset])
    return cv2.warpAffine(image, matrix, size, flags=cv2.INTER_LINEAR, borderMode=border)


def _background(
    kind: str, width: int, height: int, other: Pixels, rng: np.random.Generator
) -> Pixels:
    size = (width, height)
    if kind == "noise":
        coarse = rng.integers(0, 256, (height // 8 + 1, width // 8 + 1, 3)).astype(np.uint8)
        fine = rng.integers(0, 24, (height, width, 1))
        smooth = cv2.resize(coarse, size, interpolation=cv2.INTER_CUBIC)
        return (smooth * 0.6 + 40 + fine).astype(np.uint8)
    if kind == "gradient":
        corners = rng.integers(0, 256, (2, 2, 3)).astype(np.uint8)
        return cv2.resize(corners, size, interpolation=cv2.INTER_LINEAR)
    if kind == "texture":
        small = cv2.GaussianBlur(other, (0, 0), FRAME_PX / 20)
        return cv2.resize(small, size, interpolation=cv2.INTER_LINEAR)
    face = np.zeros((FRAME_PX, FRAME_PX), np.float32)
    cv2.ellipse(face, (FRAME_PX // 2, FRAME_PX // 2), (75, 95), 0, 0, 360, 1, -1)
    mask = cv2.GaussianBlur(face, (0, 0), 6)[..., None]
    hidden = other * (1 - mask) + cv2.GaussianBlur(other, (0, 0), 30) * mask
    side = max(size)
    large = cv2.resize(hidden.astype(np.uint8), (side, side), interpolation=cv2.INTER_LINEAR)
    left, top = (side - width) // 2, (side - height) // 2
    return large[top : top + height, left : left + width]


def turn_by_quarters(photo: Pixels, angle_deg: int) -> Picture:
    """Turn a photo clockwise by a multiple of 90 degrees, without resampling."""
    middle = (FRAME_PX - 1) / 2
    image = np.ascontiguousarray(np.rot90(photo, -angle_deg // 90))
    return Picture(image, turned(1.0, angle_deg, middle, middle), turn_deg=angle_deg)


def cover(photo: Pixels, landmarks: Points, kind: str) -> Picture:
    """Cover a part of the face by a rectangle of one colour."""
    (left, top, right, bottom), colour = COVERED[kind]
    corners = np.array([(left, top), (right, top), (right, bottom), (left, bottom)], np.float64)
    image = photo.copy()
    place = fit_similarity(landmarks).inverse()(corners)
    cv2.fillConvexPoly(image, place.round().astype(np.int32), colour)
    return Picture(image, turned(1.0, 0.0, (FRAME_PX - 1) / 2, (FRAME_PX - 1) / 2))
