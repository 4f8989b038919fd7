"""What a training reports between its steps and epochs, as `keras.callbacks`.

The progress and figures of each epoch, and TensorBoard.
"""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from facepairs.models.replicas import StepRandom
from facepairs.pipeline.dataset import image_batches
from facepairs.support import console
from facepairs.support.words import format_duration
from facepairs.training.training import Training, Validation

COLLAPSED_SPREAD = 1e-3
COLLAPSED_AUC = 0.52
WARN_FROM_EPOCH = 3  # the first ones may tell little
PICTURED_PAIRS = 16

Logs = dict[str, Any] | None


def training_callbacks(training: Training) -> list[keras.callbacks.Callback]:
    """Return the callbacks of a training; only the chief calls them."""
    folder = str(training.run.tensorboard_path)
    board = keras.callbacks.TensorBoard(folder, write_graph=False)
    return [ProgressReport(training), TrainingPairs(training, folder), board]


class ProgressReport(keras.callbacks.Callback):  # type: ignore[misc]
    """Shows the progress of each epoch, reports its figures, and warns of collapsed scores."""

    def __init__(self, training: Training) -> None:
        super().__init__()
        self._training = training
        self._show_step = console.progress("")

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        training = self._training
        self._show_step = console.progress(f"epoch {epoch + 1}/{training.epochs}")

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        self._show_step(batch + 1, self._training.data.steps_per_epoch)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        training, row = self._training, logs or {}
        left_s = training.seconds * (training.epochs / (epoch + 1) - 1)
        console.log(
            f"epoch {epoch + 1}/{training.epochs}  loss {row['loss']:.4f}  "
            f"validation AUC {row['val_auc']:.4f}  {row['pairs_per_s']:,.0f} pairs/s  "
            f"input wait {row['input_wait']:.1%}  {format_duration(left_s)} left"
        )
        figures = {"epoch": epoch + 1, **training.history[-1].logs(), "seconds": training.seconds}
        training.run.log(" ".join(f"{name}={value:.6g}" for name, value in figures.items()))
        training.warning = describe_collapse(training.history[-1].validation)
        if training.warning and epoch + 1 >= WARN_FROM_EPOCH:
            training.warn(
                f"collapse: {training.warning}; try a lower learning_rate, another seed, or look "
                "at the training pairs in TensorBoard"
            )


def describe_collapse(validation: Validation) -> str:
    """Return how validation scores have collapsed, or "" when they have not."""
    if not validation.val_score_spread >= COLLAPSED_SPREAD:  # NaN too
        return f"all scores are alike (standard deviation {validation.val_score_spread:.2g})"
    if validation.val_auc <= COLLAPSED_AUC:
        return f"validation AUC is {validation.val_auc:.3f}, no better than chance"
    return ""


class TrainingPairs(keras.callbacks.Callback):  # type: ignore[misc]
    """Shows in TensorBoard the settings, and the first pairs as the network sees them."""

    def __init__(self, training: Training, folder: str) -> None:
        super().__init__()
        self._training, self._folder = training, folder

    def on_train_begin(self, logs: Logs = None) -> None:
        from tensorboard.plugins.hparams import api

        data = self._training.data
        pairs = data.sampler().block(0, 0, min(PICTURED_PAIRS, data.config.batch_size))
        numbers = np.concatenate([pairs.left, pairs.right])
        (pixels,) = (data.store.gather(b) for b in image_batches(data.store, numbers, len(numbers)))
        seen = self._training.network.preprocess(pixels, StepRandom(data.config.seed, 0))
        stacked = np.concatenate(np.split(np.asarray(seen), 2), axis=1)  # left above right
        with tf.summary.create_file_writer(self._folder).as_default():
            api.hparams(data.config.portable())
            for name, kind in (("genuine", pairs.genuine), ("impostor", ~pairs.genuine)):
                if kind.any():
                    tf.summary.image(f"{name} pairs", stacked[kind], 0, PICTURED_PAIRS)
