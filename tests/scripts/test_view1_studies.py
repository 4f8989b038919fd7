"""The study of look-alikes on View 1's test people, on noise: each person has a pattern."""

import numpy as np
import pytest
from PIL import Image
from processes.script_runner import run_script
from tiny.bundles import FRAME_PX, embedding_network, tiny_bundle

LOOK_ALIKES = "scripts/studies/look_alikes.py"
PEOPLE = 60


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder of 60 people of 2 photos, LFW's list of them, two groups and a bundle."""
    folder, rng = tmp_path_factory.mktemp("view1"), np.random.default_rng(0)
    lines, groups = [str(PEOPLE)], ["person,group"]
    for number in range(PEOPLE):
        name = f"P_{number:02}"
        pattern = rng.normal(128, 40, (FRAME_PX, FRAME_PX, 3))
        (folder / "faces" / name).mkdir(parents=True)
        for photo in (1, 2):
            pixels = np.clip(pattern + rng.normal(0, 30, pattern.shape), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / "faces" / name / f"{name}_{photo:04}.png")
        lines.append(f"{name}\t2")
        groups.append(f"{name},{'even' if number % 2 == 0 else 'odd'}")
    (folder / "lists").mkdir()
    for place, rows in (("lists/peopleDevTest.txt", lines), ("groups.csv", groups)):
        (folder / place).write_text("\n".join(rows) + "\n")
    tiny_bundle(folder / "wide", "embedding", embedding_network(width=24))
    return folder


def test_promises_among_look_alikes_are_stricter(world):
    lists, groups = ("--lists", world / "lists"), ("--groups", world / "groups.csv")
    done = run_script(LOOK_ALIKES, world / "wide", world / "faces", *lists, *groups)
    assert done.returncode == 0, done.stderr
    rows = [line.split("  ") for line in done.stdout.splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert cells[0][:6] == ["promise", "threshold", "FNMR", "FMR", "even", "odd"]
    everyone, three = cells[1], next(row for row in cells if "32 clusters" in row[0])
    assert float(three[1]) >= float(everyone[1])  # 60 people have three clusters at most
    assert float(three[3]) <= float(everyone[3]) <= 0.01
