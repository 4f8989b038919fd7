"""What `facepairs data check` prints: the folder in figures, and findings by kind."""

import shutil
from pathlib import Path

import pytest
from PIL import Image
from processes.command_line import in_process

from facepairs.cli.shared.output import MAX_SHOWN


def test_figures_come_first_and_of_a_kind_as_many_findings_as_fit(tmp_path: Path) -> None:
    sizes = [(390, 260)] + [(400, 380)] * 2 + [(390, 380)]
    for number in range(MAX_SHOWN + 3):
        person = tmp_path / f"Person_{number // 2:02}"
        person.mkdir(exist_ok=True)
        (person / f"broken_{number}.jpg").write_bytes(b"no image" * (number + 1))
    (tmp_path / "Zoe").mkdir()
    for number in range(MAX_SHOWN):
        (tmp_path / "Zoe" / f"empty_{number}.jpg").touch()
    for number, size in enumerate(sizes):
        Image.new("RGB", size, (90 + number, 99, 99)).save(person / f"{number}.png")
    lines = in_process("data", "check", tmp_path, check=1).stdout.splitlines()
    megabytes = sum(path.stat().st_size for path in tmp_path.glob("*/*")) / 1e6
    assert lines[:4] == [
        "people         13, 0 with one photo",
        f"images         47 ({megabytes:.1f} MB), 2 to 20 per person, median 2",
        "sizes          390 x 260 to 400 x 380 pixels, most have 400 x 380",
        "genuine pairs  211 possible",
    ]
    for name in ("broken_", "empty_"):
        assert sum(name in line for line in lines) == MAX_SHOWN
    assert sum("Person_11/" in line and ".png" in line for line in lines) == len(sizes)
    (more,) = (line for line in lines if "more of kind" in line)
    assert "… and 3 more of kind " in more


def test_the_last_line_says_whether_the_folder_is_ready(few_faces: Path, tmp_path: Path) -> None:
    lines = in_process("data", "check", few_faces, check=0).stdout.splitlines()
    assert lines[-1] == "ok"
    assert lines[4] == (
        "rates shown    FMR 12.3 % and FNMR 36.9 % without errors; FMR 86.7 % and FNMR 76.2 % if "
        "half of it is true"
    )
    person, *_ = sorted(shutil.copytree(few_faces, tmp_path / "faces").iterdir())
    photo, *_ = sorted(person.iterdir())
    shutil.copy(photo, person / "again.jpg")
    lines = in_process("data", "check", tmp_path / "faces", check=0).stdout.splitlines()
    assert lines[-1] == "no errors, 1 warning"
    (person / "empty.jpg").touch()
    lines = in_process("data", "check", tmp_path / "faces", check=1).stdout.splitlines()
    assert lines[-1].startswith("not ready for training")


def test_importing_tells_what_came_and_what_was_left_out(few_faces: Path, tmp_path: Path) -> None:
    (tmp_path / "source" / "Zoe").mkdir(parents=True)
    shutil.copy(next(few_faces.glob("*/*.jpg")), tmp_path / "source" / "Zoe" / "1.jpg")
    out = tmp_path / "out"
    done = in_process("data", "import", tmp_path / "source", out, check=0)
    told = [f"photos  1 photo of 1 person in {out}", f"next    facepairs data check {out}"]
    assert done.stdout.splitlines() == told
    (tmp_path / "source" / "Zoe" / "notes.txt").touch()
    done = in_process("data", "import", tmp_path / "source", tmp_path / "new", check=0)
    assert "left out  1" in done.stdout.splitlines()
    assert "notes.txt: not image" in done.stderr


@pytest.mark.parametrize(
    ("levels", "told"),
    [((9, 90), "390 x 260 pixels"), ((9, 9), "not known: no photo can be used")],  # nearly black
)
def test_sizes_are_those_of_the_photos_that_can_be_used(
    tmp_path: Path, levels: tuple[int, int], told: str
) -> None:
    for number, level in enumerate(levels):
        (tmp_path / f"Person_{number}").mkdir()
        Image.new("L", (390, 260), level).save(tmp_path / f"Person_{number}" / "1.png")
    lines = in_process("data", "check", tmp_path, check=1).stdout.splitlines()
    assert lines[:4] == [
        "people         2, 2 with one photo",
        "images         2 (0.0 MB), 1 per person",
        f"sizes          {told}",
        "genuine pairs  0 possible",
    ]
