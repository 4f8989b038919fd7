"""Whatever a person does in the folder between runs, it then holds what the person did."""

import shutil
from itertools import count
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tiny.people_folders import (
    LATER,
    PHOTOS,
    collection_of,
    contents,
    digest,
    people_of,
    rows_of,
    sort,
)

from facepairs.errors import BadData
from facepairs.grouping.collection import Collection


class Hand:
    """Does in a folder of people what a person does in a file manager."""

    def __init__(self, out: Path, data: st.DataObject) -> None:
        self.out, self.data, self.names = out, data, count()
        self.deleted: set[str] = set()
        self.mended: set[str] = set()

    def sort(self, collection: Collection) -> None:
        """Group; of two files that contradict each other, delete the first."""
        for _ in range(20):
            try:
                return sort(collection, self.out)
            except BadData as error:
                there = contents(self.out)
                places = str(error).split(": one face")[0].split(" and ")
                one, other = (Path(place).relative_to(self.out).as_posix() for place in places)
                assert {one, other} <= there.keys()
                (self.out / one).unlink()
                self.mended.add(one)
        raise AssertionError("conflicts without end")

    def choose(self, paths: list[Path]) -> Path | None:
        return self.data.draw(st.sampled_from(sorted(paths))) if paths else None

    def folders(self) -> list[Path]:
        return [path for path in self.out.iterdir() if path.is_dir() and path.name != "_apart"]

    def act(self) -> None:
        actions = (self.rename, self.join, self.move, self.set_apart, self.delete, self.copy)
        self.data.draw(st.sampled_from(actions), label="action")()

    def rename(self) -> None:
        if folder := self.choose(self.folders()):
            folder.rename(self.out / f"Name {next(self.names)}")

    def join(self) -> None:
        one, other = self.choose(self.folders()), self.choose(self.folders())
        if one and other and one != other:
            for path in list(other.iterdir()):
                path.rename(one / f"{next(self.names)}_{path.name}")
            other.rmdir()

    def file(self, apart: bool = True) -> Path | None:
        files = [path for path in self.out.rglob("*") if path.is_file() and path.parent != self.out]
        return self.choose([path for path in files if apart or "_apart" not in path.parts])

    def move(self) -> None:
        if path := self.file():
            new = self.out / f"New {next(self.names)}"
            folder = self.data.draw(st.sampled_from(sorted([*self.folders(), new])))
            folder.mkdir(exist_ok=True)
            path.rename(folder / f"{next(self.names)}_{path.name}")

    def set_apart(self) -> None:
        if path := self.file(apart=False):
            path.rename(self.out / "_apart" / f"{next(self.names)}_{path.name}")

    def delete(self) -> None:
        if path := self.file():
            self.deleted.add(digest(path))
            path.unlink()

    def copy(self) -> None:
        if path := self.file(apart=False):
            shutil.copy(path, path.parent / f"{next(self.names)}_{path.name}")


@settings(max_examples=15)
@given(st.data())
def test_after_any_changes_the_folder_holds_what_the_person_did(start, tmp_path_factory, data):
    root = tmp_path_factory.mktemp("hand")
    shutil.copytree(start / "photos", root / "photos")
    shutil.copytree(start / "people", root / "people")
    out, hand = root / "people", Hand(root / "people", data)
    given_names: set[str] = set()
    for photos in (PHOTOS, PHOTOS | LATER):
        given_names |= people_of(out).keys()
        for _ in range(data.draw(st.integers(1, 5))):
            hand.act()
        before = contents(out)
        hand.deleted -= set(before.values())
        collection = collection_of(root / "photos", photos)
        hand.sort(collection)
        before = {path: sha256 for path, sha256 in before.items() if path not in hand.mended}
        now = contents(out)
        own = ("_apart/one_photo/", "_apart/uncertain/", "_apart/no_face/")
        for path, sha256 in before.items():
            assert now.get(path) == sha256 or path.startswith(own)
        assert not hand.deleted & set(now.values())
        new = people_of(out).keys() - {path.split("/")[0] for path in before}
        assert not new & given_names
        for row in rows_of(out):
            assert not row["file"] or now[row["file"]] == row["file_sha256"]
            assert (
                not row["person"] or not row["file"] or (row["file"].split("/")[0] == row["person"])
            )
        sort(collection, out)
        assert contents(out) == now
