"""Align a face by five landmarks: a similarity onto the canonical frame, and the crop of it.

The frame is 250 x 250 pixels. Its landmarks are the mean ones of Labeled Faces in the Wild,
deep-funneled: detected in all 13,233 photos, averaged, and made symmetric. A network sees the
centre of the frame.

References:
    Umeyama: Least-squares estimation of transformation parameters between two point patterns.
    IEEE TPAMI, 1991.
"""

import numpy as np
import numpy.typing as npt

from facepairs.images.crop import CropSpec
from facepairs.images.warp import Points, Similarity, centred_square

FRAME_PX = 250
TEMPLATE = np.array(
    [(102.6, 112.1), (146.4, 112.1), (124.5, 136.7), (105.9, 155.4), (143.1, 155.4)]
)
"""float64[5, 2]: (x, y) of the eyes, the nose tip and the mouth corners, the image's left first."""

# Inverse variances over LFW, the eyes' set to one: the nose tip moves with every turn of the head.
WEIGHTS = np.array([1.0, 1.0, 0.43, 0.62, 0.62])


def fit_similarity(landmarks: Points) -> Similarity:
    """Return the map from landmarks to the template by weighted least squares.

    Args:
        landmarks: float64[5, 2] in the template's order, not all equal.
    """
    fitted = fit_similarities(landmarks[None])[0]
    return Similarity(fitted[:, :2], fitted[:, 2])


def fit_similarities(landmarks: npt.NDArray[np.floating]) -> Points:
    """Return the maps of many faces, as `fit_similarity`; NaN where landmarks are NaN.

    Args:
        landmarks: float[N, 5, 2].

    Returns:
        float64[N, 2, 3]: matrix and offset of each map.
    """
    weights = WEIGHTS / WEIGHTS.sum()
    points = landmarks.astype(np.float64)
    centre, target = np.einsum("i,nij->nj", weights, points), weights @ TEMPLATE
    a, b = points - centre[:, None], TEMPLATE - target
    size = np.einsum("i,nij,nij->n", weights, a, a)
    cos = np.einsum("i,nij,ij->n", weights, a, b) / size
    sin = np.einsum("i,ni->n", weights, a[..., 0] * b[:, 1] - a[..., 1] * b[:, 0]) / size
    matrix = np.stack([np.stack([cos, -sin], 1), np.stack([sin, cos], 1)], 1)
    offset = target - np.einsum("nij,nj->ni", matrix, centre)
    return np.concatenate([matrix, offset[..., None]], axis=2)


def to_crop(to_frame: Similarity, spec: CropSpec) -> Similarity:
    """Return the map from an image to the crop that a network sees of the canonical frame.

    Args:
        to_frame: The face's map to the frame, from `fit_similarity`.
        spec: Which centre square of a frame of `spec.frame_px`, to which the canonical one scales.
    """
    return centred_square(to_frame, FRAME_PX, spec.frame_px / FRAME_PX, spec.crop_px)
