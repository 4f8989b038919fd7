"""`facepairs search`: the best matches of a folder, and how many strangers match by chance."""

import csv
import json
import shutil

import numpy as np
import pytest
from drawn.scenes import Place, canvas, drawn_faces, paste
from PIL import Image
from processes.command_line import in_process
from tiny.bundles import FRAME_PX, error_table, tiny_bundle

from facepairs.bundles.rates import OperatingPoint

RATE = OperatingPoint(0.75, max_fmr=0.01)


def search(*arguments, **options):
    return in_process("search", *arguments, **options)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    out = tmp_path_factory.mktemp("b") / "bundle"
    return tiny_bundle(out, "embedding", errors=error_table(), thresholds=(RATE,)).folder


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    for number in range(4):
        pixels = np.random.default_rng(number).integers(0, 256, (FRAME_PX, FRAME_PX, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    (folder / "broken.jpg").write_bytes(b"no image")
    return folder


def rows_of(path):
    with open(path, newline="") as handle:
        return list(csv.DictReader(handle))


def test_the_best_come_first(bundle, photos, tmp_path):
    options = (photos / "0.png", photos, "--bundle", bundle)
    done = search(*options, "--out", tmp_path / "o.csv", "--top", 2)
    assert done.returncode == 1
    assert "warning: 1 of 4 photos could not be used" in done.stderr
    assert "broken.jpg" in done.stderr
    assert f"written: {tmp_path / 'o.csv'}" in done.stderr
    header, *table = done.stdout.splitlines()[-3:]
    assert header.split() == ["rank", "score", "match", "photo", "face"]
    assert [line.split()[0] for line in table] == ["1", "2"]
    assert "probability" not in done.stdout
    assert len(rows_of(tmp_path / "o.csv")) == 4
    output = json.loads(search(*options, "--json", "--threshold", 0.75).stdout)
    scores = [match["score"] for match in output["photos"]]
    assert scores == sorted(scores, reverse=True)
    assert {match["path"] for match in output["photos"]} == {"1.png", "2.png", "3.png"}
    assert [item["path"] for item in output["failed"]] == ["broken.jpg"]
    assert (output["operating_point"]["threshold"], output["schema"]) == (0.75, 3)
    assert output["expected_false_matches"] == pytest.approx(0.003)
    assert output["expected_false_matches_interval"] == pytest.approx([0.0015, 0.0105])


def test_copies_of_the_photo_are_no_matches(bundle, photos, tmp_path):
    for name in ("a.png", "b.png"):
        shutil.copy(photos / "0.png", tmp_path / name)
    done = search(photos / "0.png", tmp_path, "--bundle", bundle, check=0)
    assert "2 photos with the same content as" in done.stderr
    assert done.stdout.count("copy") == 2
    assert "matches        0 photos\n" in done.stdout


def test_every_face_of_a_photo_is_looked_at(tmp_path):
    drawn = drawn_faces(tmp_path / "faces")
    bundle = tiny_bundle(tmp_path / "b", "embedding", alignment="landmarks-5").folder
    (tmp_path / "photos").mkdir()
    group = paste(canvas(760, 440), drawn[1], Place(190, 210, 260))
    paste(group, drawn[2], Place(560, 210, 300)).save(tmp_path / "photos" / "group.png")
    left = {"box": None, "faces": 2}
    for face, centre in ((drawn[1], 190), (drawn[2], 560)):  # the smaller one is found as well
        done = search(face, tmp_path / "photos", "--bundle", bundle, "--json", check=0)
        found = json.loads(done.stdout)
        (row,) = found["photos"]
        assert (found["compared"], found["faces"], row["faces"]) == (1, 2, 2)
        assert abs(row["box"][0] + row["box"][2] / 2 - centre) < 30
        assert row["box"] != left["box"]
        left = row


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["a.png"], "usage"),
        (["a.png", "d", "--top", "0"], "usage"),
        (["none.png", "d"], "image"),
        (["d", "d"], "data"),
        (["a.png", "empty"], "data"),
        (["a.png", "a.png"], "data"),
        (["a.png", "d", "--threshold", "90"], "config"),
        (["a.png", "d", "--out", "d"], "data"),
    ],
)
def test_misuse_is_one_line_and_exit_2(bundle, photos, tmp_path, monkeypatch, words, kind):
    monkeypatch.chdir(tmp_path)
    shutil.copy(photos / "0.png", tmp_path / "a.png")
    shutil.copytree(photos, tmp_path / "d")
    (tmp_path / "empty").mkdir()
    error = json.loads(search(*words, "--bundle", bundle, "--json", check=2).stdout)["error"]
    assert error["kind"] == kind
    assert len(search(*words, "--bundle", bundle, check=2).stderr.splitlines()) == 1
