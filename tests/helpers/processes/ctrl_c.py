"""Ctrl-C at an exact step of a training in this process."""

import os
import signal

import pytest

from facepairs.training.loop.callbacks import ProgressReport


def press_after(patch: pytest.MonkeyPatch, step: int) -> None:
    """Press Ctrl-C when a number of steps of a training are done."""
    ended = ProgressReport.on_train_batch_end

    def end(self, batch, logs=None):
        ended(self, batch, logs)
        if batch == step:
            os.kill(os.getpid(), signal.SIGINT)

    patch.setattr(ProgressReport, "on_train_batch_end", end)
