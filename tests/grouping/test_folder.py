"""The folder is the truth: renamed, joined, moved, copied and deleted files stay as they are."""

import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from tiny.people_folders import (
    ERRORS,
    LATER,
    PHOTOS,
    collection_of,
    contents,
    digest,
    people_of,
    rows_of,
    sort,
)

from facepairs.errors import BadConfig, BadData
from facepairs.grouping.faces_list import FaceRow, person_at, read_list
from facepairs.grouping.folder import (
    PeopleFolder,
    check_people_folder,
    folder_name,
    is_hidden,
    read_people_folder,
)
from facepairs.grouping.group import write_people_folder
from facepairs.grouping.groups import KnownFaces, group_faces
from facepairs.support.console import showing


@pytest.mark.parametrize(
    ("box", "overlap"),
    [((10, 20, 40), 1), ((20, 20, 40), 0.75), ((10, 30, 40), 0.75), ((10, 20, 20), 0.5),
     ((0, 10, 60), 2 / 3), ((60, 20, 40), -0.25)],
)  # fmt: skip
def test_boxes_overlap_by_their_shorter_common_side(box, overlap):
    assert FaceRow(box="10 20 40").overlap(box) == pytest.approx(overlap)
    assert FaceRow().overlap(box) == 0


def test_a_row_keeps_what_is_known_where_its_file_is_now():
    row = FaceRow("a.jpg", "1", "0 0 9", "Ann", "0.5", "small", "Ann/a.jpg", "2")
    assert (row.is_cut, FaceRow(sha256="1", file_sha256="1").is_cut, FaceRow().is_cut) == (
        True, False, False
    )  # fmt: skip
    assert row.at("Bo/a.jpg") == row._replace(person="Bo", certainty="", file="Bo/a.jpg")
    apart = row.at("")
    assert (apart.person, apart.note, apart.file) == ("", "nobody", "")
    assert apart.at("Bo/a.jpg").note == ""
    assert row._replace(note="no face").at("").note == "no face"


@pytest.mark.parametrize(
    ("path", "person", "hidden"),
    [("Ann/1.jpg", "Ann", False), ("Ann/deep/1.jpg", "Ann", False), ("1.jpg", "", False),
     ("_apart/one_photo/1.jpg", "", False), ("Ann/.1.jpg", "Ann", True), (".x/1.jpg", ".x", True)],
)  # fmt: skip
def test_the_first_folder_is_the_person(path, person, hidden):
    assert (person_at(path), is_hidden(path)) == (person, hidden)


@pytest.mark.parametrize("name", ["_apart", ".x", "Thumbs.db", "a/b", "a\\b", "C:x", " "])
def test_names_that_no_folder_can_have_are_refused(name):
    assert folder_name(" Ann ") == "Ann"
    with pytest.raises(BadConfig):
        folder_name(name)


@pytest.mark.parametrize(
    ("cells", "is_ours"),
    [
        ("-1 2 30,Ann,-0.25", True),
        (",Ann,1e-05", True),
        (",Ann,", True),
        ("1 2,Ann,", False),
        ("1 2 3 4,Ann,", False),
        (",Ann,half", False),
        (",Ann,.5", False),
    ],
)
def test_a_list_with_values_of_another_program_is_refused(tmp_path, cells, is_ours):
    row = f"a.jpg,1,{cells},,,"
    (tmp_path / "faces.csv").write_text(f"{','.join(FaceRow._fields)}\n{row}\n")
    if is_ours:
        assert read_list(tmp_path) == [FaceRow(*row.split(","))]
    else:
        with pytest.raises(BadData, match="line 2: "):
            read_list(tmp_path)


def test_a_collection_becomes_a_folder(start):
    assert sorted(contents(start / "people")) == [
        "_apart/no_face/h.png",
        "_apart/one_photo/c1.png",
        "_apart/uncertain/d2_face3.jpg",
        *("person_0001/1.png", "person_0001/2.png", "person_0001/3.png"),
        "person_0001/d2_face2.jpg",
        *("person_0002/b1.png", "person_0002/b2.png", "person_0002/d1_face2.jpg"),
        *("person_0003/d1.png", "person_0003/d2.png"),
    ]
    rows = {(row["photo"], row["box"]): row for row in rows_of(start / "people")}
    assert len(rows) == 13  # the last one has the rate of strangers that were joined
    assert rows["d2.png", "40 4 16"]["note"] == "uncertain: small"
    assert rows["c1.png", "0 4 16"]["note"] == ""
    cut = rows["d2.png", "20 4 16"]
    assert (cut["person"], cut["file"]) == ("person_0001", "person_0001/d2_face2.jpg")
    assert cut["file_sha256"] == digest(start / "people" / cut["file"]) != cut["sha256"]


