"""The page "Change it" is followed on a copy of the package, and what it makes trains."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "how-to" / "change-it.md"
TRAIN = """
import sys
from pathlib import Path
import facepairs
from facepairs.config import TrainConfig
assert Path(facepairs.__file__).is_relative_to(Path.cwd()), facepairs.__file__
config = TrainConfig(
    model="small", loss="partner", align="none", epochs=1, batch_size=8, pairs_per_epoch=16,
    calibration_share=0.25,
)
run = facepairs.train(sys.argv[1], sys.argv[2], config)
model = facepairs.load_keras(run.bundle)
assert model.output_shape == (None, 64)
"""


def sections() -> dict[str, list[tuple[str, str]]]:
    """The changes of each section: files and their diffs."""
    parts = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    blocks = r"^```diff\n--- (\S+)\n(.*?)^```"
    return {
        part.splitlines()[0]: re.findall(blocks, part, re.MULTILINE | re.DOTALL) for part in parts
    }


def test_each_change_is_short_and_in_two_files_at_most():
    changes = {title: found for title, found in sections().items() if found}
    assert list(changes) == ["An augmentation", "A loss", "A model"]
    for found in changes.values():
        assert len({file for file, _ in found}) <= 2
        text = "\n".join(diff for _, diff in found)
        added = [line for line in text.splitlines() if line.startswith("+") and line != "+"]
        removed = [line for line in text.splitlines() if line.startswith("-")]
        assert len(added) - len(removed) <= 15


@pytest.mark.slow
def test_the_page_is_followed(faces, tmp_path):
    shutil.copytree(ROOT / "facepairs", tmp_path / "facepairs")
    for found in sections().values():
        for name, diff in found:
            file = tmp_path / name
            text = file.read_text(encoding="utf-8")
            for old, new in re.findall(r"((?:^-.*\n)+)((?:^\+.*\n)+)", diff, re.MULTILINE):
                before, after = (re.sub(r"^.", "", x, flags=re.MULTILINE)[:-1] for x in (old, new))
                assert text.count(before) == 1, before
                text = text.replace(before, after)
            file.write_text(text, encoding="utf-8")
    words = [sys.executable, "-c", TRAIN, str(faces), str(tmp_path / "run")]
    done = subprocess.run(
        words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
