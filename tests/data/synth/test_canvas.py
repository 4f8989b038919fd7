"""Synthetic faces are framed as LFW is."""

from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from facepairs.data.synth.canvas import Canvas
from facepairs.data.synth.faces import MAX_PEOPLE, MAX_PHOTOS, appearance

SEEDS = st.integers(0, 2**63 - 1)
PEOPLE = st.integers(0, MAX_PEOPLE - 1)
PHOTOS = st.integers(0, MAX_PHOTOS - 1)
DIFFICULTIES = st.floats(0, 1)


@settings(max_examples=200)
@given(SEEDS, PEOPLE, PHOTOS, DIFFICULTIES)
def test_eyes_and_mouth_lie_in_the_middle_112_pixels(
    seed: int, person: int, photo: int, difficulty: float
) -> None:
    face, shot = appearance(seed, person, photo, difficulty)
    canvas = Canvas(face, shot, Image.new("RGB", (250, 250)))
    eye = face.eye_distance + face.eye_half_width
    right = [(eye, face.eye_height), (face.mouth_half_width, face.mouth_height)]
    corners = right + [(-x, y) for x, y in right]
    placed = canvas.project(corners)
    assert (placed > 69).all()
    assert (placed < 181).all()