def test_each_part_of_the_work_counts_its_steps(start, tmp_path):
    found = {}
    with showing(progress=lambda phase: lambda *steps: found.setdefault(phase, []).append(steps)):
        collection = collection_of(start / "photos", PHOTOS)
        sort(collection, tmp_path / "people")
        sort(collection, tmp_path / "people")
    assert found.keys() == {
        *("grouping", "cutting out faces", "writing the page", "reading the folder of people")
    }
    found.pop("grouping")
    assert [len(steps) for steps in found.values()] == [3, 10, 12]
    for steps in found.values():
        assert steps == [(number, len(steps)) for number in range(1, len(steps) + 1)]


def test_photos_of_one_name_have_names_that_let_them_be_moved_anywhere(tmp_path):
    photos = {f"{album}/p": [person] for album, person in (("x", 0), ("y", 1), ("z", 0))}
    collection = collection_of(tmp_path / "photos", photos)
    collection.embeddings[2] = collection.embeddings[0]
    sort(collection, tmp_path / "people")
    names = {"person_0001/p.png", "_apart/one_photo/p_2.png", "person_0001/p_3.png"}
    assert contents(tmp_path / "people").keys() == names
    sort(collection, tmp_path / "people")
    assert contents(tmp_path / "people").keys() == names
    more = collection_of(tmp_path / "photos", {"w/p": [3], **photos})
    more.embeddings[1:] = collection.embeddings
    sort(more, tmp_path / "people")
    assert contents(tmp_path / "people").keys() == {*names, "_apart/one_photo/p_4.png"}


def test_a_run_without_changes_changes_nothing(at_work):
    collection, out = at_work
    before, rows = contents(out), rows_of(out)
    sort(collection, out)
    assert contents(out) == before
    assert rows_of(out) == rows
    shutil.copy(out / "person_0001" / "1.png", out / "person_0001" / "0.png")
    sort(collection, out)
    assert rows_of(out) == rows  # whose places are not those of copies


def test_what_was_put_right_stays_and_new_photos_join(at_work):
    collection, out = at_work
    (out / "person_0001").rename(out / "Anna")
    (out / "Bob").mkdir()
    (out / "person_0002" / "b2.png").rename(out / "Bob" / "renamed.png")
    (out / "person_0002" / "d1_face2.jpg").rename(out / "person_0003" / "d1_face2.jpg")
    (out / "Anna" / "3.png").unlink()
    (out / "person_0002" / "b1.png").rename(out / "_apart" / "b1.png")
    shutil.copy(out / "Anna" / "1.png", out / "Anna" / "1 (copy).png")
    (out / "Anna" / "notes.txt").write_text("mine")
    by_hand = contents(out)
    sort(collection, out)
    assert contents(out) == by_hand
    rows = {(row["photo"], row["box"]): row for row in rows_of(out)}
    assert rows["a/3.png", "0 4 16"]["note"] == rows["b1.png", "0 4 16"]["note"] == "nobody"
    assert rows["d1.png", "20 4 16"]["person"] == "person_0003"
    sort(collection_of(collection.root, PHOTOS | LATER), out)
    now = contents(out)
    assert by_hand.items() - now.items() == {
        ("_apart/one_photo/c1.png", by_hand["_apart/one_photo/c1.png"])
    }  # there are two now
    new = {path for path in now if path not in by_hand}
    assert new == {
        *("Anna/e1.png", "person_0004/c1.png", "person_0004/e3_face2.jpg"),
        *("person_0005/e2.png", "person_0005/e3.png"),
    }


def test_joined_folders_are_one_person_and_a_number_is_never_given_again(at_work):
    collection, out = at_work
    for path in list((out / "person_0003").iterdir()):
        path.rename(out / "person_0001" / path.name)
    (out / "person_0003").rmdir()
    sort(collection, out)
    assert sum(people_of(out)["person_0001"].values()) == 6
    gone = [row for row in rows_of(out) if row["note"] == "name no longer used"]
    assert [row["person"] for row in gone] == ["person_0003"]
    sort(collection_of(collection.root, PHOTOS | LATER), out)
    assert "person_0003" not in people_of(out)
    assert {"person_0004", "person_0005"} <= people_of(out).keys()


