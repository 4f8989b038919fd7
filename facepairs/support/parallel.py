"""Work in threads: a bounded number of items at a time, results in order."""

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from facepairs.support.platform import cores

T = TypeVar("T")
R = TypeVar("R")


def thread_map(
    work: Callable[[T], R], items: Iterable[T], workers: int | None = None
) -> Iterator[R]:
    """Yield work(item) for each item, in order.

    At most two items per thread are in progress, so memory stays bounded for any number of items.
    An exception of `work` is raised here, and items that have not begun are dropped.

    Args:
        work: Called in threads.
        items: Consumed as needed.
        workers: Number of threads, by default one per core.
    """
    workers = workers or cores()
    waiting = iter(items)
    pool = ThreadPoolExecutor(workers)
    in_progress: deque[Future[R]] = deque()
    try:
        for item in itertools.islice(waiting, 2 * workers):
            in_progress.append(pool.submit(work, item))
        while in_progress:
            result = in_progress.popleft().result()
            for item in itertools.islice(waiting, 1):
                in_progress.append(pool.submit(work, item))
            yield result
    finally:
        pool.shutdown(cancel_futures=True)


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of `size` items, the last one perhaps shorter."""
    source = iter(items)
    while batch := list(itertools.islice(source, size)):
        yield batch
