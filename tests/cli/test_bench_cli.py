import json
import os
import re
from pathlib import Path

import pytest
from processes.command_line import Result, in_process

from facepairs.bench.rows import ROWS, Row
from facepairs.data.synth.folder import write_synthetic_faces


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cli") / "photos"
    write_synthetic_faces(root, people=10, photos=4, seed=3)
    return root


def bench(*arguments: object) -> Result:
    """Run one short round in this process; its rows run in processes of their own."""
    return in_process("bench", *arguments, "--repeats", 1, "--seconds", 0.2)


@pytest.mark.slow
def test_every_store_and_the_training_loop_are_measured(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "bench.json"
    names = ["pil", "files", "files-unaligned", "tfrecord-jpeg", "tfrecord-raw", "memory",
             "article", "limit"]  # fmt: skip
    done = bench(photos, "--rows", ",".join(names), "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(out.read_text())
    assert json.loads(done.stdout) == report
    assert (report["schema"], report["settings"]["interrupted"]) == (1, False)
    rows = {row["name"]: row for row in report["rows"]}
    assert list(rows) == names
    for row in rows.values():
        assert 0 < row["pairs_per_s_min"] <= row["pairs_per_s"] <= row["pairs_per_s_max"]
        assert row["failed"] is row["skipped"] is None
    assert 0 < rows["tfrecord-jpeg"]["disk_mb"] < rows["tfrecord-raw"]["disk_mb"]
    stores = [row["name"] for row in report["training"]]
    assert stores == ["files", "memory", "tfrecord-jpeg", "tfrecord-raw"]
    for row in report["training"]:
        assert row["steps_per_s"] > 0 < row["share_of_ceiling"]
        assert 0 <= row["input_wait_share"] < 1


def test_a_row_that_fails_is_printed_and_exits_with_1(
    photos: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(ROWS, "broken", Row("facepairs.bench.job:no_such_function", ""))
    out = tmp_path / "bench.json"
    done = bench(photos, "--rows", "pil,broken", "--out", out)
    assert done.returncode == 1
    assert f"written: {out}\n" in done.stderr
    assert [row["name"] for row in json.loads(out.read_text())["rows"]] == ["pil", "broken"]
    assert re.search(r"^machine +\S.*, \d+ cores, [\d.]+ GB$", done.stdout, re.MULTILINE)
    assert re.search(r"^images +40 images, in batches of 64, align \w+$", done.stdout, re.M)
    assert re.search(r"^pil +\d", done.stdout, re.MULTILINE)
    assert re.search(r"^pil +[█#]+ +\d", done.stdout, re.MULTILINE)
    assert re.search(r"^broken +failed: AttributeError: ", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("word", "trained"), [("--training", ["tfrecord-raw"]), ("--no-training", [])]
)
def test_training_is_measured_from_the_stores_that_are_named(
    word: str,
    trained: list[str],
    photos: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    device = "import os; raise ModuleNotFoundError(os.environ.get('CUDA_VISIBLE_DEVICES', 'GPU'))"
    (tmp_path / "tensorflow.py").write_text(device)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    search = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", search)
    done = bench(photos, "--rows", "tfrecord-raw", word, "--json")
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert [(row["name"], row["skipped"]) for row in report["rows"]] == [("tfrecord-raw", "-1")]
    told = [(row["name"], row["skipped"]) for row in report["training"]]
    assert told == [(name, "GPU") for name in trained]