def test_a_deleted_person_does_not_come_back(at_work):
    collection, out = at_work
    shutil.rmtree(out / "person_0001")
    shutil.rmtree(out / "_apart")
    sort(collection, out)
    sort(collection_of(collection.root, PHOTOS | LATER), out)
    assert people_of(out).keys() == {"person_0002", "person_0003", "person_0004"}
    assert {path for path in contents(out) if path.startswith("_apart")} == {
        *("_apart/one_photo/e1.png", "_apart/one_photo/e3_face2.jpg"),
    }  # as c1.png was deleted, face 2 of e3.png is alone


def test_a_photo_with_several_people_may_be_copied_to_each(at_work):
    collection, out = at_work
    (out / "person_0002" / "d1_face2.jpg").unlink()
    shutil.copy(out / "person_0003" / "d1.png", out / "person_0002" / "both.png")
    sort(collection, out)
    rows = {row["box"]: row for row in rows_of(out) if row["photo"] == "d1.png"}
    assert rows["0 4 16"]["person"] == "person_0003"
    assert (rows["20 4 16"]["person"], rows["20 4 16"]["file"]) == (
        "person_0002",
        "person_0002/both.png",
    )


def test_of_a_photo_with_several_faces_the_most_alike_joins_a_person(at_work):
    collection, out = at_work
    collection = collection_of(collection.root, PHOTOS | {"f": [5, 6]})
    sort(collection, out)
    rows = np.array(collection.embeddings)
    rows[-1] = rows[0]  # the second face of f.png is that of a/1.png
    assert (out / "_apart" / "one_photo" / "f_face2.jpg").exists()
    shutil.copy(collection.root / "f.png", out / "person_0001" / "f.png")
    sort(replace(collection, embeddings=rows), out)
    found = {row["box"]: row["file"] for row in rows_of(out) if row["photo"] == "f.png"}
    assert found == {"0 4 16": "_apart/one_photo/f_2.png", "20 4 16": "person_0001/f.png"}
    assert not (out / "_apart" / "one_photo" / "f_face2.jpg").exists()
    (out / "Zoe").mkdir()
    (out / "person_0001" / "f.png").rename(out / "Zoe" / "f.png")  # stands for the same face
    sort(replace(collection, embeddings=rows), out)
    moved = {row["box"]: row["file"] for row in rows_of(out) if row["photo"] == "f.png"}
    assert moved == found | {"20 4 16": "Zoe/f.png"}


def test_every_single_face_has_a_file_that_gives_it_to_a_person(at_work):
    collection, out = at_work
    collection = collection_of(collection.root, PHOTOS | {"f": [5, 6], "g": [7, 0]})
    sort(collection, out)
    single = {path for path in contents(out) if path.startswith("_apart/one_photo/")}
    names = ("c1.png", "f.png", "f_face2.jpg", "g.png")
    assert single == {f"_apart/one_photo/{name}" for name in names}
    for number, path in enumerate(sorted(single)):
        (out / f"Person {number}").mkdir()
        (out / path).rename(out / f"Person {number}" / "moved.jpg")
    sort(collection, out)
    found = {(row["photo"], row["box"]): row["person"] for row in rows_of(out)}
    assert [found[name, box] for name, box in (
        ("c1.png", "0 4 16"), ("f.png", "0 4 16"), ("f.png", "20 4 16"), ("g.png", "0 4 16"),
    )] == [f"Person {number}" for number in range(4)]  # fmt: skip
    assert found["g.png", "20 4 16"] == "person_0001"


def test_new_photos_that_are_already_in_the_folder_count_there(at_work):
    collection, out = at_work
    collection = collection_of(collection.root, PHOTOS | {"f": [5, 6], "g": [7, 0]})
    (out / "Eve").mkdir()
    shutil.copy(collection.root / "f.png", out / "Eve" / "f.png")
    shutil.copy(collection.root / "g.png", out / "_apart" / "g.png")
    told = []
    with showing(log=told.append):
        sort(collection, out)
    assert [line.split(": ")[1].split()[:2] for line in told] == [["3", "faces"]]
    found = {(row["photo"], row["box"]): row for row in rows_of(out)}
    assert found["f.png", "0 4 16"]["person"] == "Eve"
    assert found["f.png", "20 4 16"]["file"] == "_apart/one_photo/f_face2.jpg"
    assert found["g.png", "0 4 16"]["note"] == found["g.png", "20 4 16"]["note"] == "nobody"


