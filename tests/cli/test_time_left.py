"""The time left begins when it means something, and follows the speed of late."""

from itertools import pairwise

import pytest

from facepairs.cli.shared.progress import TimeLeft


def estimates(times: list[float], total: int) -> list[float | None]:
    """Return the estimates after steps 1, 2, 3, … that end at these times."""
    time_left = TimeLeft()
    return [time_left.update(done, total, now) for done, now in enumerate(times, start=1)]


def test_a_slow_first_item_does_not_count():
    times = [60.0 + 0.1 * step for step in range(100)]  # a minute for the first, then .1 s each
    shown = [left for left in estimates(times, 1000) if left is not None]
    assert shown[0] == pytest.approx(0.1 * 979, rel=0.01)
    assert max(shown) < 100
    assert all(later < earlier for earlier, later in pairwise(shown))


def test_nothing_is_said_before_there_is_something_to_judge_by():
    assert estimates([0.0, 0.5, 1.0, 1.5], 1000) == [None] * 4  # too short
    assert estimates([0.0, 30.0, 60.0], 1000) == [None] * 3  # too few
    time_left = TimeLeft()
    assert [time_left.update(0, 10, now) for now in (0.0, 10.0, 20.0, 30.0)] == [None] * 4


def test_the_estimate_follows_a_change_of_speed():
    fast = [0.1 * step for step in range(200)]
    slow = [fast[-1] + 1.0 * step for step in range(1, 60)]
    last = estimates(fast + slow, 1000)[-1]
    assert last is not None
    assert 0.9 < last / (1000 - len(fast + slow)) < 1.05


def test_it_counts_down_while_an_item_takes_long():
    time_left = TimeLeft()
    for step in range(11):
        left = time_left.update(step, 20, float(step))
    assert left == pytest.approx(10.0)
    assert time_left.update(10, 20, 14.0) == pytest.approx(6.0)
    assert time_left.update(10, 20, 99.0) == 0
