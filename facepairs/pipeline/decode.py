"""Crop plain JPEGs in TensorFlow's C++; other images are cropped as verification does.

Array contract: uint8[crop_px, crop_px, 3], RGB. Of a JPEG only the window that its crop needs is
decoded. Where the crop is much smaller, the photo is decoded at a half, a quarter or an eighth of
its size (libjpeg's DCT scaling), as in verification. How an image is decoded depends on the image
alone, never on its batch, so a crop has the same bits in every store (but for pair caches of JPEGs,
which store it with a loss).

There are two warps. `facepairs.photos` cuts the same crops with Pillow, because the verifier does
without OpenCV (80 MB); training warps with OpenCV, because Pillow takes as long as decoding. A test
compares the two.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from PIL import Image

from facepairs.errors import BadImage
from facepairs.photos.crop import Crop, CropPlan, resize_box
from facepairs.photos.photo import open_photo

CHUNK = 128  # images per run of an unrolled graph; tracing more is slow
FILES_AT_A_TIME = 4  # that each batch of large photos holds in memory
RATIOS = (1, 2, 4, 8)  # by which libjpeg can shrink while it decodes
DCT = "INTEGER_ACCURATE"  # as Pillow decodes
PLACED_AT_ONCE = 2**16  # images, to save memory

# By EXIF orientation, 1 to 8: from a place in the stored photo to that in the upright one, (x, y).
TO_UPRIGHT = np.array(
    [
        [(1, 0), (0, 1)],
        [(-1, 0), (0, 1)],
        [(-1, 0), (0, -1)],
        [(1, 0), (0, -1)],
        [(0, 1), (1, 0)],
        [(0, -1), (1, 0)],
        [(0, -1), (-1, 0)],
        [(0, 1), (-1, 0)],
    ],
    np.float64,
)

Maps = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.integer[Any]]


class Placement(NamedTuple):
    """How images are decoded.

    Attributes:
        decoder: int32[N], 0: as verification does. 1 to 4: by TensorFlow, at a ratio of 1, 2, 4, 8.
        windows: int32[N, 4] parts (top, left, height, width) of the stored photos, shrunk by the
            ratio; never empty and within the photo, if TensorFlow decodes it.
        back: float64[N, 2, 3] maps from the crops to the windows.
    """

    decoder: npt.NDArray[np.int32]
    windows: npt.NDArray[np.int32]
    back: Maps


class Cropper:
    """Crops the images of an index.

    How each is decoded is worked out once, because NumPy would take as long for every small batch
    as TensorFlow takes for some of its photos. It needs 68 bytes per image.

    Args:
        plan: How they are cropped.
    """

    def __init__(self, plan: CropPlan) -> None:
        self._plan, self._side = plan, plan.spec.crop_px
        self._finish = _resize if plan.to_crop is None else _warp
        parts = np.array_split(np.arange(len(plan)), len(plan) // PLACED_AT_ONCE + 1)
        columns = zip(*map(self._place, parts), strict=True)
        self._placement = Placement(*map(np.concatenate, columns))

    def crop(self, data: bytes, image: int, name: str) -> Crop:
        """Return the crop of an image.

        Args:
            data: The image file.
            image: Its number.
            name: What messages call it.

        Raises:
            BadImage: It cannot be decoded.
        """
        decoder, windows, back = self.place(np.array([image]))
        if not decoder[0]:
            return self._plan.crop(open_photo(data, name), image)
        try:
            with tf.device("/CPU:0"):
                ratio = RATIOS[decoder[0] - 1]
                pixels = decode_window(tf.constant(data), windows[0], ratio).numpy()
        except tf.errors.OpError:
            raise BadImage(f"{name}: TensorFlow cannot decode it; repair or remove it") from None
        return self._finish(pixels, back[0], self._side)

    def place(self, images: Numbers) -> Placement:
        """Return how images, int[N], are decoded."""
        decoder, windows, back = self._placement
        return Placement(decoder[images], windows[images], back[images])

    def _place(self, images: Numbers) -> Placement:
        """Work out how images, int[N], are decoded."""
        jpegs = self._plan.jpegs[images]
        sizes, turn = jpegs[:, 1::-1].astype(np.float64), TO_UPRIGHT[jpegs[:, 2] - 1]  # x, y
        to_crop = self._to_crop(images, sizes)
        shrink = 1 / np.hypot(*to_crop[:, :, 0].T)
        if self._plan.to_crop is None:
            shrink /= 2  # resizing still averages
        exponent = np.searchsorted(RATIOS[1:], shrink, side="right")
        ratio = np.array(RATIOS)[exponent][:, None]
        stored = np.abs(np.einsum("nji,nj->ni", turn, sizes))
        # From the crop back to the upright photo, to the stored one, and to that one shrunk.
        matrix = np.linalg.inv(to_crop[:, :, :2] @ turn)
        offset = to_crop[:, :, 2] + np.einsum(
            "nij,njk,nk->ni", to_crop[:, :, :2], np.maximum(-turn, 0), stored - 1
        )
        place = (0.5 - np.einsum("nij,nj->ni", matrix, offset)) / ratio - 0.5
        back = np.dstack([matrix / ratio[:, :, None], place])
        low, high = self._reach(back, -(-stored // ratio))
        windows = np.hstack([low[:, ::-1], (high - low)[:, ::-1]]).astype(np.int32)
        back[:, :, 2] -= low
        return Placement(np.where(jpegs[:, 0] > 0, exponent + 1, 0).astype(np.int32), windows, back)

    def _to_crop(self, images: Numbers, sizes: Maps) -> Maps:
        """Return the maps from upright photos to crops: float64[N, 2, 3]."""
        if self._plan.to_crop is not None:
            return self._plan.to_crop[images]
        share = self._side / self._plan.spec.frame_px
        side = np.maximum(np.round(sizes.min(axis=1, keepdims=True) * share), 1)
        scale, corner = self._side / side, (sizes - side) // 2
        matrix = np.eye(2) * scale[:, :, None]
        return np.dstack([matrix, (0.5 - corner) * scale - 0.5])

    def _reach(self, back: Maps, sizes: Maps) -> tuple[Maps, Maps]:
        """Return where the windows begin and end: float64[N, 2] of (x, y) each."""
        edge = 0.5 if self._plan.to_crop is None else 0.0  # of a pixel, whose middle is at 0
        first, last = -edge, self._side - 1 + edge
        corners = back[:, :, :2] @ np.array(
            [(first, last, first, last), (first, first, last, last)]
        )
        corners += back[:, :, 2:] + edge
        most = np.maximum(sizes, 1)
        around = np.ones((len(back), 1))  # pixels, as colours at the edge of a window may be off
        if self._plan.to_crop is None:
            corners = np.round(corners * RATIOS[-1]) / RATIOS[-1]
            around[_is_copy(back)] = 0
        low, high = np.floor(corners.min(axis=2)) - around, np.ceil(corners.max(axis=2)) + around
        high += 1 - 2 * edge  # of pixels' middles, it was the last one
        low = np.clip(low, 0, most - 1)
        return low, np.clip(high, low + 1, most)

    def is_simple(self, placement: Placement) -> bool:
        """Return whether `read` can make the crops: each window needs at most a warp."""
        if (placement.decoder != 1).any():
            return False
        if self._plan.to_crop is not None:
            return True
        return bool(_is_copy(placement.back).all())

    def read(self, paths: tf.Tensor, windows: tf.Tensor, back: tf.Tensor) -> tf.Tensor:
        """Read and crop images of which `is_simple` is true, all at once.

        Args:
            paths: string[N], N known.
            windows: int32[N, 4], of a placement.
            back: float64[N, 2, 3], likewise.

        Returns:
            uint8[N, crop_px, crop_px, 3].
        """

        def crops(paths: tf.Tensor, windows: tf.Tensor, back: tf.Tensor) -> tf.Tensor:
            pixels = [
                decode_window(tf.io.read_file(path), window)
                for path, window in zip(tf.unstack(paths), tf.unstack(windows), strict=True)
            ]
            if self._plan.to_crop is None:
                return tf.stack(pixels)
            warp = partial(_warp_all, self._side)
            return tf.numpy_function(warp, [back, *pixels], tf.uint8, stateful=False)

        return _unrolled(crops, self._side, paths, windows, back)

    def read_each(
        self,
        images: tf.Tensor,
        paths: tf.Tensor,
        decoder: tf.Tensor,
        windows: tf.Tensor,
        back: tf.Tensor,
        other: Callable[[Any], Crop],
    ) -> tf.Tensor:
        """Read and crop any images, a few at a time.

        Args:
            images: int32[N], their numbers.
            paths: string[N].
            decoder: int32[N], of a placement.
            windows: int32[N, 4], likewise.
            back: float64[N, 2, 3], likewise.
            other: Returns the crop of an image that TensorFlow does not decode, by its number.

        Returns:
            uint8[N, crop_px, crop_px, 3].
        """
        crop = tf.TensorSpec([self._side, self._side, 3], tf.uint8)
        finish = partial(self._finish, side=self._side)

        def read_one(row: tuple[tf.Tensor, ...]) -> tf.Tensor:
            image, path, decoder, window, back = row

            def scaled(ratio: int) -> tf.Tensor:
                pixels = decode_window(tf.io.read_file(path), window, ratio)
                return tf.numpy_function(finish, [pixels, back], tf.uint8, stateful=False)

            def verified() -> tf.Tensor:
                return tf.numpy_function(other, [image], tf.uint8, stateful=False)

            ways = [verified, *(partial(scaled, ratio) for ratio in RATIOS)]
            return tf.ensure_shape(tf.switch_case(decoder, ways), crop.shape)

        rows = (images, paths, decoder, windows, back)
        return tf.map_fn(
            read_one, rows, parallel_iterations=FILES_AT_A_TIME, fn_output_signature=crop
        )


def _warp_all(side: int, back: Maps, *windows: Crop) -> Crop:
    """Return the aligned crops of windows: uint8[N, side, side, 3]."""
    crops = np.empty((len(windows), side, side, 3), np.uint8)
    reductions = np.hypot(back[:, 0, 0], back[:, 1, 0]).astype(int).tolist()
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    for crop, window, matrix, reduction in zip(crops, windows, back, reductions, strict=True):
        pixels, place = _shrink(window, matrix, reduction) if reduction > 1 else (window, matrix)
        cv2.warpAffine(pixels, place, (side, side), crop, flags)
    return crops


def _shrink(window: Crop, back: Maps, reduction: int) -> tuple[Crop, Maps]:
    """Average whole pixels of a window, as verification does before it warps."""
    place = (back[:, 2] + 0.5) / reduction - 0.5
    pixels = np.asarray(Image.fromarray(window).reduce(reduction))
    return pixels, np.column_stack([back[:, :2] / reduction, place])


def _warp(window: Crop, back: Maps, side: int) -> Crop:
    """Return the aligned crop of a window."""
    crop: Crop = _warp_all(side, back[None], window)[0]
    return crop


def _resize(window: Crop, back: Maps, side: int) -> Crop:
    """Return the crop of a window that holds the centre square of a photo, perhaps turned."""
    ends = back[:, :2] @ np.array([(-0.5, side - 0.5), (-0.5, side - 0.5)]) + back[:, 2:] + 0.5
    ends = np.round(ends * RATIOS[-1]) / RATIOS[-1]
    low, high = ends.min(axis=1), ends.max(axis=1)
    turned = resize_box(Image.fromarray(window), np.concatenate([low, high]), side)
    if abs(back[0, 1]) > abs(back[0, 0]):
        turned, back = turned.transpose(1, 0, 2), back[::-1]
    return np.ascontiguousarray(turned[:: _sign(back[1, 1]), :: _sign(back[0, 0])])


def _is_copy(back: Maps) -> npt.NDArray[np.bool_]:
    """Return of maps whether they keep pixels as they are: bool[N]."""
    return np.asarray((back[:, :, :2] == np.eye(2)).all(axis=(1, 2)))


def _sign(value: float) -> int:
    return 1 if value > 0 else -1


def decode_jpegs(files: tf.Tensor, side: int) -> tf.Tensor:
    """Decode JPEGs of one size: string[N], N known → uint8[N, side, side, 3]."""
    decode = partial(tf.io.decode_jpeg, channels=3, dct_method=DCT)
    return _unrolled(lambda part: tf.stack([*map(decode, tf.unstack(part))]), side, files)


def decode_window(data: tf.Tensor, window: Any, ratio: int = 1) -> tf.Tensor:
    """Decode a window (top, left, height, width) of a JPEG that is shrunk by a ratio."""
    return tf.io.decode_and_crop_jpeg(data, window, channels=3, ratio=ratio, dct_method=DCT)


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
