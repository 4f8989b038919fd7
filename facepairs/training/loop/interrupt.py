"""Ctrl-C and SIGTERM: stop between two steps, with the work saved; a second one stops at once."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


class _Stop:
    """The handler: remembers the first signal, raises KeyboardInterrupt on the second."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.asked = threading.Event()
        self._say = say

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.asked.is_set():
            raise KeyboardInterrupt
        self.asked.set()
        self._say("stopping after this step; press Ctrl-C again to stop at once")


@contextlib.contextmanager
def stop_on_signal(say: Callable[[str], None]) -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether a stop was asked for since the block began.

    A block within another one is part of it: what stops the inner work stops the outer too.
    """
    around = signal.getsignal(signal.SIGINT)
    if isinstance(around, _Stop):
        yield around.asked.is_set
        return
    stop = _Stop(say)
    if threading.current_thread() is not threading.main_thread():
        yield stop.asked.is_set
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop.asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
