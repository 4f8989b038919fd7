"""`frame_folder` writes aligned copies and accounts for every file."""

import numpy as np
import pytest
from drawn.scenes import Place, canvas, drawn_faces, paste
from PIL import Image

from facepairs.errors import BadData
from facepairs.faces.align import align_faces
from facepairs.faces.frame_folder import WHOLE_FRAME, frame_folder


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Photos of two people, and all that is no photo of a face."""
    root = tmp_path_factory.mktemp("any") / "photos"
    drawn = drawn_faces(root.parent / "drawn")
    for name in ("Ann", "Bé"):
        (root / name).mkdir(parents=True)
    paste(canvas(420, 380), drawn[0], Place(200, 190, 260, 10)).save(root / "Ann" / "1.png")
    group = paste(canvas(760, 440), drawn[1], Place(190, 210, 260))
    paste(group, drawn[2], Place(560, 210, 300)).save(root / "Bé" / "2.jpg")
    canvas(300, 260).save(root / "Bé" / "field.jpg")
    paste(canvas(320, 240), drawn[3], Place(160, 120, 44)).save(root / "Bé" / "far.png")
    (root / "Ann" / "broken.jpg").write_bytes(b"no image")
    (root / "Ann" / "notes.txt").write_text("no photo")
    (root / "stray.jpg").write_bytes((root / "Bé" / "2.jpg").read_bytes())
    return root


def test_every_file_is_framed_or_listed(photos, tmp_path):
    calls = []
    result = frame_folder(photos, tmp_path / "out", lambda *counts: calls.append(counts))
    written = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*")}
    assert written == {"Ann/1.jpg", "Bé/2.jpg"}
    assert (result.framed, result.several_faces) == (2, ("Bé/2.jpg",))
    reasons = dict(result.left_out)
    for name, reason in (
        ("Bé/field.jpg", "no face found"),
        ("Bé/far.png", "pixels from the brows to the chin"),
        ("Ann/broken.jpg", "not a JPEG"),
        ("Ann/notes.txt", "not image"),
        ("stray.jpg", "stray file"),
    ):
        assert reason in reasons.pop(name)
    assert not reasons
    assert calls[-1] == (5, 5)
    assert result.to_json()["left_out"][0].keys() == {"path", "error"}


def test_a_copy_is_aligned_already(photos, tmp_path):
    frame_folder(photos, tmp_path / "out")
    (expected,) = align_faces(photos / "Ann" / "1.png", WHOLE_FRAME)
    with Image.open(tmp_path / "out" / "Ann" / "1.jpg") as image:
        assert image.size == (250, 250)
        assert np.abs(np.asarray(image, int) - expected.crop).mean() < 3
        (again,) = align_faces(image, WHOLE_FRAME)
    assert abs(again.face.roll_deg) < 3
    assert again.face.to_frame.scale == pytest.approx(1, abs=0.08)


def test_unusable_folders_are_refused(photos, tmp_path):
    with pytest.raises(BadData, match="exists"):
        frame_folder(photos, photos / "Ann")
    for name in ("a.jpg", "a.png"):
        (tmp_path / "same" / "Ann").mkdir(parents=True, exist_ok=True)
        canvas(64, 64).save(tmp_path / "same" / "Ann" / name)
    with pytest.raises(BadData, match=r"would both become Ann/a\.jpg"):
        frame_folder(tmp_path / "same", tmp_path / "out")
    (tmp_path / "same" / "Ann" / "a.png").unlink()
    with pytest.raises(BadData, match="no usable face in 1 photo; see why"):
        frame_folder(tmp_path / "same", tmp_path / "out")
    assert not (tmp_path / "out").exists()
