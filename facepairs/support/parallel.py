"""Work in threads, a bounded part of it under way, results in order."""

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class OrderedMap(Protocol):
    """How a pass does its work: `thread_map`, or what else gives the same results, elsewhere."""

    def __call__(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield work(item) for each item, in their order; both can be pickled, as can results."""
        ...


def thread_map(
    work: Callable[[T], R], items: Iterable[T], workers: int | None = None
) -> Iterator[R]:
    """Yield work(item) for each item, in their order, from `workers` threads (default: the cores).

    At most two items a thread are under way, so that any number of them takes bounded memory. What
    `work` raises is raised here; whatever has not begun by then never does.
    """
    workers = workers or os.cpu_count() or 1
    waiting = iter(items)
    pool = ThreadPoolExecutor(workers)
    under_way: deque[Future[R]] = deque()
    try:
        for item in itertools.islice(waiting, 2 * workers):
            under_way.append(pool.submit(work, item))
        while under_way:
            result = under_way.popleft().result()
            for item in itertools.islice(waiting, 1):
                under_way.append(pool.submit(work, item))
            yield result
    finally:
        pool.shutdown(cancel_futures=True)


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Cut items into lists of `size`, the last one shorter."""
    source = iter(items)
    while batch := list(itertools.islice(source, size)):
        yield batch
