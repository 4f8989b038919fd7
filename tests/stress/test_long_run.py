"""What counts as growth in a long run."""

import pytest

from stress.long_run import compare


def test_growth_is_that_after_the_warm_up():
    warm_up = [(500.0, 9)] * 20
    assert compare(warm_up + [(1000.0, 20)] * 80) == (0, 0)
    memory, files = compare(warm_up + [(1000.0 + second, 20 + second // 9) for second in range(80)])
    assert memory == pytest.approx(0.06, abs=0.002)
    assert files > 5
    with pytest.raises(SystemExit):
        compare(warm_up[:6])
