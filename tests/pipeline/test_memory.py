"""Arrays kept in files: an intact one is mapped, any other is built again."""

import numpy as np
import pytest

from facepairs.errors import BadData
from facepairs.pipeline.memory import cached_array
from facepairs.support.console import showing

SHAPE = (5, 4, 4, 3)
VALUES = np.arange(240, dtype=np.uint8).reshape(SHAPE)


def build(path, messages):
    with showing(messages.append):
        return cached_array(path, SHAPE, np.uint8, lambda array: np.copyto(array, VALUES))


@pytest.fixture
def path(tmp_path):
    build(tmp_path / "store.npy", [])
    return tmp_path / "store.npy"


def test_an_intact_file_is_mapped_without_a_message(path):
    before, messages = path.stat(), []
    again = build(path, messages)
    assert np.array_equal(again, VALUES)
    assert np.array_equal(np.load(path), VALUES)
    assert again.flags.writeable
    assert messages == []
    assert [entry.name for entry in path.parent.iterdir()] == ["store.npy"]
    assert path.stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[:-1],
        lambda data: data + b"0",
        lambda data: data[:70],
        lambda data: b"",
        lambda data: b"?" + data[1:],
        lambda data: data.replace(b"(5, 4, 4, 3)", b"(5, 4, 3, 4)"),
        lambda data: data.replace(b"|u1", b"|i1"),
    ],
)
def test_another_file_is_built_again_with_a_message(path, spoil):
    whole = path.read_bytes()
    path.write_bytes(spoil(whole))
    messages = []
    assert np.array_equal(build(path, messages), VALUES)
    assert path.read_bytes() == whole
    assert len(messages) == 1


def test_an_error_while_filling_leaves_no_file(tmp_path):
    def stop(array):
        array[0] = 1
        raise BadData("no")

    with pytest.raises(BadData):
        cached_array(tmp_path / "store.npy", SHAPE, np.uint8, stop)
    assert list(tmp_path.iterdir()) == []
