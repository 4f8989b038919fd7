"""Ctrl-C at an exact step of a training in this process."""

import os
import signal

import pytest

from facepairs.training.callbacks import Timekeeper


def press_after(patch: pytest.MonkeyPatch, steps: int, times: int = 1) -> None:
    """Press Ctrl-C after a number of steps, and again after each of the following."""
    ended, done = Timekeeper.on_train_batch_end, 0

    def end(self, batch, logs=None):
        nonlocal done
        ended(self, batch, logs)
        done += 1
        if steps <= done < steps + times:
            os.kill(os.getpid(), signal.SIGINT)

    patch.setattr(Timekeeper, "on_train_batch_end", end)
