"""`facepairs group`: photos become a folder of people, and what is put right there stays."""

import csv
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest
from PIL import Image
from processes.command_line import in_process

from facepairs.data.index import FaceIndex, Skipped

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
    shutil.copy(root / "c.jpg", root / "copy.jpg")
    for name in ("film.MOV", "trip0/film.mp4", "raw.nef"):
        (root / name).write_bytes(b"")
    for name in ("new.heic", "trip1/new.jpg"):
        (root / name).write_bytes(b"no image" + name.encode())
    return root


@pytest.fixture(scope="module")
def grouped(heap, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "people"
    done = in_process("group", heap, "--out", out, "--json", check=0)
    return out, json.loads(done.stdout)


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def files_below(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_heap_becomes_a_folder_of_people(heap, grouped):
    out, result = grouped
    assert result["photos"] == 11  # two of them cannot be used
    assert result["people"] == {"person_0001": 4, "person_0002": 3}
    assert result["single_faces"] == 2
    assert result["photos_without_face"] == 1
    assert result["expected"]["precision"] >= 0.99
    assert files_below(out) == {
        *("faces.csv", "people.html"),
        *(f"person_0001/{name}.jpg" for name in ("a0", "a1", "a0_2", "a1_2")),
        *(f"person_0002/{name}.jpg" for name in ("b0", "b1", "party_face2")),
        *("_apart/one_photo/c.jpg", "_apart/one_photo/party.png"),
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
    notes = {row["photo"]: row["note"] for row in rows if row["photo"] and not row["box"]}
    assert notes["wall.png"] == "no face"
    assert notes["copy.jpg"] == "copy of c.jpg"
    assert notes.keys() == {"wall.png", "copy.jpg", "new.heic", "trip1/new.jpg"}
    assert all(-1 <= float(row["certainty"]) <= 1 for row in rows if row["person"])


def test_what_was_put_right_stays_and_new_photos_join(heap, grouped, tmp_path, drawn):
    out, photos = tmp_path / "people", tmp_path / "photos"
    shutil.copytree(grouped[0], out)
    shutil.copytree(heap, photos)
    (out / "person_0002").rename(out / "Bea")
    (out / "person_0001" / "a0.jpg").rename(out / "_apart" / "a0.jpg")
    save_again(drawn[0], photos / "new.jpg", 5)
    save_again(drawn[1], out / "Bea" / "from_elsewhere.jpg", 6)
    first, again = (
        json.loads(in_process("group", photos, "--out", out, "--json", check=0).stdout)
        for _ in range(2)
    )
    assert first["people"] == again["people"] == {"Bea": 4, "person_0001": 4}
    assert first["put_apart_by_hand"] == again["put_apart_by_hand"] == 1
    assert files_below(out / "person_0001") == {"a0_2.jpg", "a1.jpg", "a1_2.jpg", "new.jpg"}
    assert files_below(out / "Bea") == {"b0.jpg", "b1.jpg", "party_face2.jpg", "from_elsewhere.jpg"}
    assert (out / "_apart" / "a0.jpg").exists()


def test_a_stricter_run_keeps_the_errors_of_a_looser_one_and_says_so(heap, tmp_path):
    out, expected = tmp_path / "people", []
    for precision, is_said in (("0.8", False), ("0.9999", True)):
        words = ("group", heap, "--out", out, "--precision", precision, "--json")
        done = in_process(*words, check=0)
        expected.append(json.loads(done.stdout)["expected"])
        assert ("give a new --out" in done.stderr) == is_said
    assert expected[0]["rate"] == expected[1]["rate"]
    assert expected[0]["precision"] == expected[1]["precision"] < 0.9999
    assert expected[0]["cut"] > expected[1]["cut"]


def test_one_face_in_two_folders_is_an_error_and_changes_nothing(heap, grouped, tmp_path):
    out = tmp_path / "people"
    shutil.copytree(grouped[0], out)
    shutil.copy(out / "person_0001" / "a0.jpg", out / "person_0002" / "twice.jpg")
    before = files_below(out)
    done = in_process("group", heap, "--out", out, "--json", check=2)
    message = json.loads(done.stdout)["error"]["message"]
    assert str(out / "person_0001" / "a0.jpg") in message
    assert str(out / "person_0002" / "twice.jpg") in message
    assert files_below(out) == before


def test_a_face_that_was_cut_out_is_found_by_all_who_take_the_folder(grouped, tmp_path):
    from facepairs import Verifier

    out, (cut,) = grouped[0], grouped[0].glob("*/*_face2.jpg")
    (face,) = Verifier.load().detect(cut)
    left, top, side = face.box
    with Image.open(cut) as picture:
        middle = picture.width / 2
    assert abs(left + side / 2 - middle) < 0.3 * side > abs(top + side / 2 - middle)
    report = json.loads(in_process("data", "check", out, "--json").stdout)
    found = {one["kind"] for one in report["findings"] if cut.name in str(one["paths"])}
    assert found <= {"near_duplicate"}  # drawn photos of one person are copies
    known = tmp_path / "known.gallery"
    words = ("gallery", "add", known, out, "--unnamed", "--any-quality", "--json")
    assert json.loads(in_process(*words, check=0).stdout)["enrolled"] == 7


def test_labels_tell_how_good_the_groups_are(heap, tmp_path):
    labels = tmp_path / "labels.csv"
    right = "trip0/a0.jpg,Ann\ntrip1/a0.jpg,Ann\nb0.jpg,Bea\nb1.jpg,Bea\nc.jpg,Cy\n"
    labels.write_text(f"photo,person\n{right}")
    words = ("group", heap, "--out", tmp_path / "people", "--labels", labels, "--json")
    agreement = json.loads(in_process(*words, check=0).stdout)["agreement"]
    assert (agreement["faces"], agreement["people"], agreement["mixed_groups"]) == (5, 3, 0)
    assert {rate["value"] for rate in agreement["figures"].values()} == {1}
    for wrong in ("missing.jpg,Ann\n", "", f"{right}c.jpg,Dee\n"):
        labels.write_text(f"photo,person\n{wrong}")
        in_process(*words, check=2)


def test_a_gallery_names_people_and_photos_are_copied(heap, drawn, tmp_path):
    known, out = tmp_path / "known.gallery", tmp_path / "people"
    in_process("gallery", "add", known, "--name", "Ann", drawn[0], "--any-quality", check=0)
    words = ("group", heap, "--out", out, "--gallery", known, "--copy", "--json")
    people = json.loads(in_process(*words, check=0).stdout)["people"]
    assert people["Ann"] >= 4
    assert not (out / "Ann" / "a0.jpg").samefile(heap / "trip0" / "a0.jpg")
    in_process("group", heap, "--out", out, "--gallery", tmp_path / "missing", check=2)
    in_process("gallery", "rename", known, "Ann", "Ann/Bea", check=0)
    refused = in_process("group", heap, "--out", out, "--gallery", known, "--json", check=2)
    assert "'Ann/Bea'" in json.loads(refused.stdout)["error"]["message"]


def test_files_of_photos_that_are_gone_stay(heap, grouped, tmp_path):
    out, photos = tmp_path / "people", tmp_path / "photos"
    shutil.copytree(grouped[0], out)
    shutil.copytree(heap, photos)
    (photos / "b0.jpg").unlink()
    (photos / "party.png").unlink()
    people = json.loads(in_process("group", photos, "--out", out, "--json", check=0).stdout)
    assert people["people"] == {"person_0001": 4, "person_0002": 3}
    assert files_below(out / "person_0002") == {"b0.jpg", "b1.jpg", "party_face2.jpg"}
    (out / "person_0002" / "party_face2.jpg").rename(out / "person_0002" / "dance.jpg")
    for is_found_again in (False, True):
        if is_found_again:
            shutil.copy(heap / "party.png", photos / "found_again.png")
        people = json.loads(in_process("group", photos, "--out", out, "--json", check=0).stdout)
        assert people["people"] == {"person_0001": 4, "person_0002": 3}
        assert files_below(out / "person_0002") == {"b0.jpg", "b1.jpg", "dance.jpg"}
        assert "person_0002/dance.jpg" in {
            row["file"] for row in rows_of(out / "faces.csv") if row["photo"].endswith(".png")
        }


@pytest.mark.skipif(os.name == "nt", reason="needs hard links")
def test_a_photo_that_was_edited_in_the_folder_counts_in_its_place(heap, grouped, tmp_path):
    out = tmp_path / "people"
    shutil.copytree(grouped[0], out)
    (out / "Cy").mkdir()
    (out / "person_0001" / "a0.jpg").rename(out / "Cy" / "a0.jpg")
    with Image.open(out / "Cy" / "a0.jpg") as image:
        edited = image.resize((220, 220))
    (out / "Cy" / "a0.jpg").unlink()
    edited.save(out / "Cy" / "a0.jpg")
    before = files_below(out)
    for _ in range(2):
        people = json.loads(in_process("group", heap, "--out", out, "--json", check=0).stdout)
        assert people["people"] == {"Cy": 1, "person_0001": 3, "person_0002": 3}
        assert people["put_apart_by_hand"] == 1  # the photo as it was
        assert files_below(out) == before


def test_a_damaged_file_is_named_and_its_face_stays(heap, grouped, tmp_path):
    out = tmp_path / "people"
    shutil.copytree(grouped[0], out)
    (out / "person_0001").rename(out / "Ann")
    whole = (out / "Ann" / "a0.jpg").read_bytes()
    (out / "Ann" / "a0.jpg").write_bytes(whole[:500])
    for _ in range(2):
        done = in_process("group", heap, "--out", out, "--json", check=0)
        result = json.loads(done.stdout)
        assert result["people"] == {"Ann": 4, "person_0002": 3}
        assert result["put_apart_by_hand"] == 0
        assert str(out / "Ann" / "a0.jpg") in result["unusable"]
        (line,) = [line for line in done.stderr.splitlines() if "Ann" in line]
        assert line.startswith(f"not used: {out / 'Ann' / 'a0.jpg'}: ")
        assert line.endswith(", or delete it")
    (out / "Ann" / "a0.jpg").write_bytes(whole)
    done = in_process("group", heap, "--out", out, "--json", check=0)
    result = json.loads(done.stdout)
    assert result["people"] == {"Ann": 4, "person_0002": 3}
    assert result["unusable"].keys() == {"new.heic", "trip1/new.jpg"}
    (out / "Ann" / "a0.jpg").unlink()
    result = json.loads(in_process("group", heap, "--out", out, "--json", check=0).stdout)
    assert result["people"] == {"Ann": 3, "person_0002": 3}
    assert result["put_apart_by_hand"] == 1


@pytest.mark.skipif(os.name == "nt", reason="needs hard links")
def test_a_photo_that_is_damaged_in_both_places_returns_to_its_person(heap, tmp_path):
    out, photos = tmp_path / "people", tmp_path / "photos"
    shutil.copytree(heap, photos)
    files = (photos / "trip0" / "a0.jpg", out / "Ann" / "a0.jpg")

    def people():
        done = in_process("group", photos, "--out", out, "--json", check=0)
        result = json.loads(done.stdout)
        assert result["put_apart_by_hand"] == 0
        return result["people"], len(result["unusable"]) - 2  # of the heap

    assert people() == ({"person_0001": 4, "person_0002": 3}, 0)
    (out / "person_0001").rename(out / "Ann")
    whole = files[0].read_bytes()
    files[0].write_bytes(whole[:500])
    assert files[1].read_bytes() == whole[:500]
    for _ in range(2):
        assert people() == ({"Ann": 3, "person_0002": 3}, 1)
    files[0].unlink()
    files[0].write_bytes(whole)
    assert people() == ({"Ann": 4, "person_0002": 3}, 1)
    files[1].write_bytes(whole)
    assert people() == ({"Ann": 4, "person_0002": 3}, 0)


def test_others_on_a_photo_that_is_in_the_folder_alone_were_not_put_apart(heap, grouped, tmp_path):
    out, photos = tmp_path / "people", tmp_path / "photos"
    shutil.copytree(grouped[0], out)
    shutil.copytree(heap, photos)
    (out / "Dora").mkdir()
    (out / "_apart" / "one_photo" / "party.png").rename(out / "Dora" / "party.png")
    (photos / "party.png").unlink()
    result = json.loads(in_process("group", photos, "--out", out, "--json", check=0).stdout)
    assert result["people"] == {"Dora": 1, "person_0001": 4, "person_0002": 3}
    assert result["put_apart_by_hand"] == 0


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_says_how_to_go_on(heap, tmp_path, monkeypatch):
    def press(*_):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("facepairs.grouping.group.group_faces", press)
    done = in_process("group", heap, "--out", tmp_path / "people", check=130)
    assert "the same command again" in done.stderr
    assert not (tmp_path / "people").exists()


def test_photos_with_other_contents_at_their_place_are_counted_once(heap, grouped, tmp_path):
    out, photos = tmp_path / "people", tmp_path / "photos"
    shutil.copytree(grouped[0], out)
    shutil.copytree(heap, photos)
    for name in ("b0.jpg", "party.png", "wall.png"):  # in the last one there is no face
        with open(photos / name, "ab") as file:
            file.write(b"metadata")
    (photos / "b1.jpg").rename(photos / "moved.jpg")
    first, again = (in_process("group", photos, "--out", out, check=0).stderr for _ in range(2))
    assert f"2 photos in {photos} changed" in first
    assert "changed" not in again


def test_what_was_taken_over_is_told_once(heap, grouped, tmp_path):
    out = tmp_path / "people"
    shutil.copytree(grouped[0], out)
    (out / "person_0002").rename(out / "Bea")
    (out / "person_0001" / "a0.jpg").unlink()
    first, again = (in_process("group", heap, "--out", out, check=0) for _ in range(2))
    assert "kept your changes in the folder: 4 faces" in first.stderr
    assert "taken over" not in again.stderr
    assert "1 face put apart, deleted or edited by hand" in again.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such names")
def test_names_that_are_not_utf8_are_kept(heap, tmp_path):
    photos, out = tmp_path / "photos", tmp_path / "people"
    shutil.copytree(heap, photos)
    (photos / "b0.jpg").rename(os.fsdecode(os.fsencode(photos) + b"/b\xff.jpg"))
    first, again = (
        json.loads(in_process("group", photos, "--out", out, "--json", check=0).stdout)
        for _ in range(2)
    )
    assert first["people"] == again["people"] == {"person_0001": 4, "person_0002": 3}


def test_other_folders_are_not_replaced_and_ones_own_files_stay(heap, grouped, tmp_path):
    out = tmp_path / "people"
    shutil.copytree(grouped[0], out)
    (out / "person_0001" / "mine.txt").write_bytes(b"mine")
    in_process("group", heap, "--out", out, check=0)
    assert (out / "person_0001" / "mine.txt").read_bytes() == b"mine"
    (out / "faces.csv").unlink()
    for place in (out, heap / "people", tmp_path):
        in_process("group", heap, "--out", place, check=2)
    assert (out / "person_0001" / "mine.txt").exists()
    empty = tmp_path / "empty"
    empty.mkdir()
    in_process("group", empty, "--out", tmp_path / "new", check=2)
    in_process("group", tmp_path / "missing", "--out", tmp_path / "new", check=2)


def test_the_summary_counts_what_was_passed_over(heap, tmp_path):
    labels, out = tmp_path / "labels.csv", tmp_path / "people"
    labels.write_text("photo,person\nb0.jpg,Bea\nb1.jpg,Bea\nc.jpg,Cy\n")
    done = in_process("group", heap, "--out", out, "--labels", labels, check=0)
    assert f"written: {out}; look at {out / 'people.html'}\n" in done.stderr
    assert "put apart, deleted" not in done.stdout
    rows = dict(line.split("  ", 1) for line in done.stdout.splitlines())
    assert (rows["labels"].strip(), rows["mixed groups"].strip()) == ("3 faces of 2 people", "0")
    over = rows["passed over"]
    assert {part.strip() for part in over.split(",")} == {
        *("2 videos", "1 raw file", "1 copy of photos", "2 photos that cannot be used"),
    }
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("not used")]
    assert line.startswith("not used: 2 photos: ")
    assert "new.heic" in line


def test_the_page_shows_everybody_and_loads_nothing(heap, grouped):
    text = (grouped[0] / "people.html").read_text(encoding="utf-8")
    assert text.count("<section ") == 2
    assert text.count("<img ") == 7 + 2  # and those who are there once
    links = [part.split('"')[0] for part in text.split('<a href="')[1:]]
    there = {(grouped[0] / unquote(link)).resolve() for link in links}
    assert there == {
        path.resolve()
        for path in heap.rglob("*.*")
        if path.name in ("a0.jpg", "a1.jpg", "b0.jpg", "b1.jpg", "c.jpg", "party.png")
    }
    assert f'data-path="{grouped[0] / "person_0001"}"' in text
    assert "http://" not in text
    assert "https://" not in text


def test_a_heap_in_which_everybody_looks_alike_gets_a_warning(faces, tmp_path):
    done = in_process("group", faces, "--out", tmp_path / "people", "--json", check=0)
    result = json.loads(done.stdout)
    assert not result["expected"]["is_valid"]  # to the included model, drawn people are alike


@pytest.mark.slow
def test_from_a_heap_to_a_verifier_for_its_photos(faces, many_faces, tmp_path):
    drawn, people, bundle = (tmp_path / name for name in ("drawn", "people", "mine"))
    in_process("calibrate", "default", many_faces, "--out", drawn, "--skip-bad", check=0)
    words = ("group", faces, "--out", people, "--bundle", drawn, "--precision", "0.3")
    in_process(*words, check=0)
    in_process("calibrate", "default", people, "--out", bundle, "--skip-bad", check=0)
    photos = sorted((people / "person_0001").iterdir())
    done = in_process("verify", photos[0], photos[1], "--bundle", bundle)
    assert done.returncode in (0, 1)
    in_process(*words, check=0)
