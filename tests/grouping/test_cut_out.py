"""The picture of a face: the right place, grey beyond the photo."""

import io

import numpy as np
import pytest
from drawn.scenes import Place, canvas, drawn_faces, paste
from PIL import Image

from facepairs.errors import BadImage
from facepairs.grouping.cut_out import cut_out, face_picture
from facepairs.photos.detector import search_photo
from facepairs.photos.photo import open_photo

WIDTH, HEIGHT, SIDE = 120, 100, 40
MARGIN = 12  # where no face is found: .3 of the side


@pytest.fixture
def photo(tmp_path):
    """A slope in both directions, which shows no face: two levels a pixel."""
    y, x = np.indices((HEIGHT, WIDTH))
    path = tmp_path / "slope.png"
    Image.fromarray(np.dstack([2 * x, 2 * y, 0 * x + 90]).astype(np.uint8)).save(path)
    return path


@pytest.mark.parametrize(
    ("left", "top"), [(40, 30), (0, 5), (5, 0), (WIDTH - SIDE, 20), (20, HEIGHT - SIDE), (-8, -8)]
)
def test_the_face_is_in_the_middle_and_what_lies_beyond_is_grey(photo, left, top):
    with Image.open(io.BytesIO(cut_out(photo, (left, top, SIDE)))) as picture:
        assert picture.format == "JPEG"
        pixels = np.asarray(picture, float)
    side = SIDE + 2 * MARGIN
    assert pixels.shape == (side, side, 3)
    y, x = np.indices((side, side))
    x, y = x + left - MARGIN, y + top - MARGIN
    inside = (x >= 0) & (y >= 0) & (x < WIDTH) & (y < HEIGHT)
    expected = np.dstack([2 * x, 2 * y, 0 * x + 90]).astype(float)
    expected[~inside] = 127
    off = np.abs(pixels - expected)
    near = np.zeros_like(inside)  # to an edge, which a JPEG blurs
    for axis in (0, 1):
        for step in range(-8, 9):
            near |= np.roll(inside, step, axis) != inside
    assert off[~near].mean() < 1.5
    assert off[~near].max() < 12
    clear = inside & ~near
    for channel, of in ((0, x), (1, y)):  # a pixel beside it would differ by two levels
        assert abs((pixels[..., channel] - 2 * of)[clear].mean()) < 1


@pytest.mark.parametrize("apart_px", [200, 72])
def test_the_picture_is_wide_unless_another_face_is_near(tmp_path, apart_px):
    one, other = drawn_faces(tmp_path / "faces", people=2, images=1)
    picture = paste(canvas(500, 500), one, Place(250, 250, 200))
    with Image.open(other) as face:
        beside = face.resize((200, 200)).crop((50, 40, 150, 160))
    picture.paste(beside, (200 + apart_px, 190))
    picture.save(tmp_path / "two.png")
    box = min(face.box for face in search_photo(open_photo(tmp_path / "two.png")))
    content = cut_out(tmp_path / "two.png", tuple(box))
    with Image.open(io.BytesIO(content)) as found:
        is_widest = found.width == box[2] + 2 * round(0.8 * box[2])  # 2.6 sides
    assert is_widest == (apart_px == 200)
    assert len(search_photo(open_photo(content))) == 1


def test_a_nearly_black_photo_has_a_picture_of_the_usual_size(tmp_path):
    Image.new("RGB", (WIDTH, HEIGHT), (1, 1, 1)).save(tmp_path / "black.png")
    with Image.open(io.BytesIO(cut_out(tmp_path / "black.png", (40, 30, SIDE)))) as found:
        assert found.size == (SIDE + 2 * MARGIN,) * 2


def test_a_small_picture_shows_the_same_square(photo):
    pixels = np.asarray(face_picture(photo, (40, 30, SIDE), 24), int)
    assert pixels.shape == (24, 24, 3)
    assert abs(pixels[11:13, 11:13].mean((0, 1)) - (2 * 59.5, 2 * 49.5, 90)).max() < 2
    step = (SIDE + 2 * MARGIN) / 24  # pixels of the photo
    assert np.diff(pixels[12, 4:20, 0]).mean() == pytest.approx(2 * step, rel=0.1)


@pytest.mark.parametrize(("left", "top"), [(WIDTH, 0), (0, HEIGHT)])
def test_a_photo_that_became_smaller_is_named(photo, left, top):
    with pytest.raises(BadImage, match=f"^{photo}: is smaller than before"):
        cut_out(photo, (left, top, SIDE))
    assert cut_out(photo, (left - bool(left), top - bool(top), SIDE))
