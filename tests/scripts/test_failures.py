"""Errors by quality of the photos, on images whose qualities are known."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

SCRIPT = Path(__file__).parents[2] / "scripts" / "failures.py"
PEOPLE = 12


@pytest.fixture
def world(tmp_path):
    """Flat photos that get brighter from person to person; the four darkest pairs err."""
    data, run = tmp_path / "faces", tmp_path / "run"
    run.mkdir()
    rows = ["left,right,genuine,fold,score"]
    for person in range(PEOPLE):
        folder = data / f"Person_{person:02}"
        folder.mkdir(parents=True)
        for number in (1, 2):
            gray = np.full((250, 250, 3), 20 + 15 * person, np.uint8)
            Image.fromarray(gray).save(folder / f"Person_{person:02}_000{number}.png")
        names = [f"Person_{person:02}/Person_{person:02}_000{number}.png" for number in (1, 2)]
        fold = 1 + person % 2
        # Fold 2 has its threshold elsewhere: a score of 5 is accepted by fold 1 alone.
        score = (5.0 if fold == 1 else 15.0) - (3.0 if person < 4 else 0.0)
        rows.append(f"{names[0]},{names[1]},1,{fold},{score}")
        rows.append(f"{names[0]},{names[1]},0,{fold},{score - 10}")
    (run / "scores.csv").write_text("\n".join(rows) + "\n")
    folds = [{"fold": 1, "threshold": 4.0}, {"fold": 2, "threshold": 14.0}]
    (run / "result.json").write_text(json.dumps({"folds": folds}))
    return data, run


def failures(*arguments):
    return subprocess.run(
        [sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_errors_are_counted_where_they_are(world, tmp_path):
    out = tmp_path / "failures.md"
    done = failures(*world, "--out", out)
    assert done.returncode == 0, done.stderr
    assert out.read_text() == done.stdout
    rows = {line.split(" | ")[0].lstrip("| "): line for line in done.stdout.splitlines()}
    assert "| 24 | 0.000 (0.000 to 0.265) | 0.333 (" in rows["all"]
    assert "| 8 | 0.000 (" in rows["light (mean gray level): darkest third"]
    assert "| 1.000 (" in rows["light (mean gray level): darkest third"]
    assert "| 0.000 (0.000 to 0.602) |" in rows["light (mean gray level): brightest third"]
    assert rows["light (mean gray level): brightest third"].count("0.000 (0.000") == 2


def test_what_is_missing_is_named(world):
    data, run = world
    (run / "result.json").write_text("{}")
    done = failures(data, run)
    assert done.returncode == 2
    assert "result.json: has no threshold" in done.stderr
    assert "Traceback" not in done.stderr
