"""What counts as flat in a long run."""

import json
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def long_run(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import long_run

    yield long_run
    sys.modules.pop("long_run", None)


@pytest.fixture
def summary(long_run):
    return long_run.summary


def looks(count=100, **slopes):
    """Rows of a run that is still warming up at first; slopes are per look, of the whole."""
    rows = []
    for number in range(count):
        values = {"rss_mb": 1000.0, "own_mb": 500.0, "files": 20, "threads": 30}
        rows.append(
            {name: value * (1 + slopes.get(name, 0) * number) for name, value in values.items()}
        )
        rows[-1] |= {"epoch": 1 + number, "log_bytes": 9000 + 400 * number}
        if number < count // 10:
            rows[-1]["rss_mb"] /= 2
    return rows


def test_a_steady_run_is_flat(summary):
    found = summary(looks())
    assert found["flat"]
    assert (found["drift"], found["own_drift"]) == (0, 0)
    assert found["log_bytes_an_epoch"] == [400, 400]


@pytest.mark.parametrize("key", ["rss_mb", "own_mb", "files"])
def test_whatever_creeps_up_is_found(summary, key):
    assert not summary(looks(**{key: 0.0005}))["flat"]


def test_a_log_that_grows_ever_faster_is_found(summary):
    rows = looks()
    for number, row in enumerate(rows):
        row["log_bytes"] = number**2
    assert not summary(rows)["flat"]


def test_too_few_looks_are_refused(summary):
    with pytest.raises(SystemExit, match="more --steps"):
        summary(looks(6))


def test_of_a_training_that_was_resumed_the_longer_process_counts(long_run, tmp_path):
    path = tmp_path / "looks-files.jsonl"
    first, second = looks(40), looks(100)
    for row in first:
        row |= {"process": 7, "own_mb": 300.0}
    for number, row in enumerate(second):
        row |= {"process": 9, "epoch": 41 + number}
    path.write_text("".join(json.dumps(row) + "\n" for row in first + second))
    found = long_run.so_far(tmp_path, "files")
    assert (found["looks"], found["steps"]) == (100, 100 * long_run.EPOCH_STEPS)
    assert found["own_mb"] == [500, 500]
    assert found["flat"]
