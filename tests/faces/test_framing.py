"""Faces are found and framed, frames pass through unchanged, and whole folders are framed."""

import io
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from drawn_scenes import Place, canvas, drawn_faces, paste
from PIL import Image

from facepairs.errors import BadData, BadImage, NoFace
from facepairs.faces import framing as module
from facepairs.faces.detector import Face, overlap
from facepairs.faces.frame_folder import frame_folder
from facepairs.faces.framing import FRAME_BOXES, align_faces, frame_face
from facepairs.images.crop import CropSpec, load_crop

SPEC = CropSpec(250, 128)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return drawn_faces(tmp_path_factory.mktemp("drawn") / "faces")


def nobody(image, every):
    raise AssertionError("the detector ran")


def agrees(aligned, place, slack=0.12):
    face = aligned.face
    off = max(abs(face.x - place.x), abs(face.y - place.y)) / place.box_px
    return off < slack and abs(face.side_px / place.box_px - 1) < 2 * slack


@pytest.mark.parametrize(
    "place",
    [
        Place(300, 260, 300),
        Place(500, 250, 140),
        Place(330, 240, 220, 18),
        Place(330, 240, 260, -15),
    ],
)
def test_a_face_is_found_and_framed(drawn, place):
    photo = paste(canvas(640, 480), drawn[0], place)
    (aligned,) = align_faces(photo, SPEC)
    assert aligned.framed
    assert aligned.faces == 1
    assert agrees(aligned, place)
    assert abs(aligned.roll_deg - place.roll_deg) < 7
    frame = frame_face(np.asarray(photo), aligned.face, aligned.roll_deg, 250)
    original = load_crop(drawn[0], CropSpec(250, 250)).astype(float)
    inner = (slice(75, 175),) * 2
    assert np.corrcoef(frame[inner].ravel(), original[inner].ravel())[0, 1] > 0.7


def test_every_kind_of_source_gives_the_same_face(drawn, tmp_path):
    path = tmp_path / "photo.png"
    paste(canvas(500, 400), drawn[1], Place(220, 210, 240, 10)).save(path)
    data = path.read_bytes()
    expected = align_faces(path, SPEC)[0]
    with Image.open(path) as image:
        for source in (str(path), data, io.BytesIO(data), image, np.asarray(image)):
            (aligned,) = align_faces(source, SPEC)
            assert np.array_equal(aligned.crop, expected.crop)
            assert aligned.to_json() == expected.to_json()


def test_threads_find_the_same_faces(drawn):
    photos = [paste(canvas(420, 400), path, Place(200, 200, 220)) for path in drawn[:4]]
    alone = [align_faces(photo, SPEC)[0].to_json() for photo in photos]
    with ThreadPoolExecutor(4) as pool:
        assert [p[0].to_json() for p in pool.map(lambda p: align_faces(p, SPEC), photos)] == alone


@pytest.mark.parametrize("size", [(250, 250), (200, 200), (49, 300)])
def test_an_image_of_a_frames_size_passes_through(size):
    pixels = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    spec = CropSpec(200, 96)
    (aligned,) = align_faces(pixels, spec, find=nobody)
    assert not aligned.framed
    assert (aligned.face, aligned.faces, aligned.roll_deg) == (None, None, 0)
    assert np.array_equal(aligned.crop, load_crop(pixels, spec))
    assert aligned.describe() == "the whole image, not framed again"


@pytest.mark.parametrize("size_px", [125, 300, 610])
def test_an_image_that_a_face_fills_passes_through(drawn, size_px):
    with Image.open(drawn[2]) as image:
        resized = image.resize((size_px, size_px), Image.Resampling.BICUBIC)
    (aligned,) = align_faces(resized, SPEC)
    assert not aligned.framed
    assert aligned.faces == 1
    assert np.array_equal(aligned.crop, load_crop(resized, SPEC))


