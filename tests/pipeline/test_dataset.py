"""All stores return the same pixels for the same pairs, in the sampler's order."""

import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from facepairs.data.index import FaceIndex
from facepairs.data.sampler import PairSampler
from facepairs.errors import BadData
from facepairs.images.crop import CropSpec, load_crop
from facepairs.pipeline import decode
from facepairs.pipeline.dataset import make_dataset
from facepairs.pipeline.decode import batch_decoder, crop_decoder, file_decoder
from facepairs.pipeline.files import FileStore, file_paths
from facepairs.pipeline.memory import MemoryStore

FRAME, CROP = 250, 112


def encoded(form="JPEG", size=(250, 250), mode="RGB", seed=0):
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (9, 9, 3), np.uint8)
    image = Image.fromarray(small).resize(size, Image.Resampling.BICUBIC).convert(mode)
    buffer = io.BytesIO()
    image.save(buffer, form)
    return buffer.getvalue()


def stores(index, tmp_path):
    yield FileStore(index, FRAME, CROP)
    yield MemoryStore.build(index, FRAME, CROP)
    yield MemoryStore.build(index, FRAME, CROP, tmp_path / "store.npy")


def test_every_store_returns_the_samplers_pairs_and_the_files_pixels(faces, tmp_path):
    index = FaceIndex.scan(faces)
    sampler = PairSampler(index.first, range(len(index.people)), 3)
    block = sampler.block(0, 0, 20)  # two whole batches and a short one
    framing = CropSpec(FRAME, CROP)
    for store in stores(index, tmp_path):
        batches = list(make_dataset(store, lambda: iter([block]), 8))
        assert [len(batch["genuine"]) for batch in batches] == [8, 8, 4]
        genuine = np.concatenate([batch["genuine"].numpy() for batch in batches])
        assert np.array_equal(genuine, block.genuine)
        at = 0
        for batch in batches:
            pixels = store.gather(batch["images"]).numpy()
            count = len(batch["genuine"])
            assert pixels.shape == (2 * count, CROP, CROP, 3)
            assert pixels.dtype == np.uint8
            for k in (0, count - 1):
                for side, ids in ((0, block.left), (count, block.right)):
                    expected = load_crop(index.path(int(ids[at + k])), framing)
                    assert np.array_equal(pixels[side + k], expected)
            at += count


@pytest.mark.parametrize("count", [3, 8])
@pytest.mark.parametrize("size", [(250, 250), (300, 200), (112, 150), (64, 64)])
def test_fast_and_general_decoding_agree(size, count):
    data = [encoded(size=size, seed=i) for i in range(count)]
    fast = batch_decoder(FRAME, CROP, 8)(tf.constant(data)).numpy()
    one = crop_decoder(FRAME, CROP)
    assert np.array_equal(fast, np.stack([one(tf.constant(d)).numpy() for d in data]))


@pytest.mark.parametrize("size", [(999, 1003), (1000, 1400), (2100, 2000), (4100, 4300)])
def test_large_photos_are_shrunk_while_decoded_as_verification_does(size):
    data = encoded(size=size, seed=1)
    crop = batch_decoder(FRAME, CROP, 2)(tf.constant([data, data])).numpy()[1]
    expected = load_crop(data, CropSpec(FRAME, CROP)).astype(int)
    assert np.abs(crop.astype(int) - expected).mean() < 1.5


def test_an_empty_batch_decodes_to_no_image():
    crops = file_decoder(FRAME, CROP, 2)(tf.constant([], tf.string), tf.constant(0, tf.int64))
    assert crops.shape == (0, CROP, CROP, 3)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_large_batches_are_read_file_by_file_with_the_same_pixels(tmp_path, monkeypatch, count):
    paths = [tmp_path / f"{i}.jpg" for i in range(count)]
    for i, path in enumerate(paths):
        path.write_bytes(encoded(size=(250 + 50 * i, 250), seed=i))
    names = tf.constant([str(path) for path in paths])
    small, large = (tf.constant(decode.MAX_BATCH_BYTES + more, tf.int64) for more in (0, 1))
    together = file_decoder(FRAME, CROP, 2)(names, small).numpy()
    assert together.shape == (count, CROP, CROP, 3)
    monkeypatch.setattr(decode, "read_files", None)  # files must not be read together
    assert np.array_equal(file_decoder(FRAME, CROP, 2)(names, large).numpy(), together)