def test_faces_that_overlap_are_told_apart_and_one_that_moved_a_little_is_the_same(at_work):
    collection, out = at_work
    faces = [face if face.photo != "d1.png" else face._replace(box=(8 * face.number, 4, 16))
             for face in collection.faces]  # fmt: skip
    collection = replace(collection, faces=tuple(faces))
    shutil.rmtree(out)
    sort(collection, out)
    before = contents(out)
    moved = [face._replace(box=(face.box[0] + 2, 5, 17)) for face in faces]
    for again in (collection, replace(collection, faces=tuple(moved))):
        sort(again, out)
        assert contents(out) == before
        assert {row["box"] for row in rows_of(out) if row["photo"] == "d1.png"} == {
            " ".join(map(str, face.box)) for face in again.faces if face.photo == "d1.png"
        }


@pytest.mark.parametrize(
    ("there", "copied"),
    [("person_0001/1.png", "person_0002/1.png"), ("person_0003/d1.png", "person_0001/d1.png")],
)
def test_one_face_in_two_folders_is_an_error_with_both_places(at_work, there, copied):
    collection, out = at_work
    shutil.copy(out / there, out / copied)
    before = contents(out)
    with pytest.raises(BadData) as error:
        sort(collection, out)
    assert str(out / there) in str(error.value)
    assert str(out / copied) in str(error.value)
    assert contents(out) == before


def test_a_moved_collection_is_recognised_by_content(at_work):
    collection, out = at_work
    (out / "person_0001").rename(out / "Anna")
    by_hand = contents(out)
    root = collection.root.with_name("elsewhere") / "deeper"
    shutil.copytree(collection.root / "a", root / "other")
    for path in collection.root.glob("*.png"):
        shutil.copy(path, root)
    photos = {name.replace("a/", "other/"): people for name, people in PHOTOS.items()}
    moved = collection_of(root, photos)
    sort(replace(moved, embeddings=collection.embeddings), out)
    assert contents(out) == by_hand
    assert {row["photo"] for row in rows_of(out) if row["person"] == "Anna"} == {
        *(f"other/{number}.png" for number in (1, 2, 3)),
        "d2.png",
    }


def test_what_is_known_of_photos_that_are_gone_is_kept(at_work):
    collection, out = at_work
    (out / "person_0003" / "d2.png").unlink()
    (out / "person_0001" / "d2_face2.jpg").unlink()
    (collection.root / "d2.png").unlink()
    sort(collection_of(collection.root, {k: v for k, v in PHOTOS.items() if k != "d2"}), out)
    sort(collection_of(collection.root, PHOTOS), out)  # it is there again
    rows = [row for row in rows_of(out) if row["photo"] == "d2.png"]
    assert [row["note"] for row in rows] == ["nobody", "nobody", "uncertain: small"]


def test_changes_while_photos_are_grouped_are_not_lost(at_work):
    collection, out = at_work
    collection, before = read_people_folder(out, collection, None)
    groups = group_faces(collection, ERRORS, 0.9, before.settled, before.names)
    (out / "person_0001").rename(out / "Anna")
    with pytest.raises(BadData):
        write_people_folder(groups, out, before)
    assert (out / "Anna" / "1.png").exists()


@pytest.mark.skipif(os.name == "nt", reason="needs hard links")
def test_photos_are_links_and_copies_if_asked_for(start, tmp_path):
    collection = collection_of(start / "photos", PHOTOS)
    assert (start / "people" / "person_0001" / "1.png").samefile(start / "photos" / "a" / "1.png")
    groups = group_faces(collection, ERRORS, 0.9)
    write_people_folder(groups, tmp_path / "people", PeopleFolder(), copy=True)
    copied = tmp_path / "people" / "person_0001" / "1.png"
    assert not copied.samefile(start / "photos" / "a" / "1.png")
    assert contents(tmp_path / "people").keys() == contents(start / "people").keys()


