"""Photos are inspected once, by their content, and become a table."""

import numpy as np
import pytest
from drawn.photos import stored
from drawn.scenes import Place, canvas, drawn_faces, paste, write_scenes
from PIL import Image

from facepairs.data.index import FaceIndex
from facepairs.photos import reader
from facepairs.photos.crop import CropSpec
from facepairs.photos.frame import TEMPLATE
from facepairs.photos.photo import open_photo
from facepairs.photos.photo_cache import PhotoCache
from facepairs.photos.photo_record import PhotoRecord
from facepairs.photos.photo_table import PhotoTable, inspect_photos
from facepairs.photos.reader import PhotoReader
from facepairs.support.console import showing

SPEC = CropSpec(250, 128)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Three people with two photos each, of any size; each has one more that cannot be used."""
    folder = tmp_path_factory.mktemp("photos")
    drawn = drawn_faces(folder / "drawn")
    root = write_scenes(folder / "drawn", folder / "scenes")
    first, second, third = sorted(root.iterdir())
    canvas(300, 200).save(first / "z_field.png")
    (second / "z_text.jpg").write_text("no photo")
    paste(canvas(300, 300), drawn[0], Place(150, 150, 50)).save(third / "z_small.png")
    return root


@pytest.fixture
def index(root):
    return FaceIndex.scan(root)


@pytest.fixture
def cache():
    return PhotoCache()


@pytest.fixture
def searches(monkeypatch):
    """The sizes of the images in which faces were searched."""
    sizes = []
    find = reader.search_photo

    def search(photo):
        sizes.append((photo.height_px, photo.width_px))
        return find(photo)

    monkeypatch.setattr(reader, "search_photo", search)
    return sizes


def record_of(path, cache=None):
    (record,) = PhotoReader(aligned=True, cache=cache).records([path])
    return record


def test_the_table_tells_what_every_photo_shows(index, cache):
    calls = []
    with showing(progress=lambda _: lambda *call: calls.append(call)):
        table = inspect_photos(index, "landmarks", cache)
    problems = {index.name(image): kind for image, (kind, _) in table.problems.items()}
    assert sorted(kind for name, kind in problems.items()) == ["no_face", "not_image", "small_face"]
    assert all("/z_" in name for name in problems)
    usable = np.array([image not in table.problems for image in range(len(index))])
    assert np.isnan(table.landmarks[~usable]).all()
    assert np.isfinite(table.landmarks[usable]).all()
    assert calls[-1] == (len(index), len(index))
    suffixes = [index.name(image)[-3:] for image in range(len(index))]
    plain = np.flatnonzero(table.jpegs[:, 0])
    assert [suffixes[image] for image in plain] == ["jpg"] * 6
    with Image.open(index.path(plain[0])) as photo:
        assert table.jpegs[plain[0]].tolist() == [photo.height, photo.width, 1]


def test_no_photo_is_searched_twice(index, cache, searches, tmp_path):
    first = inspect_photos(index, "landmarks", cache=cache)
    assert len(searches) == len(index) - 1  # one is no image
    second = inspect_photos(index, "landmarks", cache=cache)
    assert len(searches) == len(index) - 1
    assert np.array_equal(first.landmarks, second.landmarks, equal_nan=True)
    assert first.problems == second.problems
    photo = index.path(0)
    (tmp_path / "renamed.dat").write_bytes(photo.read_bytes())
    record = record_of(tmp_path / "renamed.dat", cache)
    assert len(searches) == len(index) - 1
    assert record.usable[0].landmarks == pytest.approx(first.landmarks[0])
    (tmp_path / "renamed.dat").write_bytes(photo.read_bytes() + b"\0")
    record_of(tmp_path / "renamed.dat", cache)
    assert len(searches) == len(index)


def test_without_alignment_faces_are_not_searched_and_frames_are_whole(index, cache, searches):
    table = inspect_photos(index, "none", cache=cache)
    assert not searches
    assert [kind for kind, _ in table.problems.values()] == ["not_image"]
    assert table.landmarks is None
    plan = table.crop_plan(SPEC, "none")
    assert (plan.to_crop, plan.alignment) == (None, "lfw-frame")
    with pytest.raises(ValueError, match="landmarks"):
        table.crop_plan(SPEC, "landmarks")
    searched = inspect_photos(index, "landmarks", cache=cache)  # records without faces are renewed
    assert len(searches) == len(index) - 1
    again = inspect_photos(index, "none", cache=cache)
    assert again.landmarks is None
    assert np.array_equal(again.jpegs, searched.jpegs)


def test_the_plan_crops_as_verification_does(index, cache):
    table = inspect_photos(index, "landmarks", cache=cache)
    kept = index.without(table.problems)
    table = table.without(table.problems)
    plan = table.crop_plan(SPEC, "landmarks")
    assert (len(plan), plan.alignment) == (len(kept), "landmarks-5")
    for image in range(len(kept)):
        (face,) = PhotoReader(True, SPEC).read([("photo", kept.path(image))])
        assert np.array_equal(plan.crop(open_photo(kept.path(image)), image), face.crop)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_places_are_those_of_the_upright_photo(root, orientation, tmp_path):
    path = sorted(root.glob("*/*.jpg"))[0]
    with Image.open(path) as image:
        (tmp_path / "turned.png").write_bytes(stored(image, orientation, "PNG"))
    record, expected = record_of(tmp_path / "turned.png"), record_of(path)
    assert (record.width_px, record.height_px) == (expected.width_px, expected.height_px)
    assert record.usable[0].landmarks == pytest.approx(expected.usable[0].landmarks, abs=0.5)


def test_problems_are_records_not_exceptions(tmp_path):
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "damaged.jpg").write_bytes(b"\xff\xd8\xff\xe0" + bytes(100))
    names = [tmp_path / name for name in ("empty.jpg", "damaged.jpg", "missing.jpg", ".")]
    records = PhotoReader(True, cache=PhotoCache()).records(names)
    assert records[0].problem == "zero_byte"
    assert all(record.problem and record.reason and record.usable == [] for record in records)
    table = PhotoTable.of(records, "landmarks")
    assert sorted(table.problems) == [0, 1, 2, 3]


def test_a_face_too_small_gives_way_to_the_next_one():
    tiny, large = ((0.9, *(scale * TEMPLATE).ravel().tolist()) for scale in (0.1, 0.5))
    records = [PhotoRecord(faces=faces) for faces in [(tiny, large), (tiny,)]]
    table = PhotoTable.of(records, "landmarks")
    assert table.landmarks[0] == pytest.approx(0.5 * TEMPLATE, abs=0.01)
    assert np.array_equal(records[0].usable[0].landmarks, 0.5 * TEMPLATE)
    assert (records[1].usable, table.problems[1][0]) == ([], "small_face")
    assert [record.face_count for record in records] == [2, 1]


def test_parts_of_a_table():
    row = (0.9, *TEMPLATE.ravel().tolist())
    faces = [(row,), None, (row, row), (), (row,) * 3]
    records = [
        PhotoRecord("" if one is not None else "not_image", "is text", faces=one) for one in faces
    ]
    table = PhotoTable.of(records, "landmarks")
    assert np.isfinite(table.landmarks[:, 0, 0]).tolist() == [True, False, True, False, True]
    assert sorted(table.problems) == [1, 3]
    rest = table.without([0, 1])
    assert (sorted(rest.problems), len(rest)) == ([1], 3)
    assert np.array_equal(rest.landmarks, table.landmarks[2:], equal_nan=True)
