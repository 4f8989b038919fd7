"""What counts as flat in a long run."""

import json

import pytest

from stress import long_run
from stress.long_run import summary


def samples(count=100, **slopes):
    """Samples of a run that warms up at first; slopes are relative, per sample."""
    rows = []
    for number in range(count):
        values = {"rss_mb": 1000.0, "anonymous_mb": 500.0, "files": 20, "threads": 30}
        rows.append(
            {name: value * (1 + slopes.get(name, 0) * number) for name, value in values.items()}
        )
        rows[-1] |= {"epoch": 1 + number, "log_bytes": 9000 + 400 * number}
        if number < count // 10:
            rows[-1]["rss_mb"] /= 2
    return rows


def test_a_steady_run_is_flat():
    found = summary(samples())
    assert found["flat"]
    assert (found["drift"], found["anonymous_drift"]) == (0, 0)
    assert found["log_bytes_per_epoch"] == [400, 400]


@pytest.mark.parametrize("key", ["rss_mb", "anonymous_mb", "files"])
def test_growth_is_found(key):
    assert not summary(samples(**{key: 0.0005}))["flat"]


def test_a_log_that_grows_faster_and_faster_is_found():
    rows = samples()
    for number, row in enumerate(rows):
        row["log_bytes"] = number**2
    assert not summary(rows)["flat"]


def test_too_few_samples_are_refused():
    with pytest.raises(SystemExit, match="more --steps"):
        summary(samples(6))


def test_the_process_with_the_most_samples_counts(tmp_path):
    path = tmp_path / "samples-files.jsonl"
    first, second = samples(40), samples(100)
    for row in first:
        row |= {"process": 7, "anonymous_mb": 300.0}
    for number, row in enumerate(second):
        row |= {"process": 9, "epoch": 41 + number}
    path.write_text("".join(json.dumps(row) + "\n" for row in first + second))
    found = summary(long_run.longest_process(path))
    assert (found["samples"], found["steps"]) == (100, 100 * long_run.EPOCH_STEPS)
    assert found["anonymous_mb"] == [500, 500]
    assert found["flat"]
