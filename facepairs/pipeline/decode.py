"""Crop plain JPEGs in TensorFlow's C++; other images are cropped as verification does.

Array contract: uint8[crop_px, crop_px, 3], RGB. Of a JPEG only the window that its crop needs is
decoded. Which of the two ways an image goes depends on the image alone, never on its batch, so a
crop has the same bits in every store (but for pair caches of JPEGs, which store it with a loss).

There are two warps. `facepairs.images` cuts the same crops with Pillow, because the verifier does
without OpenCV (80 MB); training warps with OpenCV, because Pillow takes as long as decoding. A test
compares the two.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.errors import BadImage
from facepairs.images.crop import Crop, CropPlan
from facepairs.images.photo import open_photo

CHUNK = 128  # images per run of an unrolled graph; tracing more is slow
MAX_SCALE = 2  # pixels of a photo per pixel of its crop; from here on, pixels are averaged first

DCT = "INTEGER_ACCURATE"  # as Pillow decodes

Maps = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.integer[Any]]


class Cropper:
    """Crops the images of an index.

    Args:
        plan: How they are cropped.
    """

    def __init__(self, plan: CropPlan) -> None:
        self._plan, self._side = plan, plan.spec.crop_px
        self._aligned = plan.to_crop is not None

    def crop(self, data: bytes, image: int, name: str) -> Crop:
        """Return the crop of an image.

        Args:
            data: The image file.
            image: Its number.
            name: What messages call it.

        Raises:
            BadImage: It cannot be decoded.
        """
        fast, windows, back = self.place(np.array([image]))
        if not fast[0]:
            return self._plan.crop(open_photo(data, name), image)
        try:
            with tf.device("/CPU:0"):
                pixels: Crop = _decode_window(tf.constant(data), windows[0]).numpy()
        except tf.errors.OpError:
            raise BadImage(f"{name}: TensorFlow cannot decode it; repair or remove it") from None
        return self._warp(back, pixels)[0] if self._aligned else pixels

    def place(self, images: Numbers) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int32], Maps]:
        """Return the windows of images, int[N], that their crops need.

        Returns:
            Whether TensorFlow crops the image, bool[N]: a plain JPEG of which no pixels have to be
            averaged, as an aligned crop has over half of the photo's resolution, a centre square
            exactly that. Then int32[N, 4] windows (top, left, height, width), never empty and
            within the image, and float64[N, 2, 3] maps from the crops to them.
        """
        sizes = self._plan.plain_px[images]
        fast = sizes[:, 0] > 0
        if self._plan.to_crop is None:
            share = self._side / self._plan.spec.frame_px
            sides = np.maximum(np.round(sizes.min(axis=1, keepdims=True) * share), 1)
            windows = np.hstack([(sizes - sides) // 2, sides, sides]).astype(np.int32)
            return fast & (sides[:, 0] == self._side), windows, np.zeros((len(sizes), 2, 3))
        to_crop = self._plan.to_crop[images]
        matrix = np.linalg.inv(to_crop[:, :, :2])
        offset = -matrix @ to_crop[:, :, 2:]
        last = self._side - 1.0
        corners = matrix @ np.array([(0.0, last, 0.0, last), (0.0, 0.0, last, last)]) + offset
        most = sizes[:, ::-1] - 1
        low = np.clip(np.floor(corners.min(axis=2)) - 1, 0, most)
        high = np.clip(np.ceil(corners.max(axis=2)) + 1, low, most)
        windows = np.hstack([low[:, ::-1], (high - low)[:, ::-1] + 1]).astype(np.int32)
        keeps_pixels = np.hypot(to_crop[:, 0, 0], to_crop[:, 1, 0]) > 1 / MAX_SCALE
        return fast & keeps_pixels, windows, np.dstack([matrix, offset - low[:, :, None]])

    def read(self, paths: tf.Tensor, windows: tf.Tensor, back: tf.Tensor) -> tf.Tensor:
        """Read and crop images that TensorFlow crops.

        Args:
            paths: string[N], N known.
            windows: int32[N, 4], as `place` returns them.
            back: float64[N, 2, 3], likewise.

        Returns:
            uint8[N, crop_px, crop_px, 3].
        """

        def crops(paths: tf.Tensor, windows: tf.Tensor, back: tf.Tensor) -> tf.Tensor:
            pixels = [
                _decode_window(tf.io.read_file(path), window)
                for path, window in zip(tf.unstack(paths), tf.unstack(windows), strict=True)
            ]
            if not self._aligned:
                return tf.stack(pixels)
            return tf.numpy_function(self._warp, [back, *pixels], tf.uint8, stateful=False)

        return _unrolled(crops, self._side, paths, windows, back)

    def _warp(self, back: Maps, *windows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return the aligned crops of windows: uint8[N, crop_px, crop_px, 3]."""
        crops = np.empty((len(windows), self._side, self._side, 3), np.uint8)
        for crop, window, matrix in zip(crops, windows, back, strict=True):
            flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
            cv2.warpAffine(window, matrix, (self._side, self._side), crop, flags)
        return crops


def decode_jpegs(files: tf.Tensor, side: int) -> tf.Tensor:
    """Decode JPEGs of one size: string[N], N known → uint8[N, side, side, 3]."""
    decode = partial(tf.io.decode_jpeg, channels=3, dct_method=DCT)
    return _unrolled(lambda part: tf.stack([*map(decode, tf.unstack(part))]), side, files)


def _decode_window(data: tf.Tensor, window: Any) -> tf.Tensor:
    """Decode a window (top, left, height, width) of a JPEG."""
    return tf.io.decode_and_crop_jpeg(data, window, channels=3, dct_method=DCT)


def _unrolled(crops_of: Callable[..., tf.Tensor], side: int, *columns: tf.Tensor) -> tf.Tensor:
    """Make crops by a graph without a loop or branch per image, which would double the time.

    Args:
        crops_of: Takes some rows of every column, and returns their crops by unrolling the rows.
        side: Side of the crops.
        *columns: Tensors of N rows, N known. Many are handled in chunks.
    """
    count = int(columns[0].shape[0])
    chunk = next(size for size in range(min(count, CHUNK), 0, -1) if count % size == 0)
    if chunk == count:
        return tf.ensure_shape(crops_of(*columns), [count, side, side, 3])
    parts = tuple(tf.reshape(column, [-1, chunk, *column.shape[1:]]) for column in columns)
    crops = tf.TensorSpec([chunk, side, side, 3], tf.uint8)
    chunks = tf.map_fn(lambda part: crops_of(*part), parts, fn_output_signature=crops)
    return tf.reshape(chunks, [count, side, side, 3])
