"""What is not ours is never replaced or deleted, whatever option names it."""

import os
from pathlib import Path

import pytest
from processes.command_line import in_process

EXTENSION = '{"manifest_version": 3}'


@pytest.fixture(scope="module")
def photos(few_faces: Path) -> list[Path]:
    return sorted(few_faces.glob("*/*.jpg"))[:2]


@pytest.fixture(scope="module")
def pairs(few_faces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = [str(path.relative_to(few_faces)) for path in sorted(few_faces.glob("*/*.jpg"))[:2]]
    path = tmp_path_factory.mktemp("list") / "pairs.csv"
    path.write_text(f"left,right\n{','.join(names)}\n")
    return path


@pytest.mark.skipif(not hasattr(os, "mknod") or os.geteuid() != 0, reason="needs root")
def test_a_device_is_not_replaced(few_faces, pairs, tmp_path):
    try:
        os.mknod(tmp_path / "null", 0o20666, os.makedev(1, 3))
        (tmp_path / "null").write_text("x")
    except OSError:
        pytest.skip("no devices here")
    in_process("score", pairs, "--root", few_faces, "--out", tmp_path / "null", check=2)
    assert (tmp_path / "null").is_char_device()
    in_process("data", "synth", "--out", tmp_path / "null", check=2)
    assert (tmp_path / "null").is_char_device()


def test_standard_output_is_no_file_to_write(few_faces, pairs):
    in_process("score", pairs, "--root", few_faces, "--out", "-", check=2)


def test_what_is_read_is_not_replaced(few_faces, pairs, photos, tmp_path):
    table = tmp_path / "pairs.csv"
    table.write_bytes(pairs.read_bytes())
    (tmp_path / "linked").symlink_to(table)
    (tmp_path / "second").hardlink_to(table)
    (tmp_path / "page.html").write_text("person,group\n")
    (tmp_path / "embedder.toml").write_text("x = 1\n")
    before = {path: path.read_text() for path in tmp_path.rglob("*.*")}
    score = ("score", "--root", few_faces)
    embedder, page = tmp_path / "embedder.toml", tmp_path / "page.html"
    for words in (
        (*score, table, "--out", tmp_path / "linked"),
        (*score, table, "--out", tmp_path / "second"),
        (*score, tmp_path / "second", "--out", table),
        (*score, pairs, "--bundle", embedder, "--out", embedder),
        ("evaluate", "default", few_faces, "--pairs", table, "--out", tmp_path / "second"),
        ("evaluate", embedder, few_faces, "--out", embedder),
        ("evaluate", "default", few_faces, "--groups", page, "--report", page),
    ):
        in_process(*words, check=2)
    assert {path: path.read_text() for path in tmp_path.rglob("*.*")} == before


@pytest.mark.parametrize(
    ("command", "option"), [("evaluate", "--report"), ("evaluate", "--out"), ("score", "--out")]
)
def test_a_folder_in_place_of_a_file_is_named_before_anything_is_measured(
    tmp_path, command, option
):
    place = tmp_path / "a.html"
    place.mkdir()
    done = in_process(command, tmp_path / "none.csv", option, place, check=2)
    assert str(place) in done.stderr
    assert "none.csv" not in done.stderr


def test_a_file_beside_the_scores_that_is_no_provenance_stays(few_faces, pairs, tmp_path):
    beside = tmp_path / "scores.csv.json"
    beside.write_text('{"mine": 1}')
    words = ("score", pairs, "--root", few_faces, "--out", tmp_path / "scores.csv")
    in_process(*words, check=2)
    assert beside.read_text() == '{"mine": 1}'
    assert [path.name for path in tmp_path.iterdir()] == [beside.name]
    beside.unlink()
    for _ in range(2):
        in_process(*words, check=0)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("calibrate", "default", "PHOTOS", "--out"), "manifest.json"),
        (("export", "default", "--format", "onnx", "--out"), "export.json"),
        (("cache", "build", "PHOTOS", "--pair-count", "10", "--out"), "manifest.json"),
        (("data", "synth", "--out"), "manifest.json"),
        (("data", "import", "PHOTOS"), "manifest.json"),
        (("train", "PHOTOS", "--out"), "config.toml"),
        (("crossval", "PHOTOS", "--lists", "PHOTOS", "--out"), "config.toml"),
    ],
)
def test_a_folder_that_is_not_ours_stays(few_faces, tmp_path, words, name):
    folder = tmp_path / "ext"
    folder.mkdir()
    words = [few_faces if word == "PHOTOS" else word for word in words]
    for other in ((), ("thesis.txt",)):
        for file in (name, *other):
            (folder / file).write_text(EXTENSION)
        in_process(*words, folder, check=2)
        assert {path.name for path in folder.iterdir()} == {name, *other}
        assert {path.read_text() for path in folder.iterdir()} == {EXTENSION}
