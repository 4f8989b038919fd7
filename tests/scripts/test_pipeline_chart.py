"""The chart of input pipelines shows the published figures."""

import re
from pathlib import Path

from script_runner import run_script

SCRIPT = "scripts/benchmarks/pipeline_chart.py"
PAGE = Path(__file__).parents[2] / "docs" / "results" / "speed.md"


def test_the_chart_is_up_to_date_and_shows_every_row():
    done = run_script(SCRIPT, "--check")
    assert done.returncode == 0, done.stderr
    table = PAGE.read_text(encoding="utf-8").partition("## Speed of training")[0]
    published = re.findall(r"^\| \**`[\w-]+`.*?\| ([\d,]+) \(", table, re.MULTILINE)
    drawn = (PAGE.parents[1] / "images" / "pipelines.svg").read_text(encoding="utf-8")
    assert len(published) == drawn.count("<circle") == 9
    assert all(f">{figure}</text>" in drawn for figure in published)


def test_a_changed_figure_is_noticed(tmp_path):
    page = tmp_path / "speed.md"
    page.write_text(PAGE.read_text(encoding="utf-8").replace("| 540 (", "| 640 ("), "utf-8")
    done = run_script(SCRIPT, "--check", "--page", page)
    assert done.returncode == 1
    assert "pipeline_chart.py" in done.stderr
    page.write_text("no table")
    assert run_script(SCRIPT, "--page", page, "--out", tmp_path / "x.svg").returncode == 1
    assert not (tmp_path / "x.svg").exists()
