"""What lies beside a scores file."""

import resource
from dataclasses import replace
from pathlib import Path

import pytest
from tiny.bundles import tiny_bundle

from facepairs.bundles.error_profile import Calibration
from facepairs.bundles.model import load_bundle
from facepairs.bundles.rates import Errors, OperatingPoint
from facepairs.errors import BadData
from facepairs.verification.provenance import (
    Provenance,
    provenance_of,
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


def test_a_full_disk_leaves_the_old_file_and_its_origin(path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(BadData), scores_file(path, None) as handle:
            handle.write(TEXT * 100)  # waits in the buffer
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert read_provenance(path) is not None
    assert path.read_text() == TEXT


@pytest.mark.parametrize(("name", "content"), [("a.csv", b"GIF\0"), ("a.csv.json", b"{}")])
def test_files_of_another_kind_are_not_replaced(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadData, match=name), scores_file(tmp_path / "a.csv", ORIGIN) as handle:
        handle.write(TEXT)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {name: content}


def test_an_origin_has_what_decides_without_its_errors(tmp_path: Path) -> None:
    model = load_bundle(tiny_bundle(tmp_path / "bundle", "embedding"))
    errors = Errors(people=3)
    origin = provenance_of(model, "p", OperatingPoint(0.5, errors=errors, own_errors=errors))
    assert origin.operating_point == OperatingPoint(0.5)
    assert origin.calibration == Calibration(20.0, 2.0)
    assert origin.identities == model.origin.identities
    assert provenance_of(model, "p", OperatingPoint(None)).operating_point is None
    unlisted = replace(model, origin=replace(model.origin, lists_training=False))
    bare = provenance_of(unlisted, "p", None)
    assert (bare.operating_point, bare.calibration, bare.identities) == (None, None, None)


def test_nothing_old_stays_beside_a_new_file(path: Path) -> None:
    with scores_file(path, None) as handle:
        handle.write("another\n")
    assert [entry.name for entry in path.parent.iterdir()] == ["some.csv"]
