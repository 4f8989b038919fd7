"""Unpacking: content comes out unchanged; hostile and damaged archives are refused."""

import io
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storage.archives import tgz, tree, zipped

from facepairs.data.unpack import unpack
from facepairs.errors import BadTransfer

PHOTOS = {
    "x/Ann/1.jpg": b"one" * 3000,
    "x/Ann/2.jpg": b"two" * 2000,
    "x/Zed Li/1.jpg": bytes(range(256)) * 40,
}


@pytest.mark.parametrize("pack", [tgz, zipped])
def test_files_come_out_unchanged(
    tmp_path: Path, pack: Callable[[dict[str, bytes]], bytes]
) -> None:
    (tmp_path / "into").mkdir()
    junk = {"__MACOSX/x/._1": b"junk", "x/.DS_Store": b"junk"}
    (tmp_path / "a").write_bytes(pack({**PHOTOS, **junk}))
    unpack(tmp_path / "a", tmp_path / "into")
    assert tree(tmp_path / "into") == PHOTOS


@pytest.mark.parametrize(
    ("in_archive", "unpacked"),
    [("Björn".encode(), "Björn"), ("山田".encode(), "山田"), ("Björn".encode("cp437"), "Björn")],
)
def test_names_in_utf8_need_no_flag_that_says_so(
    tmp_path: Path, in_archive: bytes, unpacked: str
) -> None:
    into = tmp_path / "into"
    into.mkdir()
    placeholder = b"#" * len(in_archive)
    packed = zipped({f"{placeholder.decode()}/1.jpg": b"photo"})
    (tmp_path / "a").write_bytes(packed.replace(placeholder, in_archive))
    unpack(tmp_path / "a", into)
    assert tree(into) == {f"{unpacked}/1.jpg": b"photo"}


def test_a_name_with_the_flag_stays_as_it_is(tmp_path: Path) -> None:
    odd = {"\u251c\u2310/1.jpg": b"photo"}  # whose bytes on an old PC are UTF-8, too
    (tmp_path / "into").mkdir()
    (tmp_path / "a").write_bytes(zipped(odd))
    unpack(tmp_path / "a", tmp_path / "into")
    assert tree(tmp_path / "into") == odd


def test_a_place_that_cannot_be_written_is_no_damage(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(zipped(PHOTOS))
    (tmp_path / "into").mkdir()
    (tmp_path / "into" / "x").touch()
    with pytest.raises((FileExistsError, NotADirectoryError)):
        unpack(tmp_path / "a", tmp_path / "into")


def member(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def zip_of(name: str, mode: int = 0, data: bytes = b"x") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as bundle:
        info = zipfile.ZipInfo(name)
        info.filename = name  # as it is: ZipInfo itself tidies some names
        info.external_attr = mode << 16
        bundle.writestr(info, data)
    return out.getvalue()


HOSTILE = {
    "tar parent": tgz({"Ann/1.jpg": b"x", "../out.jpg": b"x"}),
    "tar deep parent": tgz({"Ann/../../out.jpg": b"x"}),
    "tar absolute": tgz({"/tmp/out.jpg": b"x"}),
    "tar drive": tgz({"C:/out.jpg": b"x"}),
    "tar backslash": tgz({"..\\out.jpg": b"x"}),
    "tar symlink": tgz({}, member("Ann", tarfile.SYMTYPE, "..")),
    "tar hard link": tgz({"Ann/1.jpg": b"x"}, member("Ann/2.jpg", tarfile.LNKTYPE, "Ann/1.jpg")),
    "tar device": tgz({}, member("Ann/null", tarfile.CHRTYPE)),
    "tar pipe": tgz({}, member("Ann/pipe", tarfile.FIFOTYPE)),
    "tar hidden symlink": tgz({}, member(".Ann", tarfile.SYMTYPE, "/etc")),
    "zip parent": zip_of("../out.jpg"),
    "zip absolute": zip_of("/tmp/out.jpg"),
    "zip backslash": zip_of("..\\out.jpg"),
    "zip symlink": zip_of("Ann", 0o120777, b"/etc"),
    "zip pipe": zip_of("Ann", 0o010644),
    "zip newline": zip_of("Ann/\n.jpg"),
    "zip encrypted": zip_of("Ann/1.jpg").replace(b"PK\1\2\x14\3\x14\0\0", b"PK\1\2\x14\3\x14\0\1"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_archive_writes_nothing_outside_the_folder(tmp_path: Path, case: str) -> None:
    archive, into = tmp_path / "a", tmp_path / "deep" / "er"
    into.mkdir(parents=True)
    archive.write_bytes(HOSTILE[case])
    match = "encrypted" if "encrypted" in case else r"^a: "
    with pytest.raises(BadTransfer, match=match):
        unpack(archive, into)
    assert set(tree(tmp_path)) <= {"a", "deep/er/Ann/1.jpg"}
    assert not any(path.is_symlink() for path in tmp_path.rglob("*"))


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_a_name_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as bundle:
        bundle.writestr("Ann/1.jpg", b"a")
        bundle.writestr("Ann/1.jpg", b"b")
    (tmp_path / "a").write_bytes(out.getvalue())
    (tmp_path / "into").mkdir()
    with pytest.raises(BadTransfer, match=r"Ann/1\.jpg"):
        unpack(tmp_path / "a", tmp_path / "into")


def test_an_archive_above_a_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(zipped(PHOTOS))
    (tmp_path / "into").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr("facepairs.data.unpack.MAX_MEMBERS", 2)
        with pytest.raises(BadTransfer, match=r"3 .* 2"):
            unpack(tmp_path / "a", tmp_path / "into")
        patch.setattr("facepairs.data.unpack.MAX_MEMBERS", 3)
        (tmp_path / "all").mkdir()
        unpack(tmp_path / "a", tmp_path / "all")


@pytest.mark.parametrize(
    ("sizes", "most"),
    [([2**26 + 1], "67,108,864"), ([2**26] * 64 + [1], "4,294,967,296"), ([2**26] * 64, "")],
)
def test_an_archive_is_refused_above_the_bytes_it_may_have(
    tmp_path: Path, sizes: list[int], most: str
) -> None:
    with zipfile.ZipFile(tmp_path / "a", "w") as bundle:
        for number, size in enumerate(sizes):
            bundle.writestr(f".{number}", b"x")  # hidden, so not unpacked
            bundle.infolist()[-1].file_size = size  # as the directory at the end tells it
    (tmp_path / "into").mkdir()
    refused = pytest.raises(BadTransfer, match=f"more than {most}") if most else nullcontext()
    with refused:
        unpack(tmp_path / "a", tmp_path / "into")


@given(cut=st.floats(0, 1), junk=st.binary(max_size=40), tar=st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_damaged_archive_raises_no_other_error(cut: float, junk: bytes, tar: bool) -> None:
    data = tgz(PHOTOS) if tar else zipped(PHOTOS)
    at = int(cut * len(data))
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "into").mkdir()
        (place / "a").write_bytes(data[:at] + junk + data[at + len(junk) + 1 :])
        with suppress(BadTransfer, OSError):
            unpack(place / "a", place / "into")
