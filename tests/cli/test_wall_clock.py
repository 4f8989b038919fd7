"""A wall clock that jumps changes no result."""

import json
import subprocess
import sys

from PIL import Image
from tiny.bundles import FRAME_PX, tiny_bundle

JUMPING = """
import sys, time
real, jumps = time.time, []
def jumping():
    jumps.append(1)
    return real() + (-1) ** len(jumps) * 1e8 * len(jumps)
time.time = jumping
from facepairs.cli.main import main
main(sys.argv[1:])
"""


def test_a_jumping_wall_clock_changes_nothing(tmp_path):
    folder = tiny_bundle(tmp_path / "bundle", "embedding").folder
    for number in range(3):
        photo = Image.new("RGB", (FRAME_PX, FRAME_PX), (90 * number, 30, 60))
        photo.save(tmp_path / f"{number}.png")
    (tmp_path / "pairs.csv").write_text("left,right\n0.png,1.png\n1.png,2.png\n")
    words = [
        "score",
        "pairs.csv",
        "--out",
        "out.csv",
        "--bundle",
        folder,
        "--json",
        "--quiet",
    ]
    done = subprocess.run(
        [sys.executable, "-c", JUMPING, *map(str, words)],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert 0 <= json.loads(done.stdout)["seconds"] < 600
