"""Crops: the same bits in every store and batch, and those of verification to a tolerance."""

import re
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import tensorflow as tf
from drawn.crop_plans import turned_plan, whole_plan
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from facepairs.data.index import FaceIndex
from facepairs.data.sampler import PairSampler
from facepairs.errors import BadImage
from facepairs.photos.crop import CropPlan, CropSpec, Similarity, warp
from facepairs.photos.photo import open_photo
from facepairs.pipeline import files
from facepairs.pipeline.dataset import image_batches
from facepairs.pipeline.decode import Cropper
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore
from facepairs.pipeline.records.build import CachePlan, build_cache
from facepairs.pipeline.records.store import RecordStore
from facepairs.support.console import showing

CROP = 56
FORMATS = {  # by file name: mode, size, options of Pillow
    "frame.jpg": ("RGB", (250, 250), {}),
    "grey.jpg": ("L", (250, 250), {}),
    "progressive.jpg": ("RGB", (300, 220), {"progressive": True}),
    "no_subsampling.jpg": ("RGB", (125, 130), {"subsampling": 0, "quality": 95}),
    "cmyk.jpg": ("CMYK", (250, 250), {}),
    "large.jpg": ("RGB", (1400, 1100), {}),
    "small.jpg": ("RGB", (20, 31), {}),
    **{f"turned_{turn}.jpg": ("RGB", (260, 200), {"exif": turn}) for turn in range(2, 9)},
    "plain.png": ("RGB", (250, 250), {}),
    "clear.png": ("RGBA", (180, 250), {}),
    "palette.gif": ("P", (250, 250), {}),
    "pixels.bmp": ("RGB", (90, 112), {}),
    "pixels.webp": ("RGB", (250, 250), {}),
    "pixels.tif": ("RGB", (640, 480), {}),
    "pixels.pgm": ("L", (92, 112), {}),
}


def smooth(width, height, seed):
    small = np.random.default_rng(seed).integers(0, 256, (9, 9, 3), np.uint8)
    return Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC)


def save(path, mode, size, options, seed):
    path.parent.mkdir(parents=True, exist_ok=True)
    image, options = smooth(*size, seed).convert(mode), dict(options)
    if "exif" in options:
        exif = Image.Exif()
        exif[0x0112] = options["exif"]
        options["exif"] = exif
    image.save(path, **options)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory) -> FaceIndex:
    """Five people with photos of every format, and six with frames as LFW has them."""
    root = tmp_path_factory.mktemp("mixed") / "faces"
    for number, (name, (mode, size, options)) in enumerate(FORMATS.items()):
        save(root / f"Any_{number % 5}" / name, mode, size, options, number)
    for number in range(24):
        save(root / f"Frame_{number % 6}" / f"{number}.jpg", "RGB", (250, 250), {}, 100 + number)
    return FaceIndex.scan(root)


def crops_of(store, images, size):
    batches = image_batches(store, np.asarray(images), size)
    return np.concatenate([batch.numpy() for batch in batches])


@pytest.mark.parametrize(
    "plan_of",
    [
        whole_plan,
        turned_plan,
        pytest.param(partial(turned_plan, seed=1), marks=pytest.mark.slow),
    ],
)
def test_all_stores_return_the_same_bits_in_batches_of_any_kind(mixed, tmp_path, plan_of):
    plan = plan_of(mixed, CROP)
    everyone = np.arange(len(mixed))
    store = FileStore(mixed, plan)
    alone = np.array([store.crop(image) for image in everyone])
    frames = [image for image in everyone if mixed.name(image).startswith("Frame")]
    for images, size in ((everyone, 64), (everyone, 7), (frames, 12), (frames, 5)):
        assert np.array_equal(crops_of(store, images, size), alone[images])
    steps = []
    with showing(progress=lambda phase: lambda *at: steps.append((phase, *at))):
        in_memory = MemoryStore.build(mixed, plan)
    assert np.array_equal(crops_of(in_memory, everyone, 9), alone)
    assert steps == [("decoding images", len(mixed), len(mixed))]
    sampler = PairSampler(mixed.first, range(len(mixed.people)), 0)
    pairs = sampler.block(0, 0, 60)
    for encoding, loss in (("jpeg", 1.5), ("raw", 0)):
        build_cache(tmp_path / encoding, CachePlan(mixed, plan, sampler, 60, encoding))
        records = RecordStore.open(tmp_path / encoding)
        assert records.manifest.alignment == plan.alignment
        batches = records.batches(6, None).take(10)
        sides = zip(*(sides for sides, _ in batches), strict=True)
        for crops, images in zip(sides, (pairs.left, pairs.right), strict=True):
            assert np.abs(np.concatenate(crops).astype(int) - alone[images]).mean() <= loss


