"""The picture of a face: the right place, grey beyond the photo."""

import io

import numpy as np
import pytest
from PIL import Image

from facepairs.errors import BadImage
from facepairs.grouping.cut_out import PICTURE_SIDE, cut_out, face_picture

WIDTH, HEIGHT, SIDE = 120, 100, 40
MARGIN = round(SIDE * (PICTURE_SIDE - 1) / 2)  # where no face is found


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
