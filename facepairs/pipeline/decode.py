"""From a file's bytes to the crop that a model sees, in TensorFlow's C++.

Array contract: uint8[crop_px, crop_px, 3], RGB, the centre square of the image. The same square is
cut by `facepairs.verification.image` with Pillow; a test holds the two together.
"""

from collections.abc import Callable

import tensorflow as tf


def crop_decoder(frame_px: int, crop_px: int) -> Callable[[tf.Tensor], tf.Tensor]:
    """Make a function from encoded bytes (JPEG, PNG or BMP) to uint8[crop_px, crop_px, 3].

    The centre square of side round(short side · crop_px / frame_px) is taken, and resized
    (bilinear, antialiased) only when its side is not `crop_px`. Of a JPEG only the part within the
    square is decoded. Raises tf.errors.InvalidArgumentError for bytes that are no such image.
    """

    def window(height: tf.Tensor, width: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        short = tf.cast(tf.minimum(height, width), tf.float64)
        side = tf.cast(tf.round(short * (crop_px / frame_px)), tf.int32)
        side = tf.maximum(side, 1)
        return (height - side) // 2, (width - side) // 2, side

    def from_jpeg(data: tf.Tensor) -> tf.Tensor:
        shape = tf.image.extract_jpeg_shape(data)
        top, left, side = window(shape[0], shape[1])
        return tf.io.decode_and_crop_jpeg(
            data, tf.stack([top, left, side, side]), channels=3, dct_method="INTEGER_ACCURATE"
        )

    def from_other(data: tf.Tensor) -> tf.Tensor:
        image = tf.io.decode_image(data, channels=3, expand_animations=False)
        shape = tf.shape(image)
        top, left, side = window(shape[0], shape[1])
        return image[top : top + side, left : left + side]

    def resized(crop: tf.Tensor) -> tf.Tensor:
        smooth = tf.image.resize(crop, (crop_px, crop_px), method="bilinear", antialias=True)
        return tf.cast(tf.clip_by_value(tf.round(smooth), 0.0, 255.0), tf.uint8)

    def decode(data: tf.Tensor) -> tf.Tensor:
        crop = tf.cond(tf.io.is_jpeg(data), lambda: from_jpeg(data), lambda: from_other(data))
        crop = tf.cond(tf.equal(tf.shape(crop)[0], crop_px), lambda: crop, lambda: resized(crop))
        return tf.ensure_shape(crop, (crop_px, crop_px, 3))

    return decode
