"""Run blocking work in a few threads behind a short queue, and bound the memory of requests.

More work at the same time would only be slower: each request keeps a core busy.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from facepairs.server.answers import RequestProblem

R = TypeVar("R")
BUSY = "too many requests at the same time; send it again in a second"
QUEUE_PER_THREAD = 8  # some tenths of a second; later requests get 503


class Work:
    """A queue in front of some threads; used from the event loop alone.

    Args:
        threads: Number of requests processed at the same time.
        max_bytes: Bytes of request bodies held at the same time.

    Attributes:
        admitted: Number of requests that wait or are processed.
    """

    def __init__(self, threads: int, max_bytes: int) -> None:
        self._pool = ThreadPoolExecutor(threads, "facepairs-work")
        self._most = threads * (1 + QUEUE_PER_THREAD)
        self._max_bytes = max_bytes
        self._held_bytes = 0
        self.admitted = 0

    def check_room(self) -> None:
        """Raise RequestProblem if the queue is full."""
        if self.admitted >= self._most:
            raise RequestProblem(503, "overloaded", BUSY)

    async def run(self, work: Callable[[], R]) -> R:
        """Run a function in a thread; raises RequestProblem if the queue is full."""
        self.check_room()
        self.admitted += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self.admitted -= 1

    @contextmanager
    def holding(self) -> Iterator[Callable[[int], None]]:
        """Yield a function that counts the bytes of a body, held until the block ends.

        The function raises RequestProblem if that would be too many.
        """
        mine = 0

        def hold(count: int) -> None:
            nonlocal mine
            if self._held_bytes + count > self._max_bytes:
                raise RequestProblem(503, "overloaded", BUSY)
            self._held_bytes += count
            mine += count

        try:
            yield hold
        finally:
            self._held_bytes -= mine

    def close(self) -> None:
        """Wait for running work."""
        self._pool.shutdown()