def test_other_folders_are_refused(start, tmp_path):
    photos = start / "photos"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.jpg").write_bytes(b"")
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "list").mkdir()
    (tmp_path / "list" / "faces.csv").write_text("photo,box\na.jpg,1 2 3\n")
    places = [tmp_path / name for name in ("other", "file", "list")]
    for place in (*places, photos / "people", photos.parent, photos):
        with pytest.raises(BadData):
            check_people_folder(place, photos)
    check_people_folder(start / "people", photos)
    check_people_folder(tmp_path / "new", photos)


def test_a_gallery_renames_a_numbered_folder_but_joins_no_two(at_work):
    collection, out = at_work
    (out / "Ann").mkdir()
    for place, text in {
        "Ann/Notes.txt": "by hand",
        "person_0001/notes.txt": "of the first",
    }.items():
        (out / place).write_text(text)
    before = contents(out)
    collection, folder = read_people_folder(out, collection, None)
    known = KnownFaces(collection.embeddings[[0, 3]], ("Ann", "Bea"))  # who has a folder, who not
    groups = group_faces(collection, ERRORS, 0.9, folder.settled, folder.names, known=known)
    assert (groups.person[0], groups.person[4]) == ("person_0001", "Bea")
    write_people_folder(groups, out, folder)
    assert contents(out) == {
        path.replace("person_0002/", "Bea/"): sha256 for path, sha256 in before.items()
    }


def test_hidden_files_of_ones_own_stay_and_are_no_photos(at_work):
    collection, out = at_work
    collection_of(collection.root, PHOTOS | LATER)
    later = ("person_0001/.picasaoriginals/e1.png", "_apart/.trash/e3.png")  # photos that are new
    for path in (*later, "person_0001/.picasa.ini", ".hidden/own.jpg", "person_0002/#recycle/a"):
        (out / path).parent.mkdir(exist_ok=True)
        (out / path).write_bytes(b"mine")
    for path in later:
        shutil.copy(collection.root / path.split("/")[-1], out / path)
    (out / "person_0001").rename(out / "Anna")
    before = contents(out)
    for path in ("Anna/.DS_Store", "Anna/._1.png", "Anna/Thumbs.db", "_apart/desktop.ini"):
        (out / path).write_bytes(b"of a system")
    sort(collection_of(collection.root, PHOTOS), out)
    assert contents(out) == before
    sort(collection_of(collection.root, PHOTOS | LATER), out)
    assert before.items() - contents(out).items() == {
        ("_apart/one_photo/c1.png", before["_apart/one_photo/c1.png"])
    }
    rows = {(row["photo"], row["box"]): row for row in rows_of(out)}
    assert rows["e1.png", "0 4 16"]["file"] == "Anna/e1_2.png"
    assert [row["note"] for row in rows.values() if row["photo"] == "e3.png"] == ["", ""]


def test_a_lost_list_is_to_be_put_back_and_no_folder_to_be_removed(at_work):
    collection, out = at_work
    (out / "faces.csv").unlink()
    with pytest.raises(BadData) as error:
        check_people_folder(out, collection.root)
    assert "put faces.csv back" in str(error.value)
    assert "remove" not in str(error.value)


def test_people_of_a_looser_run_keep_its_errors(at_work):
    collection, out = at_work
    shutil.rmtree(out)
    fresh = sort(collection, out.with_name("strict"), 0.9999)
    loose, strict, again = (sort(collection, out, share) for share in (0.5, 0.9999, 0.5))
    assert (loose.rate, fresh.rate) == (1e-2, 3e-9)
    assert strict.rate == again.rate == loose.rate
    assert strict.wrong_pairs == loose.wrong_pairs > 1000 * fresh.wrong_pairs
    assert strict.mixed_people == loose.mixed_people
    assert (strict.cut, loose.cut) == (fresh.cut, 0.4)


@pytest.mark.parametrize("cell", ["much", "1;2", "nan"])
def test_a_list_with_another_share_is_refused(at_work, cell):
    collection, out = at_work
    text = (out / "faces.csv").read_text()
    assert text.count(",0.01,share of") == 1
    (out / "faces.csv").write_text(text.replace(",0.01,share of", f",{cell},share of"))
    with pytest.raises(BadData) as error:
        read_people_folder(out, collection, None)
    assert f"line 14: certainty is {cell!r}" in str(error.value)
