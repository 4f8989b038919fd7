"""The rows that people write first, with Pillow and with `tf.data`, and the limit of decoding."""

import os
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from PIL import Image

from facepairs.bench.job import Batch, Job, Skip
from facepairs.pipeline.decode import Cropper
from facepairs.support.platform import cores

ARTICLE_BATCH, ARTICLE_PREFETCH = 10, 5
LIMIT_IMAGES = 64  # decoded in one call


def pil(job: Job) -> Iterator[Batch]:
    """Yield batches of whole images, decoded and resized one after another."""
    for pairs in job.batches():
        left, right = (
            np.stack([_resized_image(job.paths[image], job.crop_px) for image in side])
            for side in (pairs.left, pairs.right)
        )
        yield Batch(len(pairs), (left, right), pairs.genuine)


def _resized_image(path: str, side_px: int) -> npt.NDArray[np.float32]:
    """Decode a whole image and resize it: float32[side_px, side_px, 3] in [0, 1]."""
    with Image.open(path) as image:
        resized = image.convert("RGB").resize((side_px, side_px))
        return np.asarray(resized, np.float32) / np.float32(255)


def article(job: Job) -> Iterator[Batch]:
    """Yield batches of the pipeline of the tutorials' article: its batch size, its prefetching."""
    return _article(job, ARTICLE_BATCH, None, ARTICLE_PREFETCH)


def article_parallel(job: Job) -> Iterator[Batch]:
    """Yield batches of the same pipeline with a parallel map and this bench's batch size."""
    return _article(job, job.batch_size, tf.data.AUTOTUNE, tf.data.AUTOTUNE)


def _article(
    job: Job, batch_size: int, parallel_calls: int | None, prefetch: int
) -> Iterator[Batch]:
    def generate() -> Iterator[tuple[str, str, bool]]:
        for pairs in job.blocks():
            for left, right, genuine in zip(pairs.left, pairs.right, pairs.genuine, strict=True):
                yield job.paths[left], job.paths[right], genuine

    def load(path: tf.Tensor) -> tf.Tensor:
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        return tf.image.resize(image, (job.crop_px, job.crop_px)) / 255.0

    def load_pair(left: tf.Tensor, right: tf.Tensor, genuine: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return load(left), load(right), genuine

    path, label = tf.TensorSpec([], tf.string), tf.TensorSpec([], tf.bool)
    pairs = tf.data.Dataset.from_generator(generate, output_signature=(path, path, label))
    dataset = pairs.map(load_pair, parallel_calls).batch(batch_size).prefetch(prefetch)
    for left, right, genuine in dataset:
        yield Batch(len(genuine), (left, right), genuine)


def limit(job: Job) -> Iterator[Batch]:
    """Read and decode the centre squares and drop them: no labels, no batches, no resizing.

    Each graph call decodes 64 images with unrolled `decode_and_crop_jpeg` operations, which run in
    parallel on all cores. One byte of each image is kept, so that TensorFlow cannot skip the
    decoding. Paths and squares are prepared beforehand.

    Raises:
        Skip: If an image is not a plain JPEG.
    """
    order = np.resize(job.image_order, -(-job.image_order.size // LIMIT_IMAGES) * LIMIT_IMAGES)
    if not job.plan.plain.all():
        raise Skip("needs plain JPEGs only")
    calls = len(order) // LIMIT_IMAGES
    paths = tf.reshape(tf.constant([os.fsencode(job.paths[image]) for image in order]), (calls, -1))
    _, squares, _ = Cropper(job.unaligned).place(order)
    crops = tf.constant(squares.reshape(calls, LIMIT_IMAGES, 4))

    def first_byte(path: tf.Tensor, square: tf.Tensor) -> tf.Tensor:
        return tf.io.decode_and_crop_jpeg(
            tf.io.read_file(path), square, channels=3, dct_method="INTEGER_ACCURATE"
        )[0, 0, 0]

    def decode(call: tf.Tensor) -> tf.Tensor:
        images = zip(tf.unstack(paths[call]), tf.unstack(crops[call]), strict=True)
        return tf.stack([first_byte(path, square) for path, square in images])

    numbers = tf.data.Dataset.range(calls).repeat()
    dataset = numbers.map(decode, cores(), deterministic=False).prefetch(cores())
    for first_bytes in dataset:
        yield Batch(LIMIT_IMAGES // 2, first_bytes, None)
