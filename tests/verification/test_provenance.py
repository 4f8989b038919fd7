"""What lies beside a scores file."""

from pathlib import Path

import pytest

from facepairs.bundles.rates import OperatingPoint
from facepairs.errors import BadData
from facepairs.verification.provenance import (
    Provenance,
    provenance_path,
    read_provenance,
    scores_file,
)

ORIGIN = Provenance(model="run/bundle", pairs="pairs.csv", operating_point=OperatingPoint(0.5))
TEXT = "genuine,score\n1,0.7\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with scores_file(tmp_path / "some.csv", ORIGIN) as handle:
        handle.write(TEXT)
    return tmp_path / "some.csv"


def test_what_was_written_is_read_back(path: Path) -> None:
    found = read_provenance(path)
    assert found is not None
    assert (found.model, len(found.scores_sha256)) == ("run/bundle", 64)
    assert found.operating_point == ORIGIN.operating_point
    provenance_path(path).unlink()
    assert read_provenance(path) is None


def test_scores_that_changed_are_refused(path: Path) -> None:
    path.write_text(TEXT.replace("7", "8"))
    with pytest.raises(BadData):
        read_provenance(path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 2}', '{"schema": 1, "model": 3}'])
def test_a_damaged_origin_is_refused(path: Path, text: str) -> None:
    provenance_path(path).write_text(text)
    with pytest.raises(BadData):
        read_provenance(path)


def test_a_failed_write_leaves_the_old_file_and_its_origin(path: Path) -> None:
    with pytest.raises(RuntimeError), scores_file(path, None) as handle:
        handle.write("half")
        raise RuntimeError
    assert read_provenance(path) is not None
    assert path.read_text() == TEXT


def test_nothing_old_stays_beside_a_new_file(path: Path) -> None:
    with scores_file(path, None) as handle:
        handle.write("another\n")
    assert [entry.name for entry in path.parent.iterdir()] == ["some.csv"]
