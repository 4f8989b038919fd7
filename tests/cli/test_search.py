"""`facepairs search`: the best matches of a folder, and how many strangers match by chance."""

import json

import pytest
from drawn.scenes import Place, canvas, drawn_faces, paste
from processes.command_line import in_process
from tiny.bundles import tiny_bundle

from facepairs.support.results import SCHEMA


def search(*arguments, **options):
    return in_process("search", *arguments, **options)


def test_the_best_come_first(cosine_bundle, noise):
    options = (noise / "0.png", noise, "--bundle", cosine_bundle)
    done = search(*options)
    assert done.returncode == 1
    assert "broken.jpg" in done.stderr
    first = done.stderr.splitlines()[0]  # a hint on the photo that was asked for
    assert first == f"warning: {noise / '0.png'}: too small: 16 pixels; 67 are enough"
    header, *table = done.stdout.splitlines()[-4:]
    assert header.split() == ["rank", "score", "match", "photo", "face"]
    assert [line.split()[0] for line in table] == ["1", "2", "3"]
    output = json.loads(search(*options, "--json", "--threshold", 0.75).stdout)
    scores = [match["score"] for match in output["photos"]]
    assert scores == sorted(scores, reverse=True)
    assert {match["path"] for match in output["photos"]} == {"1.png", "2.png", "3.png"}
    assert [item["path"] for item in output["failed"]] == ["broken.jpg"]
    assert (output["operating_point"]["threshold"], output["schema"]) == (0.75, SCHEMA)
    assert output["expected_false_matches"] == pytest.approx(0.003)
    assert output["expected_false_matches_interval"] == pytest.approx([0.0015, 0.0105])


def test_every_face_of_a_photo_is_looked_at(tmp_path):
    drawn = drawn_faces(tmp_path / "faces")
    bundle = tiny_bundle(tmp_path / "b", "embedding", alignment="landmarks-5").folder
    (tmp_path / "photos").mkdir()
    group = paste(canvas(760, 440), drawn[1], Place(190, 210, 260))
    paste(group, drawn[2], Place(560, 210, 300)).save(tmp_path / "photos" / "group.png")
    left = {"box": None, "faces": 2}
    asked = search(tmp_path / "photos" / "group.png", tmp_path / "faces", "--bundle", bundle)
    assert f"warning: {tmp_path / 'photos' / 'group.png'}: shows 2 faces" in asked.stderr
    for face, centre in ((drawn[1], 190), (drawn[2], 560)):  # the smaller one is found as well
        done = search(face, tmp_path / "photos", "--bundle", bundle, "--json", check=0)
        assert "most prominent" not in done.stderr  # the photo that was asked for shows one
        found = json.loads(done.stdout)
        (row,) = found["photos"]
        assert (found["faces"], row["faces"]) == (2, 2)
        assert abs(row["box"][0] + row["box"][2] / 2 - centre) < 30
        assert row["box"] != left["box"]
        left = row
