"""The picture of `verify --show` marks the faces that were compared."""

import numpy as np
import pytest
from drawn_scenes import Place, canvas, drawn_faces, paste
from PIL import Image

from facepairs.errors import BadData
from facepairs.faces.overlay import (
    BOX,
    COLOURS,
    FRAME,
    GAP_PX,
    PHOTO_PX,
    draw_overlay,
    write_overlay,
)
from facepairs.verification.verifier import Verdict, Verifier


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """An unframed photo and a framed one, and their verdict by the packaged model."""
    drawn = drawn_faces(tmp_path_factory.mktemp("drawn") / "faces", people=1)
    left = tmp_path_factory.mktemp("photos") / "left.jpg"
    paste(canvas(880, 660), drawn[0], Place(500, 300, 400, 12)).save(left, quality=95)
    return left, drawn[1], Verifier.load().verify(left, drawn[1])


def near(picture, colour, slack=40):
    """Return (rows, columns) of the pixels of about that colour."""
    return np.nonzero((abs(np.asarray(picture, np.int32) - colour) < slack).all(axis=2))


def test_boxes_are_drawn_around_the_face(compared):
    left, right, verdict = compared
    picture = draw_overlay(left, right, verdict)
    assert picture.mode == "RGB"
    scale, top = PHOTO_PX / 880, 2 * GAP_PX + 56 + (PHOTO_PX - 330) // 2
    for colour, boxes in ((BOX, 1.0), (FRAME, 2.2)):
        rows, columns = near(picture, colour)
        in_left_half = columns < PHOTO_PX + GAP_PX
        middle = columns[in_left_half].mean() - GAP_PX, rows[in_left_half].mean() - top
        assert np.allclose(middle, (500 * scale, 300 * scale), atol=12)
        turned = np.sqrt(2) * np.cos(np.radians(45 - abs(verdict.left.roll_deg)))
        width = np.ptp(columns[in_left_half])
        assert width == pytest.approx(
            boxes * verdict.left.face.side_px * scale * turned, rel=0.1, abs=4
        )


def test_a_photo_that_passed_through_has_no_box(compared):
    left, right, verdict = compared
    picture = draw_overlay(right, left, Verdict(False, 0.1, 0.0, 0.5, verdict.right, verdict.left))
    half = picture.crop((0, 0, PHOTO_PX + GAP_PX, picture.height))
    assert len(near(half, FRAME, 12)[0]) < 20
    assert len(near(half, COLOURS[False], 10)[0]) > 50  # the verdict's words


def test_the_file_is_complete_or_absent(compared, tmp_path):
    left, right, verdict = compared
    out = tmp_path / "new" / "verdict.png"
    write_overlay(out, left, right, verdict)
    with Image.open(out) as image:
        image.load()
        assert image.format == "PNG"
    assert [path.name for path in out.parent.iterdir()] == ["verdict.png"]
    with pytest.raises(BadData, match=r"verdict\.txt: cannot be drawn"):
        write_overlay(tmp_path / "verdict.txt", left, right, verdict)
    with pytest.raises(BadData, match="without its faces"):
        draw_overlay(left, right, Verdict(True, 0.9, 1.0, 0.5))
