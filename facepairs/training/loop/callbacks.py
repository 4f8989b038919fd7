"""What hangs on the training loop: progress for people, the collapse alarm, and a profile."""

import math
import sys
import time
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from facepairs.support.clock import running_s
from facepairs.training.loop.train_loop import Progress, Schedule

COLLAPSED_SPREAD = 1e-3
COLLAPSED_AUC = 0.52
PATIENCE_EPOCHS = 3


def clock(seconds: float) -> str:
    """Print a duration as m:ss or h:mm:ss."""
    minutes, second = divmod(round(max(seconds, 0)), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


class ProgressReport(keras.callbacks.Callback):  # type: ignore[misc]
    """A bar on a terminal, a line an epoch elsewhere: loss, AUC, pairs/s and time left (stderr)."""

    def __init__(self, progress: Progress, schedule: Callable[[], Schedule], batch: int) -> None:
        super().__init__()
        self._progress = progress
        self._schedule = schedule
        self._batch = batch
        self._shown = 0.0
        self._auc = math.nan
        self._mark = (running_s(), progress.step)
        self._terminal = sys.stderr.isatty()

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._mark = (running_s(), self._progress.step)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        now = running_s()
        if not self._terminal or now - self._shown < 0.2:
            return
        self._shown = now
        schedule = self._schedule()
        epoch = (self._progress.step - 1) // schedule.steps_per_epoch + 1
        within = (self._progress.step - 1) % schedule.steps_per_epoch + 1
        rate = (self._progress.step - self._mark[1]) / max(now - self._mark[0], 1e-9)
        left = clock((schedule.steps - self._progress.step) / rate)
        filled = 24 * within // schedule.steps_per_epoch
        auc = "" if math.isnan(self._auc) else f"  AUC {self._auc:.4f}"
        line = (
            f"epoch {epoch}/{schedule.epochs} [{'=' * filled}{' ' * (24 - filled)}] "
            f"loss {float((logs or {})['loss']):.4f}{auc}  {rate * self._batch:,.0f} pairs/s  "
            f"{left} left"
        )
        print(f"\r\x1b[2K{line}", end="", file=sys.stderr, flush=True)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        row = logs or {}
        self._auc = row.get("val_auc", math.nan)
        schedule = self._schedule()
        done = self._progress.step / max(schedule.steps, 1)
        left = clock(self._progress.seconds * (1 - done) / max(done, 1e-9))
        if self._terminal:
            print("\r\x1b[2K", end="", file=sys.stderr)
        print(
            f"epoch {epoch + 1}/{schedule.epochs}  loss {row['loss']:.4f}  AUC {self._auc:.4f}  "
            f"{row['pairs_per_s']:,.0f} pairs/s  input wait {row['input_wait']:.1%}  {left} left",
            file=sys.stderr,
            flush=True,
        )


class CollapseAlarm(keras.callbacks.Callback):  # type: ignore[misc]
    """Says so when the network tells nobody apart: all scores alike, or AUC at one half."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        super().__init__()
        self._warn = warn
        self._bad = 0
        self.message = ""

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        row = logs or {}
        self.message = collapse(row["val_score_spread"], row["val_auc"])
        self._bad = self._bad + 1 if self.message else 0
        if self._bad and self._bad % PATIENCE_EPOCHS == 0:
            self._warn(
                f"collapse: {self.message} for {self._bad} epochs; try a lower learning_rate, "
                "another --seed, or look at the training pairs in TensorBoard"
            )


def collapse(spread: float, auc: float) -> str:
    """Name the collapse that a standard deviation of scores and an AUC show, or give ''."""
    if not spread >= COLLAPSED_SPREAD:
        return f"all scores are alike (standard deviation {spread:.2g})"
    if auc <= COLLAPSED_AUC:
        return f"validation AUC is {auc:.3f}, no better than a coin"
    return ""


class SaveOften(keras.callbacks.Callback):  # type: ignore[misc]
    """Saves within an epoch too, once so many minutes have passed since it last did or began."""

    def __init__(self, minutes: float, save: Callable[[], None]) -> None:
        super().__init__()
        self._seconds = minutes * 60
        self._save = save
        self._saved = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        if time.monotonic() - self._saved >= self._seconds:
            self._save()
            self._saved = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._saved = time.monotonic()  # the run saves after each epoch


class ProfileSteps(keras.callbacks.Callback):  # type: ignore[misc]
    """Profiles a few steps once the run is warm, for TensorBoard's profile plugin.

    `close` ends a profile that a stop cut short.
    """

    FIRST, STEPS = 5, 5  # steps left out, and taken

    def __init__(self, folder: str, say: Callable[[str], None]) -> None:
        super().__init__()
        self._folder = folder
        self._say = say
        self._seen = 0
        self._running = False

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        self._seen += 1
        if self._seen == self.FIRST:
            tf.profiler.experimental.start(self._folder)
            self._running = True
        elif self._seen == self.FIRST + self.STEPS:
            self.close()

    def close(self) -> None:
        """End the profile, if one is running, and write it."""
        if not self._running:
            return
        self._running = False
        tf.profiler.experimental.stop()
        self._say(
            f"profile written; look at it with: pip install tensorboard-plugin-profile, then "
            f"tensorboard --logdir {self._folder}"
        )
