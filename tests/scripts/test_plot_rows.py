"""The plot of a bench is drawn from its JSON file."""

import json
import subprocess
import sys
from pathlib import Path

from PIL import Image

SCRIPT = Path(__file__).parents[2] / "scripts" / "benchmarks" / "plot_rows.py"


def plot(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def write_report(path: Path, rates: "dict[str, int | None]") -> Path:
    rows = [
        {"name": name, "pairs_per_s": rate, "pairs_per_s_min": rate, "pairs_per_s_max": rate}
        for name, rate in rates.items()
    ]
    settings = {"repeats": 3, "crop_px": 112, "batch_size": 64, "page_cache": "warm"}
    report = {"rows": rows, "settings": settings, "machine": {"cpu": "CPU", "cores": 2}}
    path.write_text(json.dumps(report))
    return path


def test_rows_without_figures_are_left_out_of_the_plot(tmp_path):
    rates = {"pil": 100, "files": 1500, "limit": 1600, "torch-2": None}
    bench = write_report(tmp_path / "bench.json", rates)
    done = plot(bench, tmp_path / "rows.png")
    assert done.returncode == 0, done.stderr
    with Image.open(tmp_path / "rows.png") as image:
        assert image.format == "PNG"
        assert image.width > 500
    done = plot(bench, tmp_path / "rows.txt")
    assert done.returncode == 2
    assert ".png" in done.stderr


def test_the_legend_names_only_what_is_there(tmp_path):
    names = {"facepairs", "others", "decoding only, without batches"}
    for rates, shown in (
        ({"files": 1500, "memory": 90_000, "torch-2": None}, set()),
        ({"files": 1500, "torch-2": 800}, {"facepairs", "others"}),
    ):
        bench = write_report(tmp_path / "bench.json", rates)
        assert plot(bench, tmp_path / "rows.svg").returncode == 0
        drawn = (tmp_path / "rows.svg").read_text()
        assert {name for name in names if f"<!-- {name} -->" in drawn} == shown
