"""`verify` on unaligned photos, and `data frame`, through the real command line."""

import json

import pytest
from command_line import in_process
from drawn_scenes import Place, canvas, drawn_faces, paste
from PIL import Image


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return drawn_faces(tmp_path_factory.mktemp("drawn") / "faces")


@pytest.fixture(scope="module")
def photos(drawn, tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    paste(canvas(600, 480), drawn[0], Place(260, 230, 300, 14)).save(folder / "one.jpg")
    group = paste(canvas(760, 440), drawn[1], Place(190, 210, 260))
    paste(group, drawn[2], Place(560, 210, 300)).save(folder / "group.jpg")
    canvas(300, 240).save(folder / "field.jpg")
    return folder


def test_a_photo_is_framed_and_shown(photos, drawn, tmp_path):
    out = tmp_path / "verdict.png"
    done = in_process("verify", photos / "one.jpg", drawn[1], "--show", out, "--json")
    verdict = json.loads(done.stdout)
    assert done.returncode == (0 if verdict["same"] else 1)
    left, right = verdict["faces"]["left"], verdict["faces"]["right"]
    assert left["framed"]
    assert left["faces"] == 1
    assert abs(left["roll_deg"] - 14) < 7
    assert abs(left["box"][2] - 300 / 2.2) < 30
    assert (right["framed"], right["box"], right["faces"]) == (False, None, None)
    with Image.open(out) as image:
        assert image.width > 800
    output = in_process("verify", photos / "one.jpg", drawn[1])
    assert "levelled by" in output.stdout
    assert "not framed again" in output.stdout


def test_no_face(photos, drawn):
    done = in_process("verify", photos / "field.jpg", drawn[0], "--json")
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert error["kind"] == "no_face"
    assert "--no-framing" in error["message"]
    assert "field.jpg" in error["message"]
    taken = in_process("verify", photos / "field.jpg", drawn[0], "--no-framing", "--json")
    assert taken.returncode in (0, 1)
    assert not json.loads(taken.stdout)["faces"]["left"]["framed"]


def test_every_face(photos, drawn):
    one = json.loads(in_process("verify", photos / "group.jpg", drawn[0], "--json").stdout)
    assert one["faces"]["left"]["faces"] == 2
    assert "comparisons" not in one
    done = in_process("verify", photos / "group.jpg", drawn[0], "--face", "all", "--json")
    every = json.loads(done.stdout)
    comparisons = every["comparisons"]
    assert len(comparisons) == 2
    assert comparisons[0]["faces"]["left"]["box"][2] > comparisons[1]["faces"]["left"]["box"][2]
    best = max(comparisons, key=lambda row: row["score"])
    assert (best["score"], best["same"]) == (every["score"], every["same"])
    assert done.returncode == (0 if any(row["same"] for row in comparisons) else 1)
    output = in_process("verify", photos / "group.jpg", drawn[0], "--face", "all").stdout
    assert output.count("and the whole image") == 2


def test_hints_are_warnings(photos, drawn, tmp_path):
    dark = tmp_path / "dark.png"
    with Image.open(drawn[0]) as image:
        image.point(lambda value: value // 4).save(dark)
    done = in_process("verify", dark, drawn[0], "--json")
    assert "dark.png: dark" in done.stderr
    kinds = [hint["kind"] for hint in json.loads(done.stdout)["faces"]["left"]["hints"]]
    assert kinds == ["dark"]


def test_options_that_do_not_go_together(photos, drawn, tmp_path):
    one = photos / "one.jpg"
    for options in (
        ("--pairs", "x.csv", "--out", tmp_path / "o.csv", "--show", tmp_path / "a.png"),
        (one, "--against", photos, "--face", "all"),
        (one, drawn[0], "--show", tmp_path / "a.doc"),
        (one, drawn[0], "--show", tmp_path),
    ):
        assert in_process("verify", *options).returncode == 2


def test_a_folder_is_framed(drawn, tmp_path):
    folder = tmp_path / "photos" / "Ann"
    folder.mkdir(parents=True)
    paste(canvas(420, 380), drawn[0], Place(200, 190, 260)).save(folder / "a.jpg")
    framed = tmp_path / "framed"
    done = in_process("data", "frame", tmp_path / "photos", "--out", framed, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["framed"] == 1
    with Image.open(framed / "Ann" / "a.jpg") as image:
        assert image.size == (250, 250)
    canvas(300, 260).save(folder / "field.jpg")
    again = in_process("data", "frame", tmp_path / "photos", "--out", tmp_path / "more")
    assert again.returncode == 1
    assert "Ann/field.jpg" in again.stderr
    assert "left out" in again.stdout
    assert in_process("data", "frame", tmp_path / "photos", "--out", framed).returncode == 2
