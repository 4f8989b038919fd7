"""What is not ours is never replaced or deleted, whatever option names it."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image
from processes.command_line import facepairs, in_process

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


@pytest.fixture(scope="module")
def person(photos: list[Path]) -> Path:
    return photos[0].parent


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_gets_the_rows_and_stays(photos, person, pairs, tmp_path):
    for name, words in {
        "search": ("search", photos[0], person, "--out"),
        "score": ("score", pairs, "--root", person.parent, "--out"),
    }.items():
        pipe = tmp_path / name
        os.mkfifo(pipe)
        with ThreadPoolExecutor(1) as pool:
            read = pool.submit(pipe.read_text)
            in_process(*words, pipe, check=0)
        assert read.result().startswith("left,right,")
        assert pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["score", "search"]


@pytest.mark.skipif(not hasattr(os, "mknod") or os.geteuid() != 0, reason="needs root")
def test_a_device_is_not_replaced(photos, person, tmp_path):
    try:
        os.mknod(tmp_path / "null", 0o20666, os.makedev(1, 3))
        (tmp_path / "null").write_text("x")
    except OSError:
        pytest.skip("no devices here")
    in_process("search", photos[0], person, "--out", tmp_path / "null", check=0)
    assert (tmp_path / "null").is_char_device()
    in_process("data", "synth", "--out", tmp_path / "null", check=2)
    assert (tmp_path / "null").is_char_device()


@pytest.mark.parametrize("mode", ["score", "search"])
def test_standard_output_holds_the_rows_alone(photos, person, pairs, mode, tmp_path):
    words = {
        "search": ("search", photos[0], person, "--out", "-"),
        "score": ("score", pairs, "--root", person.parent, "--out", "-"),
    }[mode]
    done = facepairs(*words, cwd=tmp_path, check=0)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("left,right,")
    assert len(lines) == (4 if mode == "search" else 2)
    assert not list(tmp_path.iterdir())
    assert facepairs(*words, "--quiet", cwd=tmp_path, check=0).stderr == ""


@pytest.mark.parametrize(
    "words",
    [
        ("data", "synth", "--people", 2, "--photos", 2, "--out"),
        ("data", "import", "PHOTOS"),
        ("data", "fetch", "lfw", "--lists-only", "--out"),
        ("calibrate", "default", "PHOTOS", "--out"),
        ("export", "default", "--format", "onnx", "--out"),
        ("train", "PHOTOS", "--out"),
        ("crossval", "PHOTOS", "--lists", "PHOTOS", "--out"),
        ("cache", "build", "PHOTOS", "--pair-count", "10", "--out"),
        ("demo", "--out"),
        ("gallery", "list"),
    ],
)
def test_standard_output_is_no_folder(few_faces, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    in_process(*(few_faces if word == "PHOTOS" else word for word in words), "-", check=2)
    assert not list(tmp_path.iterdir())


def test_what_is_read_is_not_replaced(few_faces, person, pairs, photos, tmp_path):
    lists, table = tmp_path / "lists", tmp_path / "pairs.csv"
    lists.mkdir()
    (lists / "pairs.txt").write_text("10\t300\n")
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
        ("verify", photos[0], photos[1], "--show", photos[1]),
        ("evaluate", "default", few_faces, "--lists", lists, "--out", lists / "pairs.txt"),
        ("evaluate", "default", few_faces, "--pairs", table, "--out", tmp_path / "second"),
        ("evaluate", embedder, few_faces, "--out", embedder),
        ("evaluate", "default", few_faces, "--groups", page, "--report", page),
    ):
        in_process(*words, check=2)
    assert {path: path.read_text() for path in tmp_path.rglob("*.*")} == before


def test_what_may_not_be_written_is_not_replaced(photos, person, tmp_path):
    scores = tmp_path / "scores.csv"
    scores.write_text("mine")
    scores.chmod(0o444)
    in_process("search", photos[0], person, "--out", scores, check=2)
    assert scores.read_text() == "mine"


@pytest.mark.skipif(os.name == "nt", reason="needs modes of files")
def test_an_output_is_as_private_as_what_it_replaces(photos, person, tmp_path):
    scores, folder = tmp_path / "scores.csv", tmp_path / "faces"
    scores.touch(0o600)
    folder.mkdir(0o700)
    in_process("search", photos[0], person, "--out", scores, check=0)
    in_process("data", "synth", "--people", 2, "--photos", 2, "--out", folder, check=0)
    assert [oct(path.stat().st_mode & 0o777) for path in (scores, folder)] == ["0o600", "0o700"]


def test_a_link_is_followed(photos, person, tmp_path):
    (tmp_path / "link").symlink_to("scores.csv")
    in_process("search", photos[0], person, "--out", tmp_path / "link", check=0)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "scores.csv").read_text().startswith("left,right")


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp"])
def test_only_an_earlier_picture_is_replaced(photos, suffix, tmp_path):
    shown = tmp_path / f"other.{suffix}"
    Image.open(photos[0]).save(shown)
    before = shown.read_bytes()
    in_process("verify", *photos, "--show", shown, check=2)
    assert shown.read_bytes() == before
    shown.unlink()
    for _ in range(2):
        in_process("verify", *photos, "--show", shown, check=0)
    assert shown.read_bytes() != before
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "notes.txt").replace(shown)
    in_process("verify", *photos, "--show", shown, check=2)
    assert shown.read_text() == "x"


def test_a_file_beside_the_scores_that_is_no_provenance_stays(photos, person, pairs, tmp_path):
    beside = tmp_path / "scores.csv.json"
    beside.write_text('{"mine": 1}')
    words = ("score", pairs, "--root", person.parent, "--out", tmp_path / "scores.csv")
    in_process(*words, check=2)
    assert beside.read_text() == '{"mine": 1}'
    assert [path.name for path in tmp_path.iterdir()] == [beside.name]
    beside.unlink()
    for _ in range(2):
        in_process(*words, check=0)


def foreign_folder(tmp_path: Path, name: str, text: str) -> Path:
    folder = tmp_path / "ext"
    folder.mkdir()
    (folder / name).write_text(text)
    (folder / "thesis.txt").write_text("work")
    return folder


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
@pytest.mark.parametrize("thesis", [True, False])
def test_a_folder_that_is_not_ours_stays(few_faces, tmp_path, words, name, thesis):
    folder = foreign_folder(tmp_path, name, EXTENSION)
    if not thesis:
        (folder / "thesis.txt").unlink()
    in_process(*(few_faces if word == "PHOTOS" else word for word in words), folder, check=2)
    kept = {name: EXTENSION, "thesis.txt": "work"} if thesis else {name: EXTENSION}
    assert {path.name: path.read_text() for path in folder.iterdir()} == kept


def test_a_note_in_an_export_is_kept(tmp_path):
    out = tmp_path / "out"
    for _ in range(2):
        in_process("export", "default", "--format", "onnx", "--out", out, check=0)
    listed = json.loads((out / "export.json").read_text())["files"]
    assert sorted([*listed, "export.json"]) == sorted(path.name for path in out.iterdir())
    (out / "notes.txt").touch()
    in_process("export", "default", "--format", "onnx", "--out", out, check=2)
    assert (out / "notes.txt").exists()


def test_a_note_in_a_bundle_is_kept(make_bundle):
    from facepairs.bundles.writer import rewrite_bundle
    from facepairs.errors import BadBundle

    bundle = make_bundle("embedding")
    for _ in range(2):
        bundle = rewrite_bundle(bundle, bundle.folder, {})
    (bundle.folder / "notes.txt").touch()
    with pytest.raises(BadBundle):
        rewrite_bundle(bundle, bundle.folder, {})
    assert (bundle.folder / "notes.txt").exists()
