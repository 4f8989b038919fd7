import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from processes.command_line import Result, in_process

from facepairs.bench.rows import ROWS, Row
from facepairs.data.synth.folder import write_synthetic_faces

COMMAND = [sys.executable, "-m", "facepairs", "bench"]
ROW_KEYS = {
    "name",
    "pairs_per_s",
    "pairs_per_s_min",
    "pairs_per_s_max",
    "x_pil",
    "share_of_limit",
    "cpu_s_per_1k_pairs",
    "disk_mb",
    "build_s",
    "skipped",
    "failed",
    "note",
}
STEP_KEYS = {
    "name",
    "steps_per_s",
    "steps_per_s_min",
    "steps_per_s_max",
    "input_wait_share",
    "ceiling_steps_per_s",
    "share_of_ceiling",
    "share_of_ceiling_min",
    "share_of_ceiling_max",
    "device",
    "skipped",
    "failed",
}


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cli") / "photos"
    write_synthetic_faces(root, people=10, images=4, seed=3)
    return root


def bench(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=290
    )


def quick(*arguments: object) -> Result:
    """Run one short round in this process; its rows run in processes of their own."""
    few = ("--repeats", 1, "--seconds", 0.2, "--no-training")
    return in_process("bench", *arguments, *few)


@pytest.mark.slow
def test_bench_writes_and_prints_json(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "bench.json"
    done = quick(photos, "--rows", "pil,files", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(out.read_text())
    assert json.loads(done.stdout) == report
    assert set(report) == {"schema", "machine", "settings", "rows", "training"}
    assert report["schema"] == 1
    assert report["training"] == []
    machine, settings = report["machine"], report["settings"]
    assert machine["cores"] >= 1
    assert {"tensorflow", "keras", "numpy", "pillow"} <= set(machine["versions"])
    assert (settings["images"], settings["people"], settings["repeats"]) == (40, 10, 1)
    assert settings["command"].startswith("facepairs bench ")
    rows = {row["name"]: row for row in report["rows"]}
    assert list(rows) == ["pil", "files"]
    assert all(set(row) == ROW_KEYS for row in report["rows"])
    assert rows["pil"]["x_pil"] == 1
    for name in ("pil", "files"):
        row = rows[name]
        assert 0 < row["pairs_per_s_min"] <= row["pairs_per_s"] <= row["pairs_per_s_max"]
        assert row["failed"] is row["skipped"] is row["share_of_limit"] is None
    assert not settings["interrupted"]


@pytest.mark.slow
def test_bench_of_every_store_and_the_training_loop(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    names = [
        "files",
        "files-unaligned",
        "tfrecord-jpeg",
        "tfrecord-raw",
        "memory",
        "article",
        "limit",
    ]
    done = bench(
        *(photos, "--rows", ",".join(names), "--repeats", 1, "--seconds", 0.2),
        *("--out", out),
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(out.read_text())
    skipped = {row["name"]: row["skipped"] for row in report["rows"]}
    assert skipped.pop("files-unaligned")
    assert not any(skipped.values())
    sizes = [row["disk_mb"] for row in report["rows"] if "tfrecord" in row["name"]]
    assert min(sizes) > 0
    stores = [row["name"] for row in report["training"]]
    assert stores == ["files", "memory", "tfrecord-jpeg", "tfrecord-raw"]
    for row in report["training"]:
        assert set(row) == STEP_KEYS
        assert row["steps_per_s"] > 0
        assert row["share_of_ceiling"] > 0
        assert 0 <= row["input_wait_share"] < 1


def test_a_row_that_fails_is_printed_and_exits_with_1(
    photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ROWS, "broken", Row("facepairs.bench.job:no_such_function", ""))
    done = quick(photos, "--rows", "pil,broken")
    assert done.returncode == 1
    assert re.search(r"^pil +\d", done.stdout, re.MULTILINE)
    assert re.search(r"^broken +failed: AttributeError: ", done.stdout, re.MULTILINE)


def test_a_photo_without_a_face_is_named_before_anything_is_measured(tmp_path: Path) -> None:
    for number in range(4):
        place = tmp_path / f"P{number // 2}" / f"{number}.jpg"
        place.parent.mkdir(exist_ok=True)
        Image.linear_gradient("L").rotate(9 * number).convert("RGB").save(place)
    done = in_process("bench", tmp_path, "--rows", "files", check=2)
    assert re.search(r"P\d/\d\.jpg: ", done.stderr)
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--rows", "pil,fils"), "'fils'"),
        (("--repeats", "0"), "--repeats"),
    ],
)
def test_mistakes_are_one_line(photos: Path, arguments: tuple[str, ...], named: str) -> None:
    done = in_process("bench", photos, *arguments, check=2)
    assert named in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_missing_folder_is_one_line(tmp_path: Path) -> None:
    done = bench(tmp_path / "none", "--rows", "pil")
    assert done.returncode == 2
    assert f"{tmp_path}/none" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to another process")
def test_ctrl_c_shows_what_was_measured(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    arguments = [
        "--rows",
        "pil,article",
        "--repeats",
        "90",
        "--seconds",
        "0.1",
        "--out",
        str(out),
    ]
    process = subprocess.Popen(
        [*COMMAND, photos, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stderr is not None
    while "pil: " not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    stdout, _ = process.communicate(timeout=240)
    assert process.returncode == 130
    assert "\npil " in stdout
    report = json.loads(out.read_text())
    assert report["settings"]["interrupted"]
    assert report["rows"][0]["pairs_per_s"] > 0
    assert not list(tmp_path.glob("facepairs-bench-*"))
