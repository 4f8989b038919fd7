"""`group` from Python: what it refuses before it reads photos, and what it does by default."""

import os
import shutil

import pytest
from drawn.scenes import drawn_faces
from tiny.bundles import AMONG_LOOKALIKES, tiny_bundle
from tiny.heaps import grouping_errors

from facepairs import group
from facepairs.errors import BadBundle, BadConfig, BadData


@pytest.fixture
def photos(tmp_path):
    """Two photos of one person, that are one but for a byte."""
    first = drawn_faces(tmp_path / "photos", people=1, images=1)[0]
    shutil.copy(first, first.with_name("again.jpg"))
    with open(first, "ab") as file:
        file.write(b"0")
    return tmp_path / "photos"


@pytest.mark.parametrize("precision", [0, 1])
def test_a_precision_of_none_or_all_is_refused(photos, precision):
    with pytest.raises(BadConfig, match="precision is"):
        group(photos, precision=precision)


def test_an_output_within_the_photos_is_refused(photos):
    with pytest.raises(BadData, match="lies within"):
        group(photos, photos / "people")


@pytest.mark.parametrize(
    ("alignment", "errors", "why"),
    [
        ("landmarks-5", AMONG_LOOKALIKES["errors"], "was not measured"),
        ("lfw-frame", grouping_errors(), "finds faces"),
    ],
)
def test_a_model_that_cannot_group_is_refused(photos, tmp_path, alignment, errors, why):
    settings = AMONG_LOOKALIKES | {"alignment": alignment, "errors": errors}
    with pytest.raises(BadBundle, match=why):
        group(photos, bundle=tiny_bundle(tmp_path / "b", **settings).folder)


def test_by_default_nothing_is_written_and_photos_are_linked(photos, tmp_path):
    assert len(group(photos).people["person_0001"]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["photos"]
    groups = group(photos, tmp_path / "people")
    assert groups.person == ("person_0001",) * 2
    if os.name == "posix":
        linked = tmp_path / "people" / "person_0001" / "again.jpg"
        assert linked.samefile(next(photos.rglob("again.jpg")))