def test_crops_agree_with_verifications(mixed):
    for plan in (whole_plan(mixed, CROP), turned_plan(mixed, CROP), turned_plan(mixed, CROP, 1)):
        store = FileStore(mixed, plan)
        for image in range(len(mixed)):
            expected = plan.crop(open_photo(mixed.path(image)), image)
            distance = np.abs(store.crop(image).astype(int) - expected)
            assert distance.mean() < 0.6, mixed.name(image)
            if plan.to_crop is None:
                assert distance.max() <= 1, mixed.name(image)
            if not plan.tf_decodable[image]:
                assert not distance.any()


angles = st.floats(-180, 180)
scales = st.floats(0.1, 2, exclude_max=True)
places = st.tuples(st.floats(-60, 160), st.floats(-60, 140))


@settings(max_examples=100)
@given(angle=angles, scale=scales, place=places)
def test_a_window_has_all_pixels_of_the_crop(mixed, angle, scale, place):
    image = mixed.find("Any_3/no_subsampling.jpg")
    matrix = np.array(
        [
            (np.cos(np.radians(angle)), -np.sin(np.radians(angle))),
            (np.sin(np.radians(angle)), np.cos(np.radians(angle))),
        ]
    )
    matrix /= scale
    to_crop = np.column_stack([matrix, CROP / 2 - matrix @ place])
    with Image.open(mixed.path(image)) as opened:
        whole = np.asarray(opened.convert("RGB"))
    jpegs = np.array([(*whole.shape[:2], 1)], np.int32)
    plan = CropPlan(CropSpec(250, CROP), jpegs, to_crop[None], "landmarks-5")
    crop = Cropper(plan).crop(mixed.path(image).read_bytes(), 0, "photo")
    expected = warp(Image.fromarray(whole), Similarity(matrix, to_crop[:, 2]), CROP)
    # Positions are rounded, and the photo ends sharply.
    assert np.quantile(np.abs(crop.astype(int) - expected), 0.97) <= 4


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("size", [(1200, 904), (1203, 901)])
def test_large_photos_are_decoded_small_and_at_the_right_place(tmp_path, orientation, size):
    path = tmp_path / "large.jpg"
    save(path, "RGB", size, {"exif": orientation, "quality": 95}, orientation)
    photo, data = open_photo(path), path.read_bytes()
    width, height = size if orientation < 5 else size[::-1]
    jpegs = np.array([(height, width, orientation)], np.int32)
    for shrink, decoder in ((1.9, 1), (2.1, 2), (3.9, 2), (4.1, 3), (8.5, 4), (17, 4)):
        turn = np.array([(np.cos(shrink), -np.sin(shrink)), (np.sin(shrink), np.cos(shrink))])
        matrix = turn / shrink
        offset = (CROP - 1) / 2 - matrix @ (0.45 * width, 0.6 * height)
        plan = CropPlan(CropSpec(250, CROP), jpegs, np.column_stack([matrix, offset])[None])
        assert Cropper(plan).place(np.array([0])).decoder.tolist() == [decoder]
        crop = Cropper(plan).crop(data, 0, "photo").astype(int)
        distance = np.abs(crop - plan.crop(photo, 0))
        assert np.quantile(distance, 0.75) <= 1
        if shrink < 16:  # the crop is within the photo
            assert distance.mean() < 0.75
    plan = CropPlan(CropSpec(110, CROP), jpegs)  # shrinks by 8.2, and resizing by two of that
    assert Cropper(plan).place(np.array([0])).decoder.tolist() == [3]
    crop = Cropper(plan).crop(data, 0, "photo").astype(int)
    assert np.abs(crop - plan.crop(photo, 0)).max() <= 2


