"""Ctrl-C at an exact step of a training in this process."""

import os
import signal

import pytest

from facepairs.training.loop import ProgressReport


def press_after(patch: pytest.MonkeyPatch, steps: int) -> None:
    """Press Ctrl-C after a number of steps."""
    ended, done = ProgressReport.on_train_batch_end, 0

    def end(self, batch, logs=None):
        nonlocal done
        ended(self, batch, logs)
        done += 1
        if done == steps:
            os.kill(os.getpid(), signal.SIGINT)

    patch.setattr(ProgressReport, "on_train_batch_end", end)
