"""`facepairs group`: a heap becomes a folder of people; people stay, grow and are corrected."""

import csv
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from PIL import Image
from processes.command_line import in_process

import facepairs
from facepairs.data.index import FaceIndex, Skipped
from facepairs.gallery.people_folder import write_people_folder

# Drawn people differ little for the included model, so the photos of one person are one photo that
# was saved again, with other colours or borders.


def save_again(source: Path, target: Path, number: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(source) as image:
        image.point(lambda value: value * (20 - number) // 20).save(target, quality=90 - number)


@pytest.fixture(scope="module")
def drawn(few_faces):
    """One photo of each of four drawn people."""
    people = sorted(few_faces.iterdir())
    return [min(people[number].iterdir()) for number in (0, 5, 2, 6)]  # not much alike


@pytest.fixture(scope="module")
def heap(drawn, tmp_path_factory):
    """Four photos of one person, two of another, one of a third, one of two people, a wall."""
    root = tmp_path_factory.mktemp("heap") / "photos"
    for number in range(4):
        save_again(drawn[0], root / f"trip{number % 2}" / f"a{number // 2}.jpg", number)
    for number in range(2):
        save_again(drawn[1], root / f"b{number}.jpg", number)
    save_again(drawn[2], root / "c.jpg", 0)
    with Image.open(drawn[3]) as left, Image.open(drawn[1]) as right:
        both = Image.new("RGB", (2 * left.width, left.height + 20))
        both.paste(left, (0, 0))
        both.paste(right.resize((right.width * 3 // 4,) * 2), (left.width, 20))
        both.save(root / "party.png")
    Image.new("RGB", (64, 64), (120, 90, 60)).save(root / "wall.png")
    (root / "notes.txt").write_text("no photo")
    return root


@pytest.fixture(scope="module")
def grouped(heap, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "people"
    done = in_process("group", heap, out, "--json", check=0)
    return out, json.loads(done.stdout)


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def files_below(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_heap_becomes_a_folder_of_people(heap, grouped):
    out, result = grouped
    assert result["photos"] == 9
    assert result["people"] == {"person_0001": 4, "person_0002": 3}
    assert result["single_faces"] == 2
    assert result["photos_without_face"] == 1
    assert result["expected"]["precision"] >= 0.99
    assert files_below(out) == {
        *("faces.csv", "people.html"),
        *(f"person_0001/{name}.jpg" for name in ("a0", "a1", "a0_2", "a1_2")),
        *(f"person_0002/{name}.jpg" for name in ("b0", "b1", "party_face2")),
        "_apart/one_photo/c.jpg",
        "_apart/no_face/wall.png",
    }
    assert (out / "person_0002" / "b0.jpg").samefile(heap / "b0.jpg")
    index = FaceIndex.scan(out)
    assert (list(index.people), len(index), index.skipped) == (
        ["person_0001", "person_0002"],
        7,
        (Skipped("faces.csv", "not_image"), Skipped("people.html", "not_image")),
    )


def test_the_list_has_every_face(heap, grouped):
    rows = rows_of(grouped[0] / "faces.csv")
    trips = [f"trip{a}/a{b}.jpg" for a in range(2) for b in range(2)]
    wanted = ["b0.jpg", "b1.jpg", "c.jpg", "party.png", "party.png", *trips]
    assert sorted(row["photo"] for row in rows if row["box"]) == wanted
    assert [row["photo"] for row in rows if row["problem"]] == ["wall.png"]
    assert all(-1 <= float(row["certainty"]) <= 1 for row in rows if row["person"])


def test_people_stay_are_corrected_and_grow(heap, grouped, tmp_path, drawn):
    out, photos = tmp_path / "people", tmp_path / "photos"
    shutil.copytree(grouped[0], out)
    shutil.copytree(heap, photos)
    save_again(drawn[0], photos / "new.jpg", 5)
    corrections = out / "corrections.csv"
    corrections.write_text(
        "correction,person,to\nname,person_0002,Bea\nsplit,person_0001,trip0/a0.jpg\n"
        "split,person_0002,b0.jpg\n"
    )
    result = json.loads(in_process("group", photos, out, "--json", check=0).stdout)
    assert result["people"] == {"Bea": 2, "person_0001": 4}
    rows = {row["photo"]: row for row in rows_of(out / "faces.csv")}
    assert (rows["trip0/a0.jpg"]["person"], rows["trip0/a0.jpg"]["not"]) == ("", "person_0001")
    assert rows["b0.jpg"]["not"] == "Bea"
    assert not corrections.exists()
    corrections.write_text("correction,person,to\nmerge,Bea,person_0001\n")
    again = in_process("group", photos, out, "--json", check=0)
    assert json.loads(again.stdout)["people"] == {"Bea": 6}
    assert len((out / "corrected.csv").read_text().split()) == 6


@pytest.mark.parametrize(
    "line",
    [
        "merge,person_0001,persn_0002",
        "merge,nobody,person_0001",
        "name,persn_0001,Ann",
        "name,person_0001,a/b",
        "name,person_0001,_apart",
        "split,person_0001,b0.jpg",
        "split,person_0002,missing.jpg",
        "rename,person_0001,Ann",
    ],
)
def test_a_wrong_correction_is_an_error_and_changes_nothing(heap, grouped, tmp_path, line):
    out = tmp_path / "people"
    shutil.copytree(grouped[0], out)
    (out / "corrections.csv").write_text(f"correction,person,to\nname,person_0001,Ann\n{line}\n")
    done = in_process("group", heap, out, "--json", check=2)
    assert json.loads(done.stdout)["error"]["kind"] in ("data", "config")
    assert (out / "person_0001").is_dir()
    assert (out / "corrections.csv").exists()


def test_labels_tell_how_good_the_groups_are(heap, tmp_path):
    labels = tmp_path / "labels.csv"
    right = "trip0/a0.jpg,Ann\ntrip1/a0.jpg,Ann\nb0.jpg,Bea\nb1.jpg,Bea\nc.jpg,Cy\n"
    labels.write_text(f"photo,person\n{right}")
    words = ("group", heap, tmp_path / "people", "--labels", labels, "--json")
    agreement = json.loads(in_process(*words, check=0).stdout)["agreement"]
    assert (agreement["faces"], agreement["people"], agreement["mixed_groups"]) == (5, 3, 0)
    assert {rate["value"] for rate in agreement["figures"].values()} == {1}
    for wrong in ("missing.jpg,Ann\n", ""):
        labels.write_text(f"photo,person\n{wrong}")
        in_process(*words, check=2)


def test_a_gallery_names_people_and_photos_are_copied(heap, drawn, tmp_path):
    known, out = tmp_path / "known.gallery", tmp_path / "people"
    in_process("gallery", "add", known, "--name", "Ann", drawn[0], "--any-quality", check=0)
    words = ("group", heap, out, "--gallery", known, "--copy", "--json")
    people = json.loads(in_process(*words, check=0).stdout)["people"]
    assert people["Ann"] >= 4
    assert not (out / "Ann" / "a0.jpg").samefile(heap / "trip0" / "a0.jpg")
    in_process("group", heap, out, "--gallery", tmp_path / "missing", check=2)


def test_photos_that_are_gone_keep_the_folder_as_it_is(heap, grouped, tmp_path):
    out, photos = tmp_path / "people", tmp_path / "photos"
    shutil.copytree(grouped[0], out)
    shutil.copytree(heap, photos)
    (photos / "b0.jpg").unlink()
    done = in_process("group", photos, out, "--json", check=2)
    assert json.loads(done.stdout)["error"]["kind"] == "data"
    assert (out / "person_0002" / "b0.jpg").exists()


def test_a_correction_made_while_photos_are_grouped_is_not_lost(heap, grouped, tmp_path):
    out = tmp_path / "people"
    shutil.copytree(grouped[0], out)
    groups = facepairs.group(heap)
    (out / "corrections.csv").write_text("correction,person,to\nname,person_0001,Ann\n")
    with pytest.raises(facepairs.errors.BadData):
        write_people_folder(groups, out)
    in_process("group", heap, out, check=0)
    assert (out / "Ann").is_dir()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such names")
def test_names_that_are_not_utf8_are_kept(heap, tmp_path):
    photos, out = tmp_path / "photos", tmp_path / "people"
    shutil.copytree(heap, photos)
    (photos / "b0.jpg").rename(os.fsdecode(os.fsencode(photos) + b"/b\xff.jpg"))
    first, again = (
        json.loads(in_process("group", photos, out, "--json", check=0).stdout) for _ in range(2)
    )
    assert first["people"] == again["people"] == {"person_0001": 4, "person_0002": 3}


def test_other_folders_are_not_replaced(heap, grouped, tmp_path):
    out = tmp_path / "people"
    shutil.copytree(grouped[0], out)
    (out / "person_0001" / "mine.jpg").write_bytes(b"")
    for place in (out, heap / "people", tmp_path):
        in_process("group", heap, place, check=2)
    assert (out / "person_0001" / "mine.jpg").exists()
    empty = tmp_path / "empty"
    empty.mkdir()
    in_process("group", empty, tmp_path / "new", check=2)
    in_process("group", tmp_path / "missing", "--out", tmp_path / "new", check=2)


def test_the_page_shows_everybody_and_loads_nothing(grouped):
    text = (grouped[0] / "people.html").read_text(encoding="utf-8")
    assert 'data-what="split" data-person="person_0002" data-to="party.png"' in text
    assert text.count("<section>") == 2
    assert "http://" not in text
    assert "https://" not in text


def test_a_heap_in_which_everybody_looks_alike_gets_a_warning(faces, tmp_path):
    done = in_process("group", faces, tmp_path / "people", "--json", check=0)
    result = json.loads(done.stdout)
    assert not result["expected"]["is_valid"]  # to the included model, drawn people are alike


@pytest.mark.slow
def test_from_a_heap_to_a_verifier_for_its_photos(faces, many_faces, tmp_path):
    drawn, people, bundle = (tmp_path / name for name in ("drawn", "people", "mine"))
    in_process("calibrate", "default", many_faces, "--out", drawn, "--skip-bad", check=0)
    words = ("group", faces, people, "--bundle", drawn, "--precision", "0.3")
    in_process(*words, check=0)
    in_process("calibrate", "default", people, "--out", bundle, "--skip-bad", check=0)
    photos = sorted((people / "person_0001").iterdir())
    done = in_process("verify", photos[0], photos[1], "--bundle", bundle)
    assert done.returncode in (0, 1)
    in_process(*words, check=0)
