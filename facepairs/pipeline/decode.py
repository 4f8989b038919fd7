"""Crop plain JPEGs in TensorFlow's C++; other images are cropped as verification does.

Array contract: uint8[crop_px, crop_px, 3], RGB. Of a JPEG only the window that its crop needs is
decoded. Which of the two ways an image goes depends on the image alone, never on its batch: all
stores return the same bits. `facepairs.images` cuts the same crops with Pillow and NumPy; a test
compares the two.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import cv2
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.errors import BadImage
from facepairs.images.crop import Crop, CropSpec
from facepairs.images.crop_plan import CropPlan
from facepairs.images.photo import open_photo

CHUNK = 128  # images per run of an unrolled graph; tracing more is slow
MAX_BATCH_BYTES = 2**26  # the files of a larger batch are read one by one, to save memory
MAX_SCALE = 2  # pixels of a photo per pixel of its crop; from here on, pixels are averaged first

Maps = npt.NDArray[np.float64]
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def no_autograph(function: F) -> F:
    """Disable AutoGraph for a function without Python control flow.

    AutoGraph would slow tracing down and write its translation to a file, which stays behind when
    the process is killed.
    """
    unconverted: F = tf.autograph.experimental.do_not_convert(function)
    return unconverted


@dataclass(frozen=True)
class JpegCropper:
    """Crops plain JPEGs (see `CropPlan`) of which no pixels are averaged.

    An aligned crop must have over half of the photo's resolution, a centre square exactly that.

    Attributes:
        spec: Side of the crop; unaligned, which centre square it is.
        aligned: Whether every image has a map to its crop.
    """

    spec: CropSpec
    aligned: bool

    def fits(self, data: bytes, to_crop: Maps) -> bool:
        """Return whether no pixels are averaged in the crop of one JPEG; see `crop`."""
        if self.aligned:
            return bool(_keeps_pixels(to_crop[None]))
        return bool(self._place_one(data, to_crop)[0])

    def crop(self, data: bytes, to_crop: Maps) -> Crop | None:
        """Return the crop of one JPEG, or None if pixels would have to be averaged.

        Args:
            data: The file.
            to_crop: float64[2, 3], the map to its crop; not used unaligned.

        Raises:
            tf.errors.InvalidArgumentError: TensorFlow cannot decode it.
        """
        fits, windows, back = self._place_one(data, to_crop)
        if not fits:
            return None
        with tf.device("/CPU:0"):
            pixels: Crop = _decode(tf.constant(data), windows[0]).numpy()
        return self._warp(back, pixels)[0] if self.aligned else pixels

    def _place_one(
        self, data: bytes, to_crop: Maps
    ) -> tuple[np.bool_, npt.NDArray[np.int32], Maps]:
        with tf.device("/CPU:0"):
            shape = tf.image.extract_jpeg_shape(data).numpy()
        return self._place(to_crop[None], shape[None])

    def batch(
        self, files: tf.Tensor, to_crop: tf.Tensor, otherwise: Callable[[], tf.Tensor]
    ) -> tf.Tensor:
        """Return the crops of N JPEGs by a graph without a loop or branch per image.

        Those would take as long as decoding.

        Args:
            files: string[N], N known.
            to_crop: float64[N, 2, 3], or of any shape unaligned.
            otherwise: Returns the crops if pixels of an image have to be averaged.
        """
        shape = tf.TensorSpec([3], tf.int32)
        shapes = _in_chunks(lambda data: _each(tf.image.extract_jpeg_shape, data), shape, files)
        fits, windows, back = tf.numpy_function(
            self._place, [to_crop, shapes], (tf.bool, tf.int32, tf.float64), stateful=False
        )
        count, side = files.shape[0], self.spec.crop_px
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
        if not self.aligned:
            return tf.stack(pixels)
        return tf.numpy_function(self._warp, [back, *pixels], tf.uint8, stateful=False)

    def _place(
        self, to_crop: Maps, shapes: npt.NDArray[np.int32]
    ) -> tuple[np.bool_, npt.NDArray[np.int32], Maps]:
        """Return whether all images fit, and the windows of their crops.

        Args:
            to_crop: float64[N, 2, 3].
            shapes: int32[N, 3]: height, width, channels of the images.

        Returns:
            Whether no pixels are averaged, int32[N, 4] windows (top, left, height, width), never
            empty and within the image, and float64[N, 2, 3] maps from the crops to them.
        """
        sizes = shapes[:, :2]
        if not self.aligned:
            share = self.spec.crop_px / self.spec.frame_px
            sides = np.maximum(np.round(sizes.min(axis=1, keepdims=True) * share), 1)
            windows = np.hstack([(sizes - sides) // 2, sides, sides]).astype(np.int32)
            return np.all(sides == self.spec.crop_px), windows, np.zeros((len(sizes), 2, 3))
        matrix = np.linalg.inv(to_crop[:, :, :2])
        offset = -matrix @ to_crop[:, :, 2:]
        last = self.spec.crop_px - 1.0
        corners = matrix @ np.array([(0.0, last, 0.0, last), (0.0, 0.0, last, last)]) + offset
        most = sizes[:, ::-1] - 1
        low = np.clip(np.floor(corners.min(axis=2)) - 1, 0, most)
        high = np.clip(np.ceil(corners.max(axis=2)) + 1, low, most)
        windows = np.hstack([low[:, ::-1], (high - low)[:, ::-1] + 1]).astype(np.int32)
        back = np.dstack([matrix, offset - low[:, :, None]])
        return _keeps_pixels(to_crop), windows, back

    def _warp(self, back: Maps, *windows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return the aligned crops of windows: uint8[N, crop_px, crop_px, 3]."""
        side = self.spec.crop_px
        crops = np.empty((len(windows), side, side, 3), np.uint8)
        for crop, window, matrix in zip(crops, windows, back, strict=True):
            flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
            cv2.warpAffine(window, matrix, (side, side), crop, flags)
        return crops


