"""Callbacks of the training loop: progress display and collapse alarm."""

from collections.abc import Callable
from typing import Any

import keras

from facepairs.support.progress import (
    MessageCallback,
    ProgressCallback,
    ProgressFactory,
    format_duration,
    ignore_progress,
)
from facepairs.training.loop.schedule import Schedule, TrainingProgress

COLLAPSED_SPREAD = 1e-3
COLLAPSED_AUC = 0.52
PATIENCE_EPOCHS = 3


class ProgressReport(keras.callbacks.Callback):  # type: ignore[misc]
    """Shows the progress of each epoch, and reports its figures at the end.

    Args:
        progress: The training's position.
        schedule: Returns the current schedule.
        log: Receives a line per epoch.
        display: Shows the steps of an epoch.
    """

    def __init__(
        self,
        progress: TrainingProgress,
        schedule: Callable[[], Schedule],
        log: MessageCallback,
        display: ProgressFactory,
    ) -> None:
        super().__init__()
        self._progress, self._schedule = progress, schedule
        self._log, self._display = log, display
        self._show_step: ProgressCallback = ignore_progress

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._show_step = self._display(f"epoch {epoch + 1}/{self._schedule().epochs}")

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        steps = self._schedule().steps_per_epoch
        self._show_step((batch - 1) % steps + 1, steps)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        row, schedule = logs or {}, self._schedule()
        share_done = self._progress.step / max(schedule.steps, 1)
        left = format_duration(self._progress.seconds * (1 - share_done) / max(share_done, 1e-9))
        self._log(
            f"epoch {epoch + 1}/{schedule.epochs}  loss {row['loss']:.4f}  "
            f"validation AUC {row['val_auc']:.4f}  {row['pairs_per_s']:,.0f} pairs/s  "
            f"input wait {row['input_wait']:.1%}  {left} left"
        )

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._log("writing the log for TensorBoard")


class CollapseAlarm(keras.callbacks.Callback):  # type: ignore[misc]
    """Warns when the network cannot tell people apart: equal scores, or an AUC of one half.

    Args:
        warn: Receives the warning, every third epoch of a collapse.

    Attributes:
        message: How the last epoch's scores had collapsed, "" when they had not.
    """

    def __init__(self, warn: MessageCallback) -> None:
        super().__init__()
        self._warn = warn
        self._collapsed_epochs = 0
        self.message = ""

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        row = logs or {}
        self.message = describe_collapse(row["val_auc"], row["val_score_spread"])
        self._collapsed_epochs = self._collapsed_epochs + 1 if self.message else 0
        if self._collapsed_epochs and self._collapsed_epochs % PATIENCE_EPOCHS == 0:
            self._warn(
                f"collapse: {self.message} for {self._collapsed_epochs} epochs; try a lower "
                "learning_rate, another --seed, or look at the training pairs in TensorBoard"
            )


def describe_collapse(val_auc: float, val_score_spread: float) -> str:
    """Return how validation scores have collapsed, or "" when they have not.

    Args:
        val_auc: Their AUC.
        val_score_spread: Their standard deviation.
    """
    if not val_score_spread >= COLLAPSED_SPREAD:  # NaN too
        return f"all scores are alike (standard deviation {val_score_spread:.2g})"
    if val_auc <= COLLAPSED_AUC:
        return f"validation AUC is {val_auc:.3f}, no better than chance"
    return ""
