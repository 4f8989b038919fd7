"""The picture of `verify --show` marks the faces that were compared."""

import numpy as np
import pytest
from drawn.scenes import Place, canvas, drawn_faces, paste
from PIL import Image

from facepairs.bundles.rates import OperatingPoint
from facepairs.errors import BadData
from facepairs.faces.align import align_faces, unaligned_face
from facepairs.images.crop import CropSpec
from facepairs.verification.overlay import (
    COLOURS,
    COLUMN_PX,
    FRAME,
    GAP_PX,
    LANDMARK,
    LINE_PX,
    TITLE_PX,
    draw_overlay,
    write_overlay,
)
from facepairs.verification.verdict import Verdict

SPEC = CropSpec(250, 128)
POINT = OperatingPoint(0.5)
TOP = 2 * GAP_PX + TITLE_PX + 5 * LINE_PX  # of the photos, below five lines of details


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A large photo, a small one, and one without a face."""
    folder = tmp_path_factory.mktemp("photos")
    drawn = drawn_faces(folder / "faces", people=1)
    paste(canvas(880, 660), drawn[0], Place(500, 300, 400, 12)).save(folder / "left.png")
    canvas(300, 400).save(folder / "field.png")
    return folder / "left.png", drawn[1], folder / "field.png"


@pytest.fixture(scope="module")
def verdict(photos):
    left, right = (align_faces(photo, SPEC)[0] for photo in photos[:2])
    return Verdict(True, 0.9, 0.8, POINT, left=left, right=right)


def near(picture, colour, slack=40):
    """Return (rows, columns) of the pixels of about that colour."""
    return np.nonzero((abs(np.asarray(picture, np.int32) - colour) < slack).all(axis=2))


def test_face_crop_and_landmarks_are_marked(photos, verdict):
    picture = draw_overlay(*photos[:2], verdict)
    assert picture.mode == "RGB"
    scale = COLUMN_PX / 880
    column = picture.crop((GAP_PX, TOP, GAP_PX + COLUMN_PX, TOP + round(660 * scale)))
    face, turn = verdict.left.face, np.radians(45 - abs(verdict.left.face.roll_deg))
    rows, columns = near(column, FRAME, 12)
    middle = np.array([np.ptp(columns) / 2 + columns.min(), np.ptp(rows) / 2 + rows.min()])
    assert np.allclose(middle, face.centre * scale, atol=5)
    across = np.sqrt(2) * np.cos(turn) * 128 / verdict.left.to_crop.scale * scale
    assert np.ptp(columns) == pytest.approx(across, rel=0.05, abs=4)
    for x, y in (face.landmarks * scale).round().astype(int).tolist():
        assert np.abs(np.array(column.getpixel((x, y))) - LANDMARK).max() < 40


def test_the_crops_are_shown(photos, verdict):
    picture = np.asarray(draw_overlay(*photos[:2], verdict), int)
    for column, (face, height) in enumerate(((verdict.left, 330), (verdict.right, COLUMN_PX))):
        left, top = GAP_PX + column * (COLUMN_PX + GAP_PX), TOP + height + GAP_PX
        shown = picture[top : top + 200, left : left + 200]
        crop = Image.fromarray(face.crop).resize((200, 200), Image.Resampling.BICUBIC)
        assert np.abs(shown - np.asarray(crop)).max() == 0


def test_an_unaligned_image_has_no_marks(photos):
    faces = [unaligned_face(photo, SPEC) for photo in photos[1:]]
    picture = draw_overlay(*photos[1:], Verdict(False, 0.1, 0.0, POINT, 0.5, 1, *faces))
    assert len(near(picture, FRAME, 12)[0]) == 0
    assert len(near(picture, COLOURS["different people"], 10)[0]) > 50


def test_the_file_is_complete_or_absent(photos, verdict, tmp_path):
    out = tmp_path / "new" / "verdict.png"
    write_overlay(out, *photos[:2], verdict)
    with Image.open(out) as image:
        image.load()
        assert image.format == "PNG"
    assert [path.name for path in out.parent.iterdir()] == ["verdict.png"]
    with pytest.raises(BadData):
        write_overlay(tmp_path / "verdict.txt", *photos[:2], verdict)
    with pytest.raises(BadData):
        draw_overlay(*photos[:2], Verdict(True, 0.9, 1.0, POINT))