def _keeps_pixels(to_crop: Maps) -> np.bool_:
    """Return whether maps, float64[N, 2, 3], shrink images by less than MAX_SCALE."""
    return np.all(np.hypot(to_crop[:, 0, 0], to_crop[:, 1, 0]) > 1 / MAX_SCALE)


class ImageCropper:
    """Crops any images of an index.

    Args:
        plan: How they are cropped.
    """

    def __init__(self, plan: CropPlan) -> None:
        self.plan = plan
        self.jpegs = JpegCropper(plan.spec, plan.to_crop is not None)

    def is_fast(self, data: bytes, image: int, name: str) -> bool:
        """Return whether `jpegs` crops an image; arguments and errors are those of `crop`."""
        return self._by_tensorflow(self.jpegs.fits, data, image, name) or False

    def crop(self, data: bytes, image: int, name: str) -> Crop:
        """Return the crop of an image.

        Args:
            data: The image file.
            image: Its number.
            name: What messages call it.

        Raises:
            BadImage: It cannot be decoded.
        """
        crop = self._by_tensorflow(self.jpegs.crop, data, image, name)
        return self.plan.crop(open_photo(data, name), image) if crop is None else crop

    def _by_tensorflow(
        self, function: Callable[[bytes, Maps], T], data: bytes, image: int, name: str
    ) -> T | None:
        """Call a function of `jpegs` if an image is a plain JPEG."""
        if not self.plan.plain[image]:
            return None
        try:
            return function(data, self.maps(np.array([image]))[0])
        except tf.errors.OpError:
            raise BadImage(f"{name}: TensorFlow cannot decode it; repair or remove it") from None

    def maps(self, images: npt.NDArray[np.integer[Any]]) -> Maps:
        """Return the maps of images, int[N], to their crops: float64[N, 2, 3]; zeros unaligned."""
        to_crop = self.plan.to_crop
        return np.zeros((len(images), 2, 3)) if to_crop is None else to_crop[images]


def crop_each(crop: Callable[..., Crop], side: int, columns: Sequence[tf.Tensor]) -> tf.Tensor:
    """Call a Python function for every image of a batch.

    Args:
        crop: Returns uint8[side, side, 3] from an image's element of every column; raises BadImage.
        side: Side of the crops.
        columns: Tensors of N rows.

    Returns:
        uint8[N, side, side, 3]; running it raises `tf.errors.InvalidArgumentError` for BadImage.
    """

    def crop_all(*rows: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
        crops = np.empty((len(rows[0]), side, side, 3), np.uint8)
        try:
            for number, row in enumerate(zip(*rows, strict=True)):
                crops[number] = crop(*row)
        except (BadImage, tf.errors.OpError) as error:
            raise ValueError(str(error)) from None
        return crops

    crops = tf.numpy_function(crop_all, columns, tf.uint8, stateful=False)
    return tf.ensure_shape(crops, (None, side, side, 3))


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