@pytest.mark.parametrize(
    ("size", "face", "framed"),
    [
        ((400, 400), Face(200, 200, 400 / FRAME_BOXES), False),
        ((430, 400), Face(215, 200, 370 / FRAME_BOXES), False),
        ((400, 400), Face(240, 200, 400 / FRAME_BOXES), True),  # beside the middle
        ((400, 400), Face(200, 200, 300 / FRAME_BOXES), True),  # too small
        ((400, 400), Face(200, 200, 520 / FRAME_BOXES), True),  # too large
        ((500, 400), Face(250, 200, 400 / FRAME_BOXES), True),  # not square
    ],
)
def test_only_a_centred_face_of_the_right_size_passes_through(size, face, framed):
    pixels = np.random.default_rng(1).integers(0, 256, (size[1], size[0], 3), np.uint8)
    (aligned,) = align_faces(pixels, SPEC, find=lambda image, every: [face])
    assert aligned.framed == framed


def test_an_axis_aligned_frame_is_the_photo_itself():
    pixels = np.random.default_rng(2).integers(0, 256, (500, 600, 3), np.uint8)
    frame = frame_face(pixels, Face(325, 225, 250 / FRAME_BOXES), 0.0, 250)
    assert np.array_equal(frame, pixels[100:350, 200:450])


@pytest.mark.parametrize("roll_deg", [0.0, 20.0])
def test_edge_pixels_are_repeated_beyond_the_image(roll_deg):
    pixels = np.full((300, 400, 3), 90, np.uint8)
    frame = frame_face(pixels, Face(10, 290, 200), roll_deg, 250)
    assert frame.shape == (250, 250, 3)
    assert (frame == 90).all()


def test_a_rolled_face_is_turned_upright():
    """A mark to the right of a rolled face is to its right in the frame."""
    pixels = np.zeros((400, 400, 3), np.uint8)
    turn = np.radians(20)
    x, y = 200 + 80 * np.cos(turn), 200 - 80 * np.sin(turn)  # counter-clockwise is up
    pixels[round(y) - 4 : round(y) + 5, round(x) - 4 : round(x) + 5] = 255
    frame = frame_face(pixels, Face(200, 200, 250 / FRAME_BOXES), 20.0, 250)
    rows, columns = np.nonzero(frame[..., 0] > 128)
    assert rows.mean() == pytest.approx(124.5, abs=2)
    assert columns.mean() == pytest.approx(204.5, abs=2)


def test_an_image_without_a_face_raises_no_face(drawn, tmp_path):
    path = tmp_path / "field.png"
    canvas(320, 240).save(path)
    with pytest.raises(NoFace, match=r"field\.png: no face found.*--no-framing"):
        align_faces(path, SPEC)
    with pytest.raises(BadImage, match=r"^second image: no face"):
        align_faces(canvas(320, 240), SPEC, "second image")


def test_of_several_faces_the_largest_is_framed(drawn):
    places = [Place(150, 200, 200), Place(420, 220, 280), Place(650, 210, 180)]
    photo = canvas(800, 440)
    for path, place in zip(drawn[::2], places, strict=True):
        paste(photo, path, place)
    (largest,) = align_faces(photo, SPEC)
    assert agrees(largest, places[1])
    assert largest.faces == 3
    assert "the largest of 3 faces" in largest.describe()
    every = align_faces(photo, SPEC, every=True)
    assert [agrees(one, places[at]) for one, at in zip(every, (1, 0, 2), strict=True)] == [True] * 3


def test_exif_orientation_is_applied(drawn, tmp_path):
    place = Place(200, 240, 260)
    photo = paste(canvas(420, 560), drawn[3], place)
    exif = Image.Exif()
    exif[0x0112] = 6  # stored lying on its side
    path = tmp_path / "turned.jpg"
    photo.transpose(Image.Transpose.ROTATE_90).save(path, exif=exif, quality=95)
    (aligned,) = align_faces(path, SPEC)
    assert agrees(aligned, place)
    assert aligned.size_px == (420, 560)


