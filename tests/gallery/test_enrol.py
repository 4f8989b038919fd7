"""Which of a photo's faces is enrolled and identified, by the included model."""

from pathlib import Path

import pytest
from drawn.scenes import Place, canvas, drawn_faces, paste

from facepairs import Gallery, Verifier
from facepairs.errors import BadConfig


@pytest.fixture
def two(tmp_path):
    """Photos of two people, and one of both: the second one larger."""
    one, other = drawn_faces(tmp_path / "faces", people=2, images=1)
    both = paste(canvas(700, 400), one, Place(150, 200, 120))
    paste(both, other, Place(480, 200, 390)).save(tmp_path / "both.png")
    return one, other, tmp_path / "both.png"


def test_a_face_is_enrolled_and_identified_by_its_number(tmp_path, two):
    one, other, both = two
    with Gallery(tmp_path / "g", Verifier.load(), write=True) as gallery:
        with pytest.raises(BadConfig):
            gallery.add("Third", [both], any_quality=True, face=9)
        for name, photo, face in (("One", one, 1), ("Other", other, 1), ("Second", both, 2)):
            added = gallery.add(name, [photo], any_quality=True, face=face)
            assert (added.enrolled, added.people) == (1, added.photos)
        found = [gallery.identify(both, threshold=0.5, face=number) for number in (1, 2)]
        assert [one.name for one in found] == ["Other", "Second"]
        assert found[1].candidates[1].name == "One"
        assert gallery.add("Again", [both], face=2).refused[0].error.startswith(f"{both}: this")


def test_a_poor_face_behind_another_one_is_refused(tmp_path, two):
    one, _, both = two
    for number, photo in enumerate((one, both)):
        place = tmp_path / "people" / "One" / f"{number}{photo.suffix}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(photo.read_bytes())
    with Gallery(tmp_path / "g", Verifier.load(), write=True) as gallery:
        refused = gallery.add_folder(tmp_path / "people").refused
    assert "1.png" in [Path(photo.photo).name for photo in refused]
