"""Crop plain JPEGs in TensorFlow's C++; other images are cropped as verification does.

Array contract: uint8[crop_px, crop_px, 3], RGB. Of a JPEG only the window that its crop needs is
decoded. Which of the two ways an image goes depends on the image alone, never on its batch, so a
crop has the same bits in every store.

There are two warps. `facepairs.images` cuts the same crops with Pillow and NumPy, because the
verifier does without OpenCV (80 MB); training warps with OpenCV, because NumPy takes several times
as long as decoding. A test compares the two.
"""

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.errors import BadImage
from facepairs.images.crop import Crop
from facepairs.images.crop_plan import CropPlan
from facepairs.images.photo import open_photo

CHUNK = 128  # images per run of an unrolled graph; tracing more is slow
MAX_SCALE = 2  # pixels of a photo per pixel of its crop; from here on, pixels are averaged first

Maps = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.integer[Any]]


class Cropper:
    """Crops the images of an index.

    Args:
        plan: How they are cropped.
    """

    def __init__(self, plan: CropPlan) -> None:
        self.plan = plan
        self._side, self._aligned = plan.spec.crop_px, plan.to_crop is not None

    def crop(self, data: bytes, image: int, name: str) -> Crop:
        """Return the crop of an image.

        Args:
            data: The image file.
            image: Its number.
            name: What messages call it.

        Raises:
            BadImage: It cannot be decoded.
        """
        crop = None
        if self.plan.plain[image]:
            try:
                with tf.device("/CPU:0"):
                    crop = self._crop_jpeg(data, image)
            except tf.errors.OpError:
                reason = "TensorFlow cannot decode it; repair or remove it"
                raise BadImage(f"{name}: {reason}") from None
        return self.plan.crop(open_photo(data, name), image) if crop is None else crop

    def _crop_jpeg(self, data: bytes, image: int) -> Crop | None:
        """Return the crop of a plain JPEG, or None if pixels would have to be averaged."""
        shapes = tf.image.extract_jpeg_shape(data).numpy()[None]
        fits, windows, back = self._place(self.maps(np.array([image])), shapes)
        if not fits:
            return None
        pixels: Crop = _decode(tf.constant(data), windows[0]).numpy()
        return self._warp(back, pixels)[0] if self._aligned else pixels

    def maps(self, images: Numbers) -> Maps:
        """Return the maps of images, int[N], to their crops: float64[N, 2, 3]; zeros unaligned."""
        to_crop = self.plan.to_crop
        return np.zeros((len(images), 2, 3)) if to_crop is None else to_crop[images]

    def batch(
        self, files: tf.Tensor, to_crop: tf.Tensor, otherwise: Callable[[], tf.Tensor]
    ) -> tf.Tensor:
        """Return the crops of N plain JPEGs by a graph without a loop or branch per image.

        Those would take as long as decoding.

        Args:
            files: string[N], N known.
            to_crop: float64[N, 2, 3], their maps.
            otherwise: Returns the crops if pixels of an image have to be averaged.
        """
        shape = tf.TensorSpec([3], tf.int32)
        shapes = _in_chunks(lambda data: _each(tf.image.extract_jpeg_shape, data), shape, files)
        fits, windows, back = tf.numpy_function(
            self._place, [to_crop, shapes], (tf.bool, tf.int32, tf.float64), stateful=False
        )
        count, side = files.shape[0], self._side
        windows, back = tf.ensure_shape(windows, [count, 4]), tf.ensure_shape(back, [count, 2, 3])
        crop = tf.TensorSpec([side, side, 3], tf.uint8)
        return tf.cond(
            tf.ensure_shape(fits, []),
            lambda: _in_chunks(self._crops, crop, files, windows, back),
            otherwise,
        )

    def _crops(self, files: tf.Tensor, windows: tf.Tensor, back: tf.Tensor) -> tf.Tensor:
        """Decode the windows of JPEGs and warp them."""
        pixels = [
            _decode(data, window)
            for data, window in zip(tf.unstack(files), tf.unstack(windows), strict=True)
        ]
        if not self._aligned:
            return tf.stack(pixels)
        return tf.numpy_function(self._warp, [back, *pixels], tf.uint8, stateful=False)

    def _place(
        self, to_crop: Maps, shapes: npt.NDArray[np.int32]
    ) -> tuple[np.bool_, npt.NDArray[np.int32], Maps]:
        """Return whether no pixels have to be averaged, and the windows of the crops.

        An aligned crop must have over half of the photo's resolution, a centre square exactly that.

        Args:
            to_crop: float64[N, 2, 3].
            shapes: int32[N, 3]: height, width, channels of the images.

        Returns:
            Whether all images fit, int32[N, 4] windows (top, left, height, width), never empty and
            within the image, and float64[N, 2, 3] maps from the crops to them.
        """
        sizes = shapes[:, :2]
        if not self._aligned:
            share = self._side / self.plan.spec.frame_px
            sides = np.maximum(np.round(sizes.min(axis=1, keepdims=True) * share), 1)
            windows = np.hstack([(sizes - sides) // 2, sides, sides]).astype(np.int32)
            return np.all(sides == self._side), windows, np.zeros((len(sizes), 2, 3))
        matrix = np.linalg.inv(to_crop[:, :, :2])
        offset = -matrix @ to_crop[:, :, 2:]
        last = self._side - 1.0
        corners = matrix @ np.array([(0.0, last, 0.0, last), (0.0, 0.0, last, last)]) + offset
        most = sizes[:, ::-1] - 1
        low = np.clip(np.floor(corners.min(axis=2)) - 1, 0, most)
        high = np.clip(np.ceil(corners.max(axis=2)) + 1, low, most)
        windows = np.hstack([low[:, ::-1], (high - low)[:, ::-1] + 1]).astype(np.int32)
        back = np.dstack([matrix, offset - low[:, :, None]])
        fits = np.all(np.hypot(to_crop[:, 0, 0], to_crop[:, 1, 0]) > 1 / MAX_SCALE)
        return fits, windows, back

    def _warp(self, back: Maps, *windows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return the aligned crops of windows: uint8[N, crop_px, crop_px, 3]."""
        crops = np.empty((len(windows), self._side, self._side, 3), np.uint8)
        for crop, window, matrix in zip(crops, windows, back, strict=True):
            flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
            cv2.warpAffine(window, matrix, (self._side, self._side), crop, flags)
        return crops


def read_files(paths: tf.Tensor) -> tf.Tensor:
    """Read files: string[N] paths, N known → string[N] contents."""
    text = tf.TensorSpec([], tf.string)
    return _in_chunks(lambda part: _each(tf.io.read_file, part), text, paths)


def _decode(data: tf.Tensor, window: Any) -> tf.Tensor:
    """Decode a window (top, left, height, width) of a JPEG."""
    return tf.io.decode_and_crop_jpeg(data, window, channels=3, dct_method="INTEGER_ACCURATE")


def _each(function: Callable[[tf.Tensor], tf.Tensor], values: tf.Tensor) -> tf.Tensor:
    return tf.stack([function(value) for value in tf.unstack(values)])


def _in_chunks(
    function: Callable[..., tf.Tensor], result: tf.TensorSpec, *columns: tf.Tensor
) -> tf.Tensor:
    """Apply a function that unrolls its rows to all rows, or to chunks if there are many.

    Args:
        function: Takes some rows of every column and returns a tensor with as many rows.
        result: One row of what it returns.
        *columns: Tensors of N rows, N known.
    """
    count = int(columns[0].shape[0])
    chunk = next(size for size in range(min(count, CHUNK), 0, -1) if count % size == 0)
    if chunk == count:
        return tf.ensure_shape(function(*columns), [count, *result.shape])
    parts = tuple(tf.reshape(column, [-1, chunk, *column.shape[1:]]) for column in columns)
    spec = tf.TensorSpec([chunk, *result.shape], result.dtype)
    chunks = tf.map_fn(lambda part: function(*part), parts, fn_output_signature=spec)
    return tf.reshape(chunks, [count, *result.shape])


def decode_jpegs(files: tf.Tensor, side: int) -> tf.Tensor:
    """Decode JPEGs of one size: string[N], N known → uint8[N, side, side, 3]."""
    return _in_chunks(
        lambda part: _each(
            lambda data: tf.io.decode_jpeg(data, 3, dct_method="INTEGER_ACCURATE"), part
        ),
        tf.TensorSpec([side, side, 3], tf.uint8),
        files,
    )
