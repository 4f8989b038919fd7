"""How a signal ends a training after the epoch at hand. Does not import TensorFlow."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from facepairs.support import console

ShouldStop = Callable[[], bool]


class TrainingInterrupted(Exception):
    """Training was asked to stop; what is saved is the state after the last finished epoch."""


class _StopHandler:
    """A signal handler that records the first signal and raises on the second."""

    def __init__(self) -> None:
        self.requested = threading.Event()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.requested.is_set():
            raise KeyboardInterrupt
        self.requested.set()
        console.log(
            "stopping after this epoch; a resumed run goes on from the last finished one. Press "
            "Ctrl-C again to stop at once"
        )


@contextlib.contextmanager
def stop_on_signal() -> Iterator[ShouldStop]:
    """Handle Ctrl-C and SIGTERM within the block.

    A block within another one shares its handler: a signal stops both. Outside the main thread,
    where Python allows no handlers, nothing is handled.

    Yields:
        A function that returns whether a stop was requested since the block began.

    Raises:
        KeyboardInterrupt: On the second signal.
    """
    outer = signal.getsignal(signal.SIGINT)
    if isinstance(outer, _StopHandler):
        yield outer.requested.is_set
        return
    handler = _StopHandler()
    if threading.current_thread() is not threading.main_thread():
        yield handler.requested.is_set
        return
    previous = {
        number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield handler.requested.is_set
    finally:
        for number, old in previous.items():
            signal.signal(number, old)
