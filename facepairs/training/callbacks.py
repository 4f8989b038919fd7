"""Callbacks of the training loop: the progress display, and an alarm for collapsed scores."""

from typing import Any

import keras

from facepairs.support.progress import ProgressCallback, format_duration, ignore_progress
from facepairs.training.training import Training, Validation

COLLAPSED_SPREAD = 1e-3
COLLAPSED_AUC = 0.52
PATIENCE_EPOCHS = 3


class ProgressReport(keras.callbacks.Callback):  # type: ignore[misc]
    """Shows the progress of each epoch, and reports its figures at the end."""

    def __init__(self, training: Training) -> None:
        super().__init__()
        self._training = training
        self._show_step: ProgressCallback = ignore_progress

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        training = self._training
        self._show_step = training.options.progress(f"epoch {epoch + 1}/{training.epochs}")

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        self._show_step(batch + 1, self._training.data.steps_per_epoch)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        training, row = self._training, logs or {}
        left_s = training.seconds * (training.epochs / (epoch + 1) - 1)
        training.options.log(
            f"epoch {epoch + 1}/{training.epochs}  loss {row['loss']:.4f}  "
            f"validation AUC {row['val_auc']:.4f}  {row['pairs_per_s']:,.0f} pairs/s  "
            f"input wait {row['input_wait']:.1%}  {format_duration(left_s)} left"
        )
        figures = training.history[-1].logs() | {"seconds": training.seconds}
        training.run.log(
            " ".join(f"{k}={v:.6g}" for k, v in {"epoch": epoch + 1, **figures}.items())
        )


class CollapseAlarm(keras.callbacks.Callback):  # type: ignore[misc]
    """Warns of scores that have collapsed, every third epoch."""

    def __init__(self, training: Training) -> None:
        super().__init__()
        self._training = training
        self._collapsed_epochs = 0

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        training = self._training
        training.warning = describe_collapse(training.history[-1].validation)
        self._collapsed_epochs = self._collapsed_epochs + 1 if training.warning else 0
        if self._collapsed_epochs and self._collapsed_epochs % PATIENCE_EPOCHS == 0:
            training.warn(
                f"collapse: {training.warning} for {self._collapsed_epochs} epochs; try a lower "
                "learning_rate, another --seed, or look at the training pairs in TensorBoard"
            )


def describe_collapse(validation: Validation) -> str:
    """Return how validation scores have collapsed, or "" when they have not."""
    if not validation.val_score_spread >= COLLAPSED_SPREAD:  # NaN too
        return f"all scores are alike (standard deviation {validation.val_score_spread:.2g})"
    if validation.val_auc <= COLLAPSED_AUC:
        return f"validation AUC is {validation.val_auc:.3f}, no better than chance"
    return ""
