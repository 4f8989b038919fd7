import threading
import time

import pytest

from facepairs.support.console import showing
from facepairs.support.parallel import batches, thread_map, unbatched


@pytest.mark.parametrize("workers", [1, 3])
def test_results_come_in_order_and_few_items_are_taken_ahead(workers):
    taken = []

    def items():
        for number in range(40):
            taken.append(number)
            yield number

    for count, result in enumerate(thread_map(lambda number: 10 * number, items(), workers)):
        assert result == 10 * count
        assert len(taken) <= count + 1 + 2 * workers
    assert taken == list(range(40))


def test_as_many_threads_work_as_are_asked_for():
    together = threading.Barrier(3)
    assert len(set(thread_map(lambda _: together.wait(30), range(3), 3))) == 3


def test_what_work_raises_is_raised_in_its_turn():
    def work(number):
        if number == 4:
            raise KeyError(number)
        return number

    results = thread_map(work, range(1000), 2)
    assert [next(results) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(KeyError):
        next(results)
    assert list(thread_map(work, [], 2)) == []


def test_what_has_not_begun_is_dropped_and_the_threads_end():
    begun, go_on, before = [], threading.Event(), threading.active_count()

    def work(number):
        begun.append(number)
        assert number == 0 or go_on.wait(30)

    results = thread_map(work, range(9), 2)
    next(results)
    while len(begun) < 3:
        time.sleep(0.001)
    later = threading.Timer(0.05, go_on.set)
    later.start()
    results.close()
    later.join()
    assert sorted(begun) == [0, 1, 2]  # two threads; two more items were waiting
    assert threading.active_count() == before


def test_the_last_batch_may_be_shorter():
    assert list(batches(range(7), 3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(batches(range(6), 3)) == [[0, 1, 2], [3, 4, 5]]
    assert list(batches([], 3)) == []


@pytest.mark.parametrize(("total", "totals"), [(7, [7, 7, 7]), (0, [3, 6, 7])])
def test_items_of_batches_come_in_order_with_progress(total, totals):
    steps = []
    with showing(progress=lambda phase: lambda *done: steps.append((phase, *done))):
        assert list(unbatched(batches(range(7), 3), "counting", total)) == list(range(7))
    assert steps == [("counting", *step) for step in zip([3, 6, 7], totals, strict=True)]
