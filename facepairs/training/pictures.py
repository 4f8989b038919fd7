"""TensorBoard: Keras's callback for the figures, and pictures of training and validation pairs.

The settings, for the comparison of runs, and a grid of training pairs as the network sees them are
shown once; the hardest validation pairs at epochs 1 to 8, then 10, 12, 14, 16, 20, … (four per
doubling), so the log stays small.
"""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from PIL import Image, ImageDraw

from facepairs.models.replicas import StepRandom
from facepairs.pipeline.dataset import Store, load_ahead
from facepairs.training.training import Training
from facepairs.training.validation import Validator

MAX_PAIRS, HARDEST_PAIRS = 16, 8  # of a picture, and of each kind
THUMBNAIL_PX = 64
BATCH_SIZE = 16  # a graph for larger batches takes tens of megabytes

Ints = npt.NDArray[np.integer[Any]]
Pixels = npt.NDArray[np.uint8]


def tensorboard_callbacks(
    training: Training, validator: Validator
) -> list[keras.callbacks.Callback]:
    """Return the callbacks that write the TensorBoard log of a training."""
    folder = str(training.run.tensorboard_path)
    figures = keras.callbacks.TensorBoard(folder, write_graph=False)
    return [figures, PairPictures(training, validator)]


class PairPictures(keras.callbacks.Callback):  # type: ignore[misc]
    """Writes the settings, the grid of training pairs, and the hardest validation pairs."""

    def __init__(self, training: Training, validator: Validator) -> None:
        super().__init__()
        self._training, self._validator = training, validator
        self._writer = tf.summary.create_file_writer(str(training.run.tensorboard_path))
        self._thumbnails = map_images(training.data.store, _shrink)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        from tensorboard.plugins.hparams import api

        with self._writer.as_default():
            api.hparams(self._training.data.config.portable())
            tf.summary.image("training pairs", training_grid(self._training)[None], step=0)
        self._writer.flush()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if not is_shown(epoch + 1):
            return
        pairs, score = self._validator.pairs, self._validator.scores
        worst = hardest_pairs(pairs.genuine, score)
        images = np.concatenate([pairs.left[worst], pairs.right[worst]])
        faces = self._thumbnails(images) / np.float32(255)
        grid = pair_grid(faces, pairs.genuine[worst], [f"{score[i]:.3f}" for i in worst])
        with self._writer.as_default():
            tf.summary.image("hardest pairs", grid[None], step=epoch + 1)
        self._writer.flush()

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._writer.close()


def is_shown(epoch: int) -> bool:
    """Return whether the log shows pictures of an epoch, counted from 1: four per doubling."""
    return epoch % (1 << max(0, epoch.bit_length() - 3)) == 0


def hardest_pairs(genuine: npt.NDArray[np.bool_], score: npt.NDArray[np.float64]) -> Ints:
    """Return the lowest genuine, then the highest impostor pairs, the hardest of each kind first.

    Args:
        genuine: bool[N].
        score: float64[N].
    """
    order = np.argsort(score, kind="stable")
    lowest_genuine = order[genuine[order]][:HARDEST_PAIRS]
    highest_impostors = order[~genuine[order]][::-1][:HARDEST_PAIRS]
    return np.concatenate([lowest_genuine, highest_impostors])


def map_images(
    source: Store, function: Callable[[tf.Tensor], tf.Tensor]
) -> Callable[[Ints], npt.NDArray[Any]]:
    """Return a function from image numbers, int[K], to `function` of their inputs, [K, …].

    The dataset is built once: TensorFlow would trace each new one again, and release the memory of
    its graph late.
    """
    batches: list[npt.NDArray[np.int32]] = []
    numbers = tf.data.Dataset.from_generator(
        lambda: iter(batches), output_signature=tf.TensorSpec([None], tf.int32)
    )
    dataset = load_ahead(numbers, source.loader(BATCH_SIZE))

    def mapped(images: Ints) -> npt.NDArray[Any]:
        starts = range(0, len(images), BATCH_SIZE)
        batches[:] = [images[at : at + BATCH_SIZE].astype(np.int32) for at in starts]
        return np.concatenate([np.asarray(function(source.gather(batch))) for batch in dataset])

    return mapped


def _shrink(pixels: tf.Tensor) -> tf.Tensor:
    """Average uint8[N, px, px, 3] down to uint8[N, 64, 64, 3]."""
    small = tf.image.resize(pixels, (THUMBNAIL_PX, THUMBNAIL_PX), "area")
    return tf.cast(tf.round(small), tf.uint8)


def training_grid(training: Training) -> Pixels:
    """Draw the first pairs as the network sees them at the first step: uint8[H, W, 3]."""
    data = training.data
    block = data.sampler().block(0, 0, min(MAX_PAIRS, data.config.batch_size))
    read = map_images(data.store, lambda pixels: pixels)
    pixels = tf.constant(read(np.concatenate([block.left, block.right])))
    inputs = np.asarray(training.network.preprocess(pixels, StepRandom(data.config.seed, 0)))
    return pair_grid(inputs, block.genuine)


def pair_grid(
    images: npt.NDArray[np.floating], genuine: npt.NDArray[np.bool_], notes: Sequence[str] = ()
) -> Pixels:
    """Draw up to 16 pairs with their labels, the left image above the right one.

    Args:
        images: float32[2·B, px, px, 3] in [0, 1], left images before right ones.
        genuine: bool[B].
        notes: B texts that follow the labels, or none.

    Returns:
        uint8[H, W, 3].
    """
    count, px = min(MAX_PAIRS, len(genuine)), images.shape[1]
    pixels = (np.clip(images, 0, 1) * 255).round().astype(np.uint8)
    columns = min(8, count)
    rows = -(-count // columns)
    cell, height = max(px, 96 if notes else 56) + 4, 2 * px + 18
    sheet = Image.new("RGB", (columns * cell, rows * height), "white")
    draw = ImageDraw.Draw(sheet)
    for i in range(count):
        x, y = i % columns * cell + 2, i // columns * height
        label, colour = ("genuine", "#0a7a2f") if genuine[i] else ("impostor", "#b3261e")
        draw.text((x, y + 2), " ".join([label, *notes[i : i + 1]]), fill=colour)
        sheet.paste(Image.fromarray(pixels[i]), (x, y + 16))
        sheet.paste(Image.fromarray(pixels[len(genuine) + i]), (x, y + 16 + px))
    return np.asarray(sheet)
