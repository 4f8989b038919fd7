"""A face by its five landmarks: the similarity onto the canonical frame, and the crop of it.

The frame is 250 x 250 pixels. Its landmarks are the mean ones of Labeled Faces in the Wild,
deep-funneled: detected in all 13,233 photos, averaged, and made symmetric. A network sees the
centre of the frame, or a square with landmarks of its own, as networks of others do.

References:
    Umeyama: Least-squares estimation of transformation parameters between two point patterns.
    IEEE TPAMI, 1991.
"""

from functools import cache, cached_property
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from facepairs.photos.crop import Crop, CropSpec, Points, Similarity, centred_square, warp_photo
from facepairs.photos.photo import Photo

FRAME_PX = 250
FACE_PX = 114  # the square around a face in the canonical frame, from the brows to the chin
TEMPLATE = np.array(
    [(102.6, 112.1), (146.4, 112.1), (124.5, 136.7), (105.9, 155.4), (143.1, 155.4)]
)
"""float64[5, 2]: (x, y) of the eyes, the nose tip and the mouth corners, the image's left first."""

# Inverse variances over LFW, the eyes' set to one: the nose tip moves with every turn of the head.
WEIGHTS = np.array([1.0, 1.0, 0.43, 0.62, 0.62])


class Face(msgspec.Struct, frozen=True, eq=False, array_like=True, dict=True):
    """A face that was found, in pixels of its image.

    Attributes:
        landmarks: float64[5, 2], (x, y) of the eyes, the nose tip and the mouth corners; what is
            at the image's left when the face is upright comes first.
        score: Certainty from 0 to 1.
    """

    landmarks: Points
    score: Annotated[float, msgspec.Meta(ge=0, le=1)]

    @cached_property
    def to_frame(self) -> Similarity:
        """The map from the image to the canonical frame."""
        return fit_similarity(self.landmarks)

    @cached_property
    def centre(self) -> Points:
        """float64[2], the point that alignment maps to the frame's centre."""
        middle: Points = self.to_frame.inverse()(np.full((1, 2), (FRAME_PX - 1) / 2))[0]
        return middle

    @property
    def side_px(self) -> float:
        """Side of the square around the face, from the brows to the chin."""
        return FACE_PX / self.to_frame.scale

    @property
    def box(self) -> list[int]:
        """The square around the face, from the brows to the chin: left, top and side in pixels."""
        side = self.side_px
        left, top = self.centre - side / 2
        return [round(value) for value in (left, top, side)]

    @property
    def roll_deg(self) -> float:
        """Rotation of the head in the image plane, clockwise; from -180 to 180."""
        return -self.to_frame.angle_deg

    @property
    def yaw(self) -> float:
        """Offset of the nose tip from the middle of the eyes, in eye distances; 0 from the front.

        Positive when the nose points to the right of the upright face, as images are shown.
        """
        eyes, nose = self.landmarks[:2], self.landmarks[2]
        across = eyes[1] - eyes[0]
        return float((nose - eyes.mean(axis=0)) @ across / max(across @ across, 1e-9))

    def scaled(self, scale: float) -> "Face":
        """Return the face in a copy of the image that is `scale` times as large."""
        return Face((self.landmarks + 0.5) * scale - 0.5, self.score)


class _Target(NamedTuple):
    """Target points of a fit: normalised weights, weighted mean, and offsets from it."""

    shares: list[float]
    mean: list[float]
    centred: list[list[float]]

    @classmethod
    def of(cls, points: Points, weights: Points) -> "_Target":
        mean = weights @ points / weights.sum()
        shares = weights / weights.sum()
        return cls(shares.tolist(), mean.tolist(), (points - mean).tolist())


_FRAME = _Target.of(TEMPLATE, WEIGHTS)


def fit_similarity(landmarks: Points) -> Similarity:
    """Return the map from landmarks to the template by weighted least squares.

    Args:
        landmarks: float64[5, 2] in the template's order, not all equal.
    """
    return _similarity(landmarks, _FRAME)


def fit_crop(landmarks: Points, spec: CropSpec) -> Similarity:
    """Return the map from an image to the crop that a network sees of a face.

    Args:
        landmarks: As in `fit_similarity`.
        spec: Where the landmarks belong: as close as possible to `spec.points` by least squares
            with equal weights, as the networks of others expect; without points in the canonical
            frame, of which the crop is the centre.
    """
    if spec.points is not None:
        return _similarity(landmarks, _target_of(spec.points))
    scale = spec.frame_px / FRAME_PX
    return centred_square(fit_similarity(landmarks), FRAME_PX, scale, spec.crop_px)


def fit_crops(landmarks: npt.NDArray[np.floating], spec: CropSpec) -> Points:
    """Return the maps to the crops of many faces, as `fit_crop`; NaN where landmarks are NaN.

    Args:
        landmarks: float[N, 5, 2].
        spec: As in `fit_crop`.

    Returns:
        float64[N, 2, 3]: matrix and offset of each map.
    """
    if spec.points is not None:
        return _similarities(landmarks, _target_of(spec.points))
    whole = Similarity(np.eye(2), np.zeros(2))
    square = centred_square(whole, FRAME_PX, spec.frame_px / FRAME_PX, spec.crop_px)
    crops: Points = _similarities(landmarks, _FRAME) * square.matrix[0, 0]
    crops[:, :, 2] += square.offset
    return crops


def crop_face(photo: Photo, landmarks: Points, spec: CropSpec) -> Crop:
    """Cut the crop that a network sees of a face; arguments as for `fit_crop`.

    Raises:
        BadImage: The photo is damaged.
    """
    return warp_photo(photo, fit_crop(landmarks, spec), spec.crop_px)


@cache
def _target_of(points: tuple[tuple[float, float], ...]) -> _Target:
    return _Target.of(np.array(points), np.ones(len(points)))


def _similarity(landmarks: Points, target: _Target) -> Similarity:
    xs, ys = landmarks.T.tolist()
    cos, sin, x, y = _fit(xs, ys, target)
    return Similarity(np.array([(cos, -sin), (sin, cos)]), np.array([x, y]))


def _fit(xs: Any, ys: Any, target: _Target) -> tuple[Any, Any, Any, Any]:
    """Return cosine, sine (both times the scale) and offset of the map from five x and y.

    Each is a number or an array: plain numbers are ten times as fast for a single face.
    """
    shares, mean, centred = target
    left = top = size = cos = sin = 0.0
    for share, x, y in zip(shares, xs, ys, strict=True):  # `sum` rounds otherwise from Python 3.12
        left, top = left + share * x, top + share * y
    for share, (to_x, to_y), x, y in zip(shares, centred, xs, ys, strict=True):
        across, down = x - left, y - top
        size = size + share * (across * across + down * down)
        cos = cos + share * (across * to_x + down * to_y)
        sin = sin + share * (across * to_y - down * to_x)
    cos, sin = cos / size, sin / size
    return cos, sin, mean[0] - cos * left + sin * top, mean[1] - sin * left - cos * top


def _similarities(landmarks: npt.NDArray[np.floating], target: _Target) -> Points:
    xs, ys = landmarks.astype(np.float64).transpose(2, 1, 0)
    cos, sin, x, y = _fit(xs, ys, target)
    maps: Points = np.stack([cos, -sin, x, sin, cos, y], axis=1).reshape(-1, 2, 3)
    return maps