def test_a_large_photo_keeps_its_pixels(drawn, tmp_path):
    """Faces are searched in a smaller copy and cut out of the whole photo."""
    place = Place(1500, 900, 420)
    path = tmp_path / "large.jpg"
    paste(canvas(3600, 2000), drawn[0], place).save(path, quality=92)
    (aligned,) = align_faces(path, SPEC)
    assert agrees(aligned, place)
    assert aligned.size_px == (3600, 2000)
    small = paste(canvas(900, 500), drawn[0], Place(375, 225, 105))
    assert "blurred" not in {hint.kind for hint in aligned.hints}
    assert "small" in {hint.kind for hint in align_faces(small, SPEC)[0].hints}


def test_an_unreadable_image_raises_bad_image(tmp_path):
    for source, says in ((b"no image", "not a JPEG"), (tmp_path / "none.jpg", "No such file")):
        with pytest.raises(BadImage, match=says):
            align_faces(source, SPEC)
    with pytest.raises(BadImage, match="array of shape"):
        align_faces(np.zeros((4, 4, 4, 4), np.uint8), SPEC)


def test_opencv_is_loaded_only_when_the_detector_runs(drawn):
    code = f"""
import sys
from facepairs.faces.framing import align_faces
from facepairs.images.crop import CropSpec
align_faces({str(drawn[0])!r}, CropSpec(250, 128))
print("cv2" in sys.modules, "concurrent.futures" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False False"


def test_overlap_is_intersection_over_union():
    assert overlap(Face(0, 0, 10), Face(0, 0, 10)) == 1
    assert overlap(Face(0, 0, 10), Face(5, 0, 10)) == pytest.approx(1 / 3)
    assert overlap(Face(0, 0, 10), Face(20, 0, 10)) == 0


@pytest.fixture
def photos(drawn, tmp_path):
    """Two people, one photo of a field, one that is a frame already."""
    root = tmp_path / "photos"
    for number, path in enumerate(drawn[:3]):
        target = root / path.parent.name / f"{path.stem}.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        paste(canvas(420, 380), path, Place(200, 190, 250 + 20 * number)).save(target)
    canvas(300, 260).save(target.with_name("field.png"))
    with Image.open(drawn[3]) as image:
        image.save(target.with_name("framed.png"))
    return root


def test_a_folder_is_framed(photos, tmp_path):
    calls = []
    done = frame_folder(photos, tmp_path / "out", lambda *call: calls.append(call), workers=2)
    assert (done.framed, done.unchanged) == (3, 1)
    ((left_out, why),) = done.left_out
    assert left_out.endswith("field.png")
    assert "no face found" in why
    assert calls[-1] == (5, 5)
    written = sorted(path.relative_to(tmp_path / "out") for path in (tmp_path / "out").glob("*/*"))
    expected = sorted(
        path.relative_to(photos).with_suffix(".jpg")
        for path in photos.glob("*/*")
        if path.stem != "field"
    )
    assert written == expected
    for path in written:
        with Image.open(tmp_path / "out" / path) as image:
            assert (image.size, image.format) == ((250, 250), "JPEG")


def test_unusable_folders_are_refused(photos, tmp_path):
    with pytest.raises(BadData, match="lies within the photos"):
        frame_folder(photos, photos / "out")
    with pytest.raises(BadData, match="not an empty folder"):
        frame_folder(photos, photos)
    field = next(photos.glob("*/field.png"))
    twin = next(photos.glob("*/framed.png"))
    twin.rename(field.with_suffix(".jpg"))
    with pytest.raises(BadData, match="two photos would both become"):
        frame_folder(photos, tmp_path / "out")
    for path in photos.glob("*/*"):
        if path.stem != "field" or path.suffix != ".png":
            path.unlink()
    with pytest.raises(BadData, match="no face found in any"):
        frame_folder(photos, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.lfw
def test_lfw_faces_pass_through_or_are_found(lfw):
    paths = sorted((lfw / "lfw-deepfunneled").glob("A*/*_0001.jpg"))[:40]
    found = 0
    for path in paths:
        faces = module.find_faces(load_crop(path, CropSpec(250, 250)))
        found += bool(faces) and overlap(faces[0], Face(125, 125, 250 / FRAME_BOXES)) > 0.5
    assert found >= 0.9 * len(paths)
