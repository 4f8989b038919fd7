"""Importing: every layout gives the same photos, and whatever is wrong leaves nothing behind."""

import errno
import json
import tarfile
import zipfile
from pathlib import Path

import pytest
from drawn.photos import put
from processes.command_line import in_process
from storage.archives import tree, zipped

from facepairs.data.importing import LeftOut, import_photos
from facepairs.errors import BadData, BadTransfer

JPEG = b"\xff\xd8\xff\xe0 a photo"


def test_kaggles_archive(faces: Path, tmp_path: Path) -> None:
    archive, out = tmp_path / "archive.zip", tmp_path / "lfw"
    deep = "lfw-deepfunneled/lfw-deepfunneled"
    archive.write_bytes(
        zipped({"people.csv": b"x", **{f"{deep}/{name}": c for name, c in tree(faces).items()}})
    )
    done = in_process("data", "import", archive, out, "--json", check=0)
    report = json.loads(done.stdout)
    assert (report["people"], report["images"]) == (24, 96)
    assert (report["out"], report["left_out"]) == (str(out), [])
    assert tree(out) == tree(faces)
    assert {path.name for path in tmp_path.iterdir()} == {"archive.zip", "lfw"}


def test_scikit_learns_folder(faces: Path, tmp_path: Path) -> None:
    home, out = tmp_path / "lfw_home", tmp_path / "out"
    for name, content in tree(faces).items():
        put(home, f"lfw_funneled/{name}", content)
    put(home, "joblib/sklearn/datasets/_lfw/output.pkl", b"never opened")
    put(home, "pairs.txt", b"10\t300\n")
    report = import_photos(home, out)
    assert report.images == 96
    assert tree(out) == tree(faces)


@pytest.mark.parametrize("compression", ["", "gz", "bz2", "xz"])
def test_a_tar_is_unpacked_and_what_is_no_photo_is_listed(
    faces: Path, tmp_path: Path, compression: str
) -> None:
    archive = tmp_path / "photos.tar"
    (tmp_path / "readme.txt").write_text("text")
    person = sorted(faces.iterdir())[0]
    with tarfile.open(archive, f"w:{compression}") as tar:
        tar.add(person, f"data/people/{person.name}")
        tar.add(tmp_path / "readme.txt", "data/people/readme.txt")
    report = import_photos(archive, tmp_path / "out")
    assert tree(tmp_path / "out" / person.name) == tree(person)
    assert report.left_out == (LeftOut("readme.txt", "not image"),)


def test_a_table_of_paths(tmp_path: Path) -> None:
    for name in ("a/1.jpg", "b/1.jpg", "b/2.txt"):
        put(tmp_path, name, JPEG + name.encode())
    table = tmp_path / "table.csv"
    table.write_text("\ufeff Path ; Person\na\\1.jpg;Ann O'Neil\nb/1.jpg;Ann O'Neil\nb/2.txt;Bo\n")
    report = import_photos(table, tmp_path / "out")
    assert set(tree(tmp_path / "out")) == {"Ann O'Neil/1.jpg", "Ann O'Neil/1-2.jpg"}
    assert [part.reason for part in report.left_out] == ["not image"]
    for text, says in {
        "path,person\na/1.jpg,../Bo\n": "line 2: ",
        "path,person\na/1.jpg,Ann\na/3.jpg,Ann\n": "line 3: ",
        "path,person\na/1.jpg\n": "line 2: ",
        "path,person\na/1.jpg,\n": "line 2: ",
        "photo,person\na/1.jpg,Ann\n": "photo,person",
        "path,person\na/1.jpg,Ann.\n": "line 2: ",
        "": "table.csv",
        "path,person\nb/2.txt,Bo\n": "2.txt: ",
    }.items():
        table.write_text(text)
        with pytest.raises(BadData) as caught:
            import_photos(table, tmp_path / "no")
        assert says in str(caught.value)
        assert not (tmp_path / "no").exists()


def test_a_zip_of_windows_is_read(tmp_path: Path) -> None:
    path = tmp_path / "w.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("Ann/1.jpg", "Bo/1.jpg", "Bo/Thumbs.db", "$RECYCLE.BIN/2.jpg"):
            info = zipfile.ZipInfo(name)
            info.filename = name.replace("/", "\\")  # which the class turns at once
            archive.writestr(info, JPEG + name.encode())
    assert b"Ann\\1.jpg" in path.read_bytes()
    import_photos(path, tmp_path / "out")
    assert set(tree(tmp_path / "out")) == {"Ann/1.jpg", "Bo/1.jpg"}


def test_photos_on_another_disk_are_copied(
    faces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(source: str, target: str) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr("os.link", link)
    import_photos(faces, tmp_path / "out")
    assert tree(tmp_path / "out") == tree(faces)


def test_people_that_are_links_are_imported(tmp_path: Path) -> None:
    put(tmp_path, "store/Ann/1.jpg", JPEG)
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "Ann").symlink_to(tmp_path / "store" / "Ann")
    (tmp_path / "source" / "loop").symlink_to(tmp_path / "source")
    import_photos(tmp_path / "source", tmp_path / "out")
    assert set(tree(tmp_path / "out")) == {"Ann/1.jpg"}


def test_hostile_and_useless_sources_leave_nothing_behind(tmp_path: Path) -> None:
    sources = {
        "parent.zip": (zipped({"Ann/1.jpg": JPEG, "../out.jpg": JPEG}), r"parent\.zip"),
        "text.zip": (zipped({"a/readme.txt": b"x"}), r"text\.zip"),
        "splits.zip": (
            zipped({"train/Ann/1.jpg": JPEG, "train/Ann/2.jpg": JPEG, "test/Bo/1.jpg": JPEG}),
            r"splits\.zip/train .*splits\.zip/test",
        ),
        "photo.jpg": (
            JPEG,
            r"photo\.jpg",
        ),
    }
    for name, (content, says) in sources.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises((BadData, BadTransfer), match=says):
            import_photos(tmp_path / name, tmp_path / "deep/out")
    with pytest.raises(BadData):
        import_photos(tmp_path / "missing", tmp_path / "deep/out")
    assert set(tree(tmp_path)) == set(sources)
    assert not any((tmp_path / "deep").iterdir())


def test_photos_within_a_persons_folder_are_listed_not_guessed(tmp_path: Path) -> None:
    for name in ("Ann/1.jpg", "Ann/2.jpg", "Ann/old/3.jpg"):
        put(tmp_path / "photos", name, JPEG)
    report = import_photos(tmp_path / "photos", tmp_path / "out")
    assert set(tree(tmp_path / "out")) == {"Ann/1.jpg", "Ann/2.jpg"}
    assert report.left_out == (LeftOut("Ann/old", "nested folder"),)
    with pytest.raises(BadData):
        import_photos(tmp_path / "photos", tmp_path / "out")
    with pytest.raises(BadData):
        import_photos(tmp_path / "photos", tmp_path / "photos/out")
