"""Cached arrays: every damaged byte and every truncation is found, logged and repaired."""

import numpy as np
import pytest

from facepairs.errors import BadData
from facepairs.pipeline.cached_array import cached_array, find_damage
from facepairs.support.console import showing

SHAPE = (5, 4, 4, 3)
VALUES = np.arange(240, dtype=np.uint8).reshape(SHAPE)


def fill(array):
    array[:] = VALUES


def build(path):
    return cached_array(path, SHAPE, np.uint8, fill)


@pytest.fixture
def path(tmp_path):
    build(tmp_path / "store.npy")
    return tmp_path / "store.npy"


def test_numpy_reads_the_file_and_no_other_file_is_left(path):
    assert np.array_equal(np.load(path), VALUES)
    assert [entry.name for entry in path.parent.iterdir()] == ["store.npy"]
    assert find_damage(path, SHAPE, np.uint8) == ""


def test_an_intact_file_is_mapped_without_a_message(path):
    before, messages = path.stat(), []
    with showing(messages.append):
        again = cached_array(path, SHAPE, np.uint8, lambda array: pytest.fail("built again"))
    assert np.array_equal(again, VALUES)
    assert again.flags.writeable
    assert messages == []
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_every_changed_byte_is_found(path):
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        assert find_damage(path, SHAPE, np.uint8), at


def test_every_cut_and_every_addition_is_found(path):
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert find_damage(path, SHAPE, np.uint8), size
    path.write_bytes(whole + b"\0")
    assert find_damage(path, SHAPE, np.uint8)


@pytest.mark.parametrize("spoil", [
    lambda data: data[:150] + b"?" + data[151:],
    lambda data: data[:-40],
    lambda data: b"",
    lambda data: data[:-25],  # as earlier versions left it
])  # fmt: skip
def test_a_damaged_file_is_built_again_with_a_message(path, spoil):
    whole = path.read_bytes()
    path.write_bytes(spoil(whole))
    messages = []
    with showing(messages.append):
        assert np.array_equal(build(path), VALUES)
    assert path.read_bytes() == whole
    (line,) = messages
    assert line.startswith(f"{path}: ")
    assert line.endswith("; it is built again")


def test_an_array_of_another_shape_or_format_is_not_used(path):
    messages = []
    with showing(messages.append):
        other = cached_array(path, (5, 4, 4, 4), np.uint8, lambda array: array.fill(7))
    assert (other == 7).all()
    assert "another kind or size" in messages[0]
    np.savez(path.with_suffix(""), VALUES)
    path.with_suffix(".npz").replace(path)
    assert find_damage(path, SHAPE, np.uint8)


def test_an_error_while_filling_leaves_no_file(tmp_path):
    def stop(array):
        array[0] = 1
        raise BadData("no")

    with pytest.raises(BadData, match="no"):
        cached_array(tmp_path / "store.npy", SHAPE, np.uint8, stop)
    assert list(tmp_path.iterdir()) == []
