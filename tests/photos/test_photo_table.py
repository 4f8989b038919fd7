"""Photos are inspected once, by their content, and crops are planned by what was found."""

import numpy as np
import pytest
from drawn.photos import stored
from drawn.scenes import Place, canvas, drawn_faces, paste, write_scenes
from PIL import Image

from facepairs.choices import NO_PHOTO_CACHE, PHOTO_CACHE
from facepairs.data.index import FaceIndex
from facepairs.photos import reader
from facepairs.photos.crop import CropSpec
from facepairs.photos.frame import TEMPLATE, Face, fit_crops
from facepairs.photos.photo import open_photo
from facepairs.photos.photo_cache import PhotoCache, photo_cache
from facepairs.photos.photo_record import PhotoRecord
from facepairs.photos.photo_table import photo_records, plan_crops, unusable_photos
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
def cache(tmp_path, monkeypatch):
    """The user's cache, in a new file."""
    monkeypatch.delenv(NO_PHOTO_CACHE, raising=False)
    monkeypatch.setenv(PHOTO_CACHE, str(tmp_path / "photos.sqlite"))
    return photo_cache()


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


def landmarks_of(records):
    return [[face.landmarks.tolist() for face in record.usable] for record in records]


@pytest.mark.usefixtures("cache")
def test_records_tell_what_every_photo_shows(index):
    calls = []
    with showing(progress=lambda _: lambda *call: calls.append(call)):
        records = list(photo_records(index, "landmarks"))
    unusable = unusable_photos(records, "landmarks")
    assert list(unusable) == sorted(unusable)
    kinds = [records[image].why_unusable(True)[0] for image in unusable]
    assert sorted(kinds) == ["no_face", "not_image", "small_face"]
    assert all("/z_" in index.name(image) for image in unusable)
    assert [image for image, record in enumerate(records) if not record.usable] == [*unusable]
    assert calls[-1] == (len(index), len(index))
    jpegs = plan_crops(records, SPEC, "none").jpegs
    plain = np.flatnonzero(jpegs[:, 0])
    assert [index.name(image)[-3:] for image in plain] == ["jpg"] * 6
    with Image.open(index.path(plain[0])) as photo:
        assert jpegs[plain[0]].tolist() == [photo.height, photo.width, 1]


def test_no_photo_is_searched_twice(index, cache, searches, tmp_path):
    first = list(photo_records(index, "landmarks"))
    assert len(searches) == len(index) - 1  # one is no image
    second = list(photo_records(index, "landmarks"))
    assert len(searches) == len(index) - 1
    assert landmarks_of(first) == landmarks_of(second)
    assert unusable_photos(first, "landmarks") == unusable_photos(second, "landmarks")
    photo = index.path(0)
    (tmp_path / "renamed.dat").write_bytes(photo.read_bytes())
    record = record_of(tmp_path / "renamed.dat", cache)
    assert len(searches) == len(index) - 1
    assert np.array_equal(record.usable[0].landmarks, first[0].usable[0].landmarks)
    (tmp_path / "renamed.dat").write_bytes(photo.read_bytes() + b"\0")
    for _ in range(2):
        record_of(tmp_path / "renamed.dat", cache)
    assert len(searches) == len(index)


@pytest.mark.usefixtures("cache")
def test_without_alignment_faces_are_not_searched_and_frames_are_whole(index, searches):
    records = list(photo_records(index, "none"))
    assert not searches
    (bad,) = unusable_photos(records, "none")
    assert records[bad].problem == "not_image"
    assert {record.faces for record in records} == {None}
    plan = plan_crops(records, SPEC, "none")
    assert (plan.to_crop, plan.alignment, plan.detector) == (None, "lfw-frame", "")
    searched = list(photo_records(index, "landmarks"))  # records without faces are renewed
    assert len(searches) == len(index) - 1
    again = list(photo_records(index, "none"))
    assert {record.faces for record in again} == {None}
    jpegs = [plan_crops(each, SPEC, "none").jpegs for each in (records, searched, again)]
    assert np.array_equal(jpegs[0], jpegs[1])
    assert np.array_equal(jpegs[0], jpegs[2])


@pytest.mark.usefixtures("cache")
def test_the_plan_crops_as_verification_does(index):
    records = list(photo_records(index, "landmarks"))
    kept = index.without(unusable_photos(records, "landmarks"))
    plan = plan_crops([record for record in records if record.usable], SPEC, "landmarks")
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
    assert list(unusable_photos(records, "landmarks")) == [0, 1, 2, 3]


def test_a_face_counts_from_24_pixels_on_and_a_photo_by_its_digest():
    faces = tuple(Face(TEMPLATE * side / 114, 0.9) for side in (23.99, 24.0, 60.0))
    record = PhotoRecord(faces=faces, digest=b"\xff" * 7 + b"\xfe" + bytes(24))
    assert (record.usable, record.face_count, record.content) == ([*faces[1:]], 3, -2)
    empty = PhotoRecord()
    assert (empty.face_count, empty.content, empty.orientation) == (None, 0, 1)
    assert (empty.width_px, empty.height_px, empty.tf_decodable) == (0, 0, False)
    assert record.why_unusable(aligned=True) is None
    kinds = [PhotoRecord(faces=few).why_unusable(aligned=True)[0] for few in ((), faces[:1])]
    assert kinds == ["no_face", "small_face"]
    assert PhotoRecord(faces=()).why_unusable(aligned=False) is None
    assert PhotoRecord("zero_byte", "empty").why_unusable(aligned=False) == ("zero_byte", "empty")


def test_a_face_too_small_gives_way_to_the_next_one():
    tiny, large, other = (Face(scale * TEMPLATE, 0.9) for scale in (0.1, 0.5, 0.7))
    records = [PhotoRecord(faces=faces) for faces in [(tiny, large, other), (tiny,)]]
    assert records[0].usable == [large, other]
    assert records[1].usable == []
    (reason,) = unusable_photos(records, "landmarks").values()
    assert reason.startswith("its face is 11 pixels")
    assert unusable_photos(records, "none") == {}
    assert [record.face_count for record in records] == [3, 1]
    for faces, expected in ((None, large), ({0: 2}, other), ({0: 1, 7: 2}, large)):
        plan = plan_crops(records[:1], SPEC, "landmarks", faces)
        assert np.array_equal(plan.to_crop, fit_crops(expected.landmarks[None], SPEC))
