"""Kept arrays: every damaged byte and every cut is found, said, and made good."""

import numpy as np
import pytest

from facepairs.errors import BadData
from facepairs.pipeline.cached_array import damage, cached_array

SHAPE = (5, 4, 4, 3)
VALUES = np.arange(240, dtype=np.uint8).reshape(SHAPE)


def fill(array):
    array[:] = VALUES


def kept(path, said=None):
    return cached_array(path, SHAPE, np.uint8, fill, (said if said is not None else []).append)


@pytest.fixture
def path(tmp_path):
    kept(tmp_path / "store.npy")
    return tmp_path / "store.npy"


def test_it_is_a_file_that_numpy_reads_and_nothing_else(path):
    assert np.array_equal(np.load(path), VALUES)
    assert [entry.name for entry in path.parent.iterdir()] == ["store.npy"]
    assert damage(path, SHAPE, np.uint8) == ""


def test_a_whole_one_is_mapped_without_a_word(path):
    before, said = path.stat(), []
    again = cached_array(path, SHAPE, np.uint8, lambda array: pytest.fail("made anew"), said.append)
    assert np.array_equal(again, VALUES)
    assert again.flags.writeable
    assert said == []
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_every_changed_byte_is_found(path):
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        assert damage(path, SHAPE, np.uint8), at


def test_every_cut_and_every_addition_is_found(path):
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert damage(path, SHAPE, np.uint8), size
    path.write_bytes(whole + b"\0")
    assert damage(path, SHAPE, np.uint8)


@pytest.mark.parametrize("spoil", [
    lambda data: data[:150] + b"?" + data[151:],
    lambda data: data[:-40],
    lambda data: b"",
    lambda data: data[:-25],  # as earlier versions left it
])  # fmt: skip
def test_a_damaged_one_is_made_anew_and_that_is_said(path, spoil):
    whole = path.read_bytes()
    path.write_bytes(spoil(whole))
    said = []
    assert np.array_equal(kept(path, said), VALUES)
    assert path.read_bytes() == whole
    (line,) = said
    assert line.startswith(f"{path}: ")
    assert line.endswith("; it is made anew")


def test_another_array_is_not_taken(path):
    said = []
    other = cached_array(path, (5, 4, 4, 4), np.uint8, lambda array: array.fill(7), said.append)
    assert (other == 7).all()
    assert "another kind or size" in said[0]
    np.savez(path.with_suffix(""), VALUES)
    path.with_suffix(".npz").replace(path)
    assert damage(path, SHAPE, np.uint8)


def test_what_stops_the_making_leaves_nothing(tmp_path):
    def stop(array):
        array[0] = 1
        raise BadData("no")

    with pytest.raises(BadData, match="no"):
        cached_array(tmp_path / "store.npy", SHAPE, np.uint8, stop)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_error(tmp_path):
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, hard))
    try:
        with pytest.raises(BadData, match=r"cannot write .*store\.npy"):
            kept(tmp_path / "store.npy")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []
