"""The rows that people write first with `tf.data`, and the limit of decoding."""

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from facepairs.bench.job import Batch, Job, Skip
from facepairs.pipeline.decode import RATIOS, Cropper, decode_window
from facepairs.support.platform import cores

ARTICLE_BATCH, ARTICLE_PREFETCH = 10, 5
LIMIT_IMAGES = 64  # decoded in one call


def article(job: Job) -> Iterator[Batch]:
    """Yield batches of the pipeline of the tutorials' article: its batch size, its prefetching."""
    return _batches(article_dataset(job, ARTICLE_BATCH, None))


def article_parallel(job: Job) -> Iterator[Batch]:
    """Yield batches of the same pipeline with a parallel map and this bench's batch size."""
    return _batches(article_dataset(job, job.batch_size, tf.data.AUTOTUNE, tf.data.AUTOTUNE))


def _batches(dataset: tf.data.Dataset) -> Iterator[Batch]:
    for sides, genuine in dataset:
        yield Batch(len(genuine), sides, genuine)


def article_dataset(
    job: Job, batch_size: int, parallel_calls: int | None, prefetch: int = ARTICLE_PREFETCH
) -> tf.data.Dataset:
    """Return batches of ((left, right), genuine): whole images, resized, float32 in [0, 1]."""

    def generate() -> Iterator[tuple[str, str, bool]]:
        for pairs in job.blocks():
            for left, right, genuine in zip(pairs.left, pairs.right, pairs.genuine, strict=True):
                yield job.paths[left], job.paths[right], genuine

    def load(path: tf.Tensor) -> tf.Tensor:
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        return tf.image.resize(image, (job.crop_px, job.crop_px)) / 255.0

    def load_pair(left: tf.Tensor, right: tf.Tensor, genuine: tf.Tensor) -> tuple[Any, Any]:
        return (load(left), load(right)), genuine

    path, label = tf.TensorSpec([], tf.string), tf.TensorSpec([], tf.bool)
    pairs = tf.data.Dataset.from_generator(generate, output_signature=(path, path, label))
    return pairs.map(load_pair, parallel_calls).batch(batch_size).prefetch(prefetch)


def limit(job: Job) -> Iterator[Batch]:
    """Read and decode the centre squares and drop them: no labels, no batches, no resizing.

    Each graph call decodes 64 images with unrolled `decode_and_crop_jpeg` operations, which run in
    parallel on all cores; its images are shrunk by the same ratio. The ratios alternate in
    proportion to their images, as a short measurement sees the first calls alone. One byte of each
    image is kept, so that TensorFlow cannot skip the decoding. Paths and squares are prepared
    beforehand.

    Raises:
        Skip: If an image is not a plain JPEG.
    """
    if not job.plan.tf_decodable.all():
        raise Skip("needs plain JPEGs only")
    cropper, images = Cropper(job.unaligned), job.image_order.ravel()
    decoders = cropper.place(images).decoder
    groups = [images[decoders == decoder] for decoder in np.unique(decoders)]
    called = [np.resize(group, (-(-group.size // LIMIT_IMAGES), LIMIT_IMAGES)) for group in groups]
    shares = np.concatenate([(np.arange(len(calls)) + 0.5) / len(calls) for calls in called])
    order = np.concatenate(called)[np.argsort(shares, kind="stable")].ravel()
    calls = len(order) // LIMIT_IMAGES
    paths = tf.reshape(tf.constant([os.fsencode(job.paths[image]) for image in order]), (calls, -1))
    decoder, squares, _ = cropper.place(order)
    crops = tf.constant(squares.reshape(calls, LIMIT_IMAGES, 4))
    ratios = tf.constant(decoder[::LIMIT_IMAGES] - 1)

    def decode(call: tf.Tensor) -> tf.Tensor:
        def first_bytes(ratio: int) -> tf.Tensor:
            images = zip(tf.unstack(paths[call]), tf.unstack(crops[call]), strict=True)
            decoded = (decode_window(tf.io.read_file(path), crop, ratio) for path, crop in images)
            return tf.stack([pixels[0, 0, 0] for pixels in decoded])

        return tf.switch_case(ratios[call], [partial(first_bytes, ratio) for ratio in RATIOS])

    numbers = tf.data.Dataset.range(calls).repeat()
    dataset = numbers.map(decode, cores(), deterministic=False).prefetch(cores())
    for first_bytes in dataset:
        yield Batch(LIMIT_IMAGES // 2, first_bytes, None)
