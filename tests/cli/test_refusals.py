"""Bad input of every kind, one example for each command: one line, exit code 2, nothing written."""

import json
import shutil
from pathlib import Path

import pytest
from drawn.scenes import drawn_faces
from drawn.view2 import write_lists
from processes.command_line import in_process
from tiny.bundles import AMONG_LOOKALIKES, tiny_bundle
from tiny.scores import invented

from facepairs.evaluation.scores import write_scores

TWO = ("verify", "a.jpg", "b.jpg", "--bundle", "bundle")
SCORE = ("score", "pairs.csv", "--bundle", "bundle")
SEARCH = ("search", "a.jpg", "faces", "--bundle", "bundle")
CROSSVAL = ("crossval", "faces", "--lists", "lists", "--out", "new")
CACHE = ("cache", "build", "faces", "--out", "new", "--pair-count")
URL = "https://x.org/a"
REFUSED = [
    (("nonsense",), "parse"),
    (("train", "none"), "data"),
    (("train", "faces", "--resume", "--out", "none"), "run"),
    (("train", "faces", "--config", "none.toml"), "config"),
    (("train", "faces", "--config", "wrong.toml"), "config"),
    (("train", "faces", "--out", "-"), "data"),
    (("train", "faces", "--out", URL), "data"),
    (("verify", "a.jpg"), "usage"),
    (("verify", "a.jpg", "b.jpg", "--bundle", "empty"), "bundle"),
    ((*TWO, "--max-fmr", "0.02"), "config"),
    ((*TWO, "--max-fmr", "0.01", "--threshold", "0"), "config"),
    ((*TWO, "--threshold", "nan"), "config"),
    ((*TWO, "--prior", "1"), "config"),
    ((*TWO, "--face", "0"), "usage"),
    ((*TWO, "--face", "3"), "config"),
    ((*TWO, "--face", "1", "--face", "1", "--face", "1"), "usage"),
    (("verify", "a.jpg", "none.jpg"), "image"),
    (("verify", "text.jpg", "a.jpg"), "image"),
    (("verify", URL, "a.jpg"), "data"),
    (("verify", "faces", "a.jpg"), "image"),
    ((*SCORE, "--out", "new", "--prior", "-1"), "config"),
    (("score", "a.jpg", "b.jpg", "--out", "new"), "config"),
    (("score", "none.csv", "--out", "new"), "data"),
    ((*SCORE, "--out", "new", "--root", URL), "data"),
    ((*SEARCH, "--threshold", "90"), "config"),
    (("search", "none.jpg", "faces"), "image"),
    (("search", "faces", "faces"), "image"),
    (("search", "a.jpg", "empty"), "data"),
    (("search", "a.jpg", "a.jpg"), "data"),
    (("evaluate", "none.csv"), "data"),
    (("evaluate", "none", "faces"), "bundle"),
    (("evaluate", "scores.csv", "--pairs", "pairs.csv"), "config"),
    (("evaluate", "scores.csv", "--lists", "empty"), "config"),
    (("evaluate", "scores.csv", "--report", "report.pdf"), "config"),
    (("calibrate", "bundle", "faces", "--out", "new"), "not_enough"),
    (("info", "empty"), "bundle"),
    (("data", "check", "none"), "data"),
    (("data", "synth", "--out", "faces", "--people", "2"), "data"),
    (("data", "fetch", "lfw", "--lists-only", "--out", "-"), "data"),
    (("data", "import", "faces", "-"), "data"),
    (("bench", "faces", "--rows", "pil,fils"), "config"),
    (("bench", "faces", "--rows", "pil", "--no-training", "--out", "faces"), "data"),
    ((*CROSSVAL, "--fold", "0"), "config"),
    ((*CROSSVAL, "--fold", "5"), "config"),
    ((*CROSSVAL, "--lists", "empty"), "data"),
    ((*CROSSVAL, "--resume"), "run"),
    ((*CROSSVAL, "--config", "wrong.toml"), "config"),
    ((*CROSSVAL, "--out", "faces/run"), "config"),
    ((*CACHE, "0"), "config"),
    ((*CACHE, "9", "--config", "none.toml"), "config"),
    ((*CACHE, "9", "--config", "fisher.toml"), "config"),
    ((*CACHE, "9", "--config", "wrong.toml"), "config"),
    ((*CACHE, "9", "--out", "faces"), "data"),
    ((*CACHE, "9", "--out", URL), "data"),
    ((*CACHE, "9", "--", "--quiet"), "config"),
    (("gallery", "list", "none"), "data"),
    (("group", "faces", "--out", "new", "--precision", "1"), "config"),
    (("group", "faces", "--out", "new", "--bundle", "nothing"), "bundle"),
    (("gallery", "remove", "none", "Ann"), "data"),
    (("gallery", "rename", "none", "Ann", "Bo"), "data"),
    (("gallery", "identify", "none", "a.jpg"), "data"),
    (("gallery", "identify", "text.jpg", "a.jpg"), "gallery"),
    (("gallery", "add", "new", "a.jpg"), "usage"),
    (("gallery", "add", "new", "faces", "faces"), "usage"),
    (("demo", "--out", "-"), "parse"),
    (("--max-megapixels", "few", "info"), "parse"),
    ((*TWO, "--max-megapixels", "0"), "config"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with good inputs, and a few bad ones."""
    here = tmp_path_factory.mktemp("refusals")
    first, *_, last = drawn_faces(here / "faces", people=8, images=2)
    shutil.copy(first, here / "a.jpg")
    shutil.copy(last, here / "b.jpg")
    (here / "text.jpg").write_text("no photo")
    (here / "empty").mkdir()
    (here / "pairs.csv").write_text("left,right\na.jpg,b.jpg\n")
    (here / "fisher.toml").write_text('model = "fisher"\n')
    (here / "wrong.toml").write_text('epochs = "many"\n')
    write_lists(here / "faces", here / "lists")
    write_scores(here / "scores.csv", invented(folds=0))
    tiny_bundle(here / "bundle", alignment="landmarks-5", **AMONG_LOOKALIKES)
    return here


def listing(folder: Path) -> list[tuple[str, int]]:
    paths = (path for path in folder.rglob("*") if path.name != "run.lock")
    return sorted((str(path), path.stat().st_mtime_ns) for path in paths if path.is_file())


@pytest.mark.parametrize(
    ("words", "kind"), REFUSED, ids=lambda part: " ".join(part) if isinstance(part, tuple) else part
)
def test_a_mistake_is_one_line_and_exit_code_2(place, monkeypatch, words, kind):
    monkeypatch.chdir(place)
    before = listing(place)
    done = in_process(*words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    at = words.index("--") if "--" in words else len(words)
    as_json = in_process(*words[:at], "--json", *words[at:])
    if kind == "parse":  # --json was not reached
        assert as_json[:2] == (2, "")
        return
    assert (as_json.returncode, as_json.stderr) == (2, "")
    error = json.loads(as_json.stdout)["error"]
    assert set(error) == {"kind", "message"}
    assert error["kind"] == kind
    for file in {"none.toml", "wrong.toml", *([URL] if kind == "data" else [])} & set(words):
        assert file in error["message"]
    assert listing(place) == before
