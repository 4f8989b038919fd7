"""Decode image files to the crops that a network takes, in TensorFlow's C++.

Array contract: uint8[crop_px, crop_px, 3], RGB, the centre square of the image with side
round(short side · crop_px / frame_px), resized (bilinear, antialiased) unless that is crop_px.
`facepairs.images` crops the same square with Pillow; a test compares the two. Of a JPEG only the
part within the square is decoded.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow as tf

RATIOS = (1, 2, 4, 8)  # libjpeg can shrink by these while it decodes
CHUNK = 128  # images per run of an unrolled graph; tracing more is slow
MAX_BATCH_BYTES = 2**26  # larger batches of files are read one by one

Decoder = Callable[[tf.Tensor], tf.Tensor]
F = TypeVar("F", bound=Callable[..., Any])


def no_autograph(function: F) -> F:
    """Disable AutoGraph for a function without Python control flow.

    AutoGraph would slow tracing down and write its translation to a file, which stays behind when
    the process is killed.
    """
    unconverted: F = tf.autograph.experimental.do_not_convert(function)
    return unconverted


def _window(height: tf.Tensor, width: tf.Tensor, share: float) -> tf.Tensor:
    """Return the centre square as int32[4]: top, left, side, side."""
    short = tf.cast(tf.minimum(height, width), tf.float64)
    side = tf.maximum(tf.cast(tf.round(short * share), tf.int32), 1)
    return tf.stack([(height - side) // 2, (width - side) // 2, side, side])


def _decode_jpeg(data: tf.Tensor, window: tf.Tensor, ratio: int = 1) -> tf.Tensor:
    """Decode a window of a JPEG; libjpeg shrinks it by `ratio`."""
    shrunk = tf.cast(tf.round(window / ratio), tf.int32) if ratio > 1 else window
    return tf.io.decode_and_crop_jpeg(
        data, shrunk, channels=3, ratio=ratio, dct_method="INTEGER_ACCURATE"
    )


def _shrinkable(side: tf.Tensor, crop_px: int, ratio: int) -> tf.Tensor:
    """Return whether shrinking leaves twice the pixels needed, so that resizing still averages."""
    return side >= 2 * crop_px * ratio


def _resized(crops: tf.Tensor, crop_px: int) -> tf.Tensor:
    """Resize uint8[…, side, side, 3] unless the side is crop_px already."""

    def resize() -> tf.Tensor:
        smooth = tf.image.resize(crops, (crop_px, crop_px), method="bilinear", antialias=True)
        return tf.cast(tf.clip_by_value(tf.round(smooth), 0.0, 255.0), tf.uint8)

    return tf.cond(tf.equal(tf.shape(crops)[-2], crop_px), lambda: crops, resize)


def crop_decoder(frame_px: int, crop_px: int) -> Decoder:
    """Return a function from the content of a file to uint8[crop_px, crop_px, 3].

    It decodes JPEG, PNG and BMP, and raises `tf.errors.InvalidArgumentError` for anything else.

    Args:
        frame_px: Short side of an image to which `crop_px` refers.
        crop_px: Side of the crop.
    """
    share = crop_px / frame_px

    def from_jpeg(data: tf.Tensor) -> tf.Tensor:
        shape = tf.image.extract_jpeg_shape(data)
        window = _window(shape[0], shape[1], share)
        halvings = [tf.cast(_shrinkable(window[2], crop_px, r), tf.int32) for r in RATIOS[1:]]
        cases = [lambda ratio=ratio: _decode_jpeg(data, window, ratio) for ratio in RATIOS]
        return tf.switch_case(tf.add_n(halvings), cases)

    def from_other(data: tf.Tensor) -> tf.Tensor:
        image = tf.io.decode_image(data, channels=3, expand_animations=False)
        shape = tf.shape(image)
        top, left, side, _ = tf.unstack(_window(shape[0], shape[1], share))
        return image[top : top + side, left : left + side]

    def decode(data: tf.Tensor) -> tf.Tensor:
        crop = tf.cond(tf.io.is_jpeg(data), lambda: from_jpeg(data), lambda: from_other(data))
        return tf.ensure_shape(_resized(crop, crop_px), (crop_px, crop_px, 3))

    return decode


def batch_decoder(frame_px: int, crop_px: int, images: int) -> Decoder:
    """Return a function from the contents of files, string[N], to uint8[N, crop_px, crop_px, 3].

    A batch of `images` JPEGs of one size, the usual case, runs a graph without a loop or branch per
    image, which would take as long as decoding. Other batches are decoded one by one.

    Args:
        frame_px: As for `crop_decoder`.
        crop_px: As for `crop_decoder`.
        images: The usual N.
    """
    share = crop_px / frame_px
    one = crop_decoder(frame_px, crop_px)
    crop = tf.TensorSpec((crop_px, crop_px, 3), tf.uint8)

    def all_equal(shapes: tf.Tensor) -> tf.Tensor:
        return tf.reduce_all(tf.equal(shapes, shapes[0]))

    def fast(data: tf.Tensor) -> tf.Tensor:
        data = tf.ensure_shape(data, [images])
        shapes = _each(tf.image.extract_jpeg_shape, data, tf.TensorSpec([3], tf.int32))

        def same_size() -> tf.Tensor:
            window = _window(shapes[0, 0], shapes[0, 1], share)
            pixels = tf.TensorSpec((None, None, 3), tf.uint8)
            return _resized(_each(lambda file: _decode_jpeg(file, window), data, pixels), crop_px)

        side = _window(shapes[0, 0], shapes[0, 1], share)[2]
        small = tf.logical_not(_shrinkable(side, crop_px, RATIOS[1]))
        usual = tf.logical_and(all_equal(shapes[:, :2]), small)
        return tf.cond(usual, same_size, lambda: slow(data))

    def slow(data: tf.Tensor) -> tf.Tensor:
        return tf.map_fn(one, data, fn_output_signature=crop)

    def decode(data: tf.Tensor) -> tf.Tensor:
        jpeg = tf.reduce_all(tf.equal(tf.strings.substr(data, 0, 3), b"\xff\xd8\xff"))
        usual = tf.logical_and(jpeg, tf.equal(tf.size(data), images))
        return tf.ensure_shape(
            tf.cond(usual, lambda: fast(data), lambda: slow(data)), (None, crop_px, crop_px, 3)
        )

    return decode


def file_decoder(
    frame_px: int, crop_px: int, images: int
) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """Return a function from paths, string[N], and their total size to the files' crops.

    If the total size, int64[] bytes, is large, files are read one by one: a batch of camera photos
    takes gigabytes.

    Args:
        frame_px: As in `batch_decoder`.
        crop_px: As in `batch_decoder`.
        images: As in `batch_decoder`.
    """
    decode, one = batch_decoder(frame_px, crop_px, images), crop_decoder(frame_px, crop_px)
    crop = tf.TensorSpec((crop_px, crop_px, 3), tf.uint8)

    def one_by_one(paths: tf.Tensor) -> tf.Tensor:
        crops = tf.map_fn(lambda path: one(tf.io.read_file(path)), paths, fn_output_signature=crop)
        return tf.ensure_shape(crops, (None, crop_px, crop_px, 3))

    def load(paths: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
        return tf.cond(
            size > MAX_BATCH_BYTES,
            lambda: one_by_one(paths),
            lambda: decode(read_files(paths, images)),
        )

    return load


def read_files(paths: tf.Tensor, images: int) -> tf.Tensor:
    """Read files: string[N] paths → string[N] contents; fastest if N is `images`."""
    text = tf.TensorSpec([], tf.string)
    return tf.cond(
        tf.equal(tf.size(paths), images),
        lambda: _each(tf.io.read_file, tf.ensure_shape(paths, [images]), text),
        lambda: tf.map_fn(tf.io.read_file, paths, fn_output_signature=text),
    )


def _each(function: Decoder, values: tf.Tensor, result: tf.TensorSpec) -> tf.Tensor:
    """Apply a function to every element by an unrolled graph, in chunks if there are many."""
    count = int(values.shape[0])
    chunk = next(size for size in range(min(count, CHUNK), 0, -1) if count % size == 0)

    def unrolled(elements: tf.Tensor) -> tf.Tensor:
        return tf.stack([function(value) for value in tf.unstack(elements, chunk)])

    if chunk == count:
        return unrolled(values)
    spec = tf.TensorSpec([chunk, *result.shape], result.dtype)
    chunks = tf.map_fn(unrolled, tf.reshape(values, [-1, chunk]), fn_output_signature=spec)
    return tf.reshape(chunks, tf.concat([[count], tf.shape(chunks)[2:]], 0))
