"""`verify` on photos of any kind, through the real command line."""

import csv
import json

import numpy as np
import pytest
from drawn.scenes import Place, canvas, drawn_faces, faceless, paste
from PIL import Image
from processes.command_line import in_process
from tiny.bundles import tiny_bundle

from facepairs.bundles.rates import OperatingPoint


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return drawn_faces(tmp_path_factory.mktemp("drawn") / "faces")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A bundle of aligned faces."""
    folder = tmp_path_factory.mktemp("b") / "bundle"
    return tiny_bundle(
        folder,
        "embedding",
        alignment="landmarks-5",
        thresholds=(OperatingPoint(0.99, "fmr-0.01", 0.01),),
        default_fmr=0.01,
    ).folder


@pytest.fixture(scope="module")
def photos(drawn, tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    paste(canvas(600, 480), drawn[0], Place(260, 230, 300, 14)).save(folder / "one.jpg")
    group = paste(canvas(760, 440), drawn[1], Place(190, 210, 260))
    paste(group, drawn[2], Place(560, 210, 300)).save(folder / "group.jpg")
    paste(canvas(320, 240), drawn[3], Place(160, 120, 44)).save(folder / "far.png")
    for name, picture in faceless().items():
        picture.save(folder / f"{name}.png")
    return folder


def verify(bundle, *arguments, **options):
    return in_process("verify", *arguments, "--bundle", bundle, **options)


def test_a_photo_is_aligned(bundle, photos, drawn):
    done = verify(bundle, photos / "one.jpg", drawn[1], "--json")
    verdict = json.loads(done.stdout)
    assert done.returncode == (0 if verdict["same"] else 1)
    left, right = verdict["left"], verdict["right"]
    assert (left["faces"], right["faces"]) == (1, 1)
    assert abs(left["roll_deg"] + 14) < 6
    assert abs(right["roll_deg"]) < 6
    assert np.shape(left["landmarks"]) == (5, 2)
    assert abs(left["box"][0] + left["box"][2] / 2 - 260) < 20


def test_without_a_face_there_is_an_error(bundle, photos, drawn):
    for name, code, kind in (
        ("gradient.png", 2, "no_face"),
        ("far.png", 3, "small_face"),
        ("none.png", 2, "image"),
    ):
        done = verify(bundle, drawn[0], photos / name, "--json", check=code)
        error = json.loads(done.stdout)["error"]
        assert error["kind"] == kind
        assert name in error["message"]


def test_a_face_of_a_group_photo_is_chosen_by_its_number(bundle, photos, drawn):
    group = photos / "group.jpg"
    done = verify(bundle, group, drawn[0], "--json")
    first = json.loads(done.stdout)["left"]
    assert first["faces"] == 2
    assert "several-faces" in [hint["kind"] for hint in first["hints"]]
    assert "--face 2" in done.stderr
    done = verify(bundle, group, drawn[0], "--face", 2, "--json")
    second = json.loads(done.stdout)["left"]
    assert second["box"][0] < first["box"][0]
    assert "several-faces" not in [hint["kind"] for hint in second["hints"]]
    assert "--face" not in done.stderr
    done = verify(bundle, drawn[0], group, "--face", 1, "--face", 2, "--json")
    assert json.loads(done.stdout)["right"]["box"] == second["box"]
    done = verify(bundle, group, drawn[0], "--face", 3, check=2)
    assert "no face 3; it shows 2 faces, numbered from 1" in done.stderr


def test_a_list_of_pairs_describes_the_faces(bundle, photos, drawn, tmp_path):
    Image.open(drawn[0]).point(lambda value: value // 4).save(tmp_path / "dark.png")
    listed = [
        (photos / "group.jpg", drawn[0]),
        (drawn[0], tmp_path / "dark.png"),
        (photos / "one.jpg", photos / "gradient.png"),
    ]
    lines = "".join(f"{left},{right}\n" for left, right in listed)
    (tmp_path / "p.csv").write_text("left,right\n" + lines)
    out = tmp_path / "o.csv"
    words = (tmp_path / "p.csv", "--out", out, "--bundle", bundle, "--json")
    done = in_process("score", *words, check=1)
    rows = rows_of(out)
    for (left, right), row in zip(listed[:2], rows, strict=False):
        single = json.loads(verify(bundle, left, right, "--json").stdout)
        for side in ("left", "right"):
            face = single[side]
            assert row[f"{side}_box"] == " ".join(map(str, face["box"]))
            assert row[f"{side}_faces"] == str(face["faces"])
            assert row[f"{side}_hints"].split() == [hint["kind"] for hint in face["hints"]]
        assert float(row["score"]) == pytest.approx(single["score"], abs=1e-5)
    assert rows[0]["left_faces"] == "2"
    assert "dark" in rows[1]["right_hints"]
    assert (rows[2]["left_faces"], rows[2]["right_faces"]) == ("1", "")
    report = json.loads(done.stdout)
    assert report["several_faces"] == 1


def test_two_identical_files_are_named(bundle, drawn, tmp_path):
    copy = tmp_path / "copy.jpg"
    copy.write_bytes(drawn[0].read_bytes())
    for other in (copy, drawn[0]):
        done = verify(bundle, drawn[0], other)
        assert done.returncode == 0
        assert "a copy of the other photo" in done.stderr
    assert "copy of" not in verify(bundle, drawn[0], drawn[1]).stderr


def test_a_bundle_without_alignment_takes_whole_images(photos, drawn, tmp_path):
    whole = tiny_bundle(tmp_path / "whole").folder
    done = verify(whole, photos / "gradient.png", drawn[0], "--json")
    assert done.returncode in (0, 1)
    assert json.loads(done.stdout)["left"]["box"] is None
    assert "the whole image" in verify(whole, photos / "far.png", drawn[0]).stdout


def rows_of(path):
    with open(path, newline="") as handle:
        return list(csv.DictReader(handle))