def test_file_paths_returns_the_paths_and_their_total_size(faces):
    index = FaceIndex.scan(faces)
    images = np.array([5, 0, 7])
    paths, size = file_paths(index)(tf.constant(images))
    assert [path.decode() for path in paths.numpy()] == [str(index.path(i)) for i in images]
    assert size.numpy() == sum(index.path(i).stat().st_size for i in images)


def test_mixed_formats_and_sizes_in_one_batch():
    data = [
        encoded("PNG", (250, 250), seed=1),
        encoded("JPEG", (180, 320), seed=2),
        encoded("BMP", (250, 250), seed=3),
        encoded("JPEG", (250, 250), "L", seed=4),
    ]
    decode = batch_decoder(FRAME, CROP, 4)
    eager = decode(tf.constant(data)).numpy()
    (traced,) = tf.data.Dataset.from_tensors(tf.constant(data)).map(decode)
    assert np.array_equal(eager, traced.numpy())
    for image, source in zip(eager, data, strict=True):
        expected = load_crop(source, CropSpec(FRAME, CROP)).astype(int)
        assert np.abs(image.astype(int) - expected).mean() < 1.0


def test_many_images_are_decoded_in_chunks():
    data = [encoded(seed=i % 5) for i in range(260)]
    crops = batch_decoder(FRAME, CROP, 260)(tf.constant(data)).numpy()
    assert np.array_equal(crops[:5], crops[255:])
    assert not np.array_equal(crops[0], crops[1])


def test_a_damaged_image_raises_tensorflows_error():
    decode = batch_decoder(FRAME, CROP, 2)
    with pytest.raises(tf.errors.InvalidArgumentError):
        decode(tf.constant([encoded(), b"no image"]))


def test_the_array_is_cached_and_mapped_again(faces, tmp_path):
    index = FaceIndex.scan(faces)
    path = tmp_path / "store.npy"
    calls = []
    MemoryStore.build(index, FRAME, CROP, path, lambda *counts: calls.append(counts))
    assert calls[-1] == (len(index), len(index))
    assert [p.name for p in tmp_path.iterdir()] == ["store.npy"]
    changed = path.stat().st_mtime_ns
    again = MemoryStore.build(index, FRAME, CROP, path, lambda *_: pytest.fail("built again"))
    assert path.stat().st_mtime_ns == changed
    assert np.array_equal(
        again.gather(tf.constant([5])).numpy()[0], load_crop(index.path(5), CropSpec(FRAME, CROP))
    )
    path.write_bytes(path.read_bytes()[:-1])  # truncated: built again, not trusted
    messages = []
    whole = MemoryStore.build(index, FRAME, CROP, path, log=messages.append)
    assert whole.gather(tf.constant([len(index) - 1])).numpy().any()
    assert messages == [f"{path}: damaged (its checksum does not fit); it is built again"]


def test_an_undecodable_image_raises_bad_data_and_leaves_no_file(tmp_path):
    for name, data in (("A/1.jpg", encoded()), ("A/2.jpg", b"text"), ("B/1.jpg", encoded())):
        (tmp_path / "faces" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "faces" / name).write_bytes(data)
    index = FaceIndex.scan(tmp_path / "faces")
    with pytest.raises(BadData, match="facepairs data check"):
        MemoryStore.build(index, FRAME, CROP, tmp_path / "store.npy")
    assert [p.name for p in tmp_path.iterdir()] == ["faces"]