@pytest.mark.parametrize("plan_of", [whole_plan, turned_plan])
def test_large_and_odd_batches_are_read_file_by_file_and_others_at_once(
    mixed, monkeypatch, plan_of
):
    plan = plan_of(mixed, CROP)
    plain = np.flatnonzero(Cropper(plan).place(np.arange(len(mixed))).decoder == 1)
    frames = [image for image in plain.tolist() if mixed.name(image).startswith("Frame")][:6]
    bytes_of_all = int(mixed.sizes[frames].sum())
    black = tf.zeros([6, CROP, CROP, 3], tf.uint8)
    store = FileStore(mixed, plan)
    at_once = crops_of(store, frames, 6)
    assert np.array_equal(at_once, [store.crop(image) for image in frames])
    monkeypatch.setattr(files.Cropper, "read", lambda *_: black)
    for images, limit, is_at_once in (
        (frames, bytes_of_all, True),
        (frames, bytes_of_all - 1, False),
        ([*frames[1:], mixed.find("Any_4/plain.png")], 2 * bytes_of_all, False),
        (frames[1:], bytes_of_all, False),
    ):
        monkeypatch.setattr(files, "MAX_BATCH_BYTES", limit)
        alone = np.array([store.crop(image) for image in images])
        expected = np.zeros_like(alone) if is_at_once else alone
        assert np.array_equal(crops_of(store, images, 6), expected)


def test_many_images_are_decoded_in_chunks(mixed):
    plan = turned_plan(mixed, CROP)
    frames = [image for image in range(len(mixed)) if mixed.name(image).startswith("Frame")]
    for count, to_crop in ((155, plan.to_crop), (131, None)):  # chunks of 31, and of 1
        store = FileStore(mixed, replace(plan, to_crop=to_crop))
        crops = crops_of(store, np.resize(frames, count), count)
        assert np.array_equal(crops[:24], crops_of(store, frames, 24))
        assert np.array_equal(crops[:11], crops[-11:])


@pytest.mark.parametrize("plan_of", [whole_plan, turned_plan])
@pytest.mark.parametrize("size", [4, 7])
def test_a_damaged_image_raises_tensorflows_error(mixed, tmp_path, plan_of, size):
    index = FaceIndex.scan(shutil.copytree(mixed.root, tmp_path / "faces"))
    plan = plan_of(index, CROP)
    store = FileStore(index, plan)
    image = index.find("Frame_0/12.jpg")
    index.path(image).write_bytes(index.path(image).read_bytes()[:300])
    with pytest.raises(tf.errors.InvalidArgumentError):
        crops_of(store, [image] * 4, size)
    index.path(image).unlink()
    with pytest.raises(tf.errors.OpError, match=r"12\.jpg"):
        crops_of(store, [image] * 4, size)


@pytest.mark.parametrize("plan_of", [whole_plan, turned_plan])
@pytest.mark.parametrize("content", [b"damaged since", b""])
def test_an_undecodable_image_raises_bad_data_with_its_name(tmp_path, few_faces, plan_of, content):
    root = shutil.copytree(few_faces, tmp_path / "faces")
    index = FaceIndex.scan(root)
    plan = plan_of(index, CROP)
    index.path(20).write_bytes(content)
    with pytest.raises(BadImage, match=re.escape(index.name(20))):
        MemoryStore.build(index, plan)
