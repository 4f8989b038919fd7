"""What one more image costs, at sizes that take seconds."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "benchmarks" / "many_images.py"


def run(place, *words):
    done = subprocess.run(
        [sys.executable, SCRIPT, "--place", place, *map(str, words)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


@pytest.mark.slow
def test_growth_is_reported_and_nothing_runs_twice(tmp_path):
    words = ("--parts", "names", "--names", 2_000, 12_000)
    report = json.loads(run(tmp_path, *words, "--json"))
    assert {row["size"] for row in report["rows"]} == {2_000, 12_000}
    stages = [row["part"] for row in report["rows"] if row["size"] == 2_000]
    assert stages[:2] == ["names", "names: index"]
    assert len(stages) == 8
    for row in report["rows"]:
        assert 0 <= row["seconds"] < 60
        assert row["peak_mb"] > row["memory_mb"]
        assert row["peak_mb"] > 10
    assert report["bytes_per_one_more"]["names: index"] < 1_000
    results = (tmp_path / "results.jsonl").read_bytes()
    table = run(tmp_path, *words)
    assert table.count("| names: fingerprint |") == 2
    assert (tmp_path / "results.jsonl").read_bytes() == results
