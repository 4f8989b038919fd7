"""Work in threads on a bounded number of items at a time, with results in order and progress."""

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from facepairs.support import console
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
    from concurrent.futures import Future, ThreadPoolExecutor  # 15 ms, which two photos do not need

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


def unbatched(done: Iterable[Sequence[T]], phase: str, total: int) -> Iterator[T]:
    """Yield the items of batches in order, and show the progress.

    Args:
        done: The batches; the work is done while they are iterated.
        phase: Name of the work.
        total: How many items there are; 0 if that is not known.
    """
    count, progress = 0, console.progress(phase)
    for batch in done:
        yield from batch
        count += len(batch)
        progress(count, max(total, count))
