"""The pair cache: the sampler's blocks, the pixels of the files, and every damage is found."""

import io
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from drawn.caches import CROP_PX, FRAME_PX, PAIRS, SEED, SHARD, SHARE, build
from drawn.crop_plans import whole_plan
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, JpegImagePlugin

from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.data.sampler import PairSampler
from facepairs.errors import BadConfig, BadData
from facepairs.pipeline.dataset import make_dataset
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.records.build import people_digest, shard_count
from facepairs.pipeline.records.manifest import MANIFEST, read_manifest
from facepairs.pipeline.records.store import RecordStore
from facepairs.support.console import showing


def sampler(index: FaceIndex) -> PairSampler:
    return PairSampler(index.first, range(1, len(index.people)), SEED, SHARE)


def expected(index: FaceIndex) -> PairList:
    sizes = (17, 18, 17, 18)
    return PairList.join([sampler(index).block(0, n, size) for n, size in enumerate(sizes)])


def records(folder: Path) -> list[dict[str, tf.train.Feature]]:
    dataset = tf.data.TFRecordDataset(sorted(map(str, folder.glob("*.tfrecord"))))
    return [
        dict(tf.train.Example.FromString(item).features.feature)
        for item in dataset.as_numpy_iterator()
    ]


def read_all(dataset: tf.data.Dataset, count: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Join batches to uint8[N, 2, side, side, 3] and bool[N]."""
    batches = list(islice(dataset.as_numpy_iterator(), count))
    pairs = [np.stack(sides, axis=1) for sides, _ in batches]
    return np.concatenate(pairs), np.concatenate([genuine > 0 for _, genuine in batches])


def test_every_shard_is_a_block_of_the_sampler(index, built):
    wanted = expected(index)
    rows = records(built)
    for name, column in (("left_id", wanted.left), ("right_id", wanted.right)):
        assert [row[name].int64_list.value[0] for row in rows] == column.tolist()
    assert [row["genuine"].int64_list.value[0] for row in rows] == wanted.genuine.tolist()
    with Image.open(io.BytesIO(rows[0]["left"].bytes_list.value[0])) as jpeg:
        assert JpegImagePlugin.get_sampling(jpeg) == 0  # every pixel has a colour of its own
    paths = sorted(map(str, built.glob("*.tfrecord")))
    counts = [sum(1 for _ in tf.data.TFRecordDataset(path)) for path in paths]
    assert counts == [17, 18, 17, 18]


@pytest.mark.parametrize("batch_size", [7, 35])
@pytest.mark.parametrize("encoding", ["jpeg", "raw"])
def test_pixels_are_those_of_the_files_store(index, tmp_path, batch_size, encoding):
    files = make_dataset(
        FileStore(index, whole_plan(index, CROP_PX, FRAME_PX)),
        lambda: iter([expected(index)]),
        batch_size,
    )
    images, genuine = read_all(files)
    assert images.shape == (PAIRS, 2, CROP_PX, CROP_PX, 3)
    store = RecordStore.open(build(tmp_path / "c", index, encoding=encoding))
    assert store.manifest.encoding == encoding
    batches = store.batches(batch_size, None)
    got, labels = read_all(batches, PAIRS // batch_size)
    assert got.dtype == np.uint8
    distance = np.abs(got.astype(int) - images)
    assert (distance.max() == 0) if encoding == "raw" else (0 < distance.mean() <= 2)
    assert np.array_equal(labels, genuine)


def keys(dataset: tf.data.Dataset, count: int) -> list[bytes]:
    images, genuine = read_all(dataset, count)
    return [pair.tobytes() + label.tobytes() for pair, label in zip(images, genuine, strict=True)]


def test_shuffling_is_a_function_of_seed_and_pass(built):
    store = RecordStore.open(built)
    steps = PAIRS // 7
    tf.random.set_seed(1)
    run = keys(store.batches(7, 5), 2 * steps)
    tf.random.set_seed(2)
    assert run == keys(store.batches(7, 5), 2 * steps)
    one_pass, next_pass = run[:PAIRS], run[PAIRS:]
    assert one_pass != next_pass
    assert run != keys(store.batches(7, 6), 2 * steps)
    in_order = keys(store.batches(7, None), steps)
    assert sorted(one_pass) == sorted(next_pass) == sorted(in_order)
    assert one_pass != in_order
    order = [in_order.index(key) for key in run]
    assert order[:6] == [64, 37, 3, 17, 44, 6]  # golden: a seed means the same everywhere
    assert order[PAIRS:][3:6] == [7, 5, 63]


@pytest.mark.parametrize(
    ("seed", "starts"),
    [
        (None, (1, 8, 11, 16)),  # a pass has 8 steps
        (5, (1, 8, 11, 16)),
        (2**31 - 2, (11,)),
        (2**31 - 1, (11,)),
    ],
)
def test_resuming_at_any_step_yields_the_same_batches(built, seed, starts):
    store = RecordStore.open(built)
    steps = PAIRS // 8
    whole = keys(store.batches(8, seed), 2 * steps + 3)
    assert steps == 8
    for start in starts:
        rest = keys(store.batches(8, seed, start=start), 2 * steps + 3 - start)
        assert rest == whole[8 * start :]


@pytest.mark.parametrize("seed", [None, 5])
def test_the_workers_share_all_batches(built, seed):
    store, count = RecordStore.open(built), 2 * (PAIRS // 10 + 2)  # into the second pass
    images, genuine = read_all(store.batches(5, seed, start=2), count)
    of_batches = images.reshape(count, 5, *images.shape[1:])
    for worker in range(2):
        own, labels = read_all(store.batches(5, seed, 2, (2, worker)), count // 2)
        assert np.array_equal(own, np.concatenate(of_batches[worker::2]))
        assert np.array_equal(labels, genuine.reshape(count, 5)[worker::2].reshape(-1))


def test_every_batch_has_its_size(built):
    store = RecordStore.open(built)
    batches = islice(store.batches(32, None).as_numpy_iterator(), 5)
    assert [len(genuine) for _, genuine in batches] == [32] * 5
    store.batches(PAIRS, None)  # the largest
    with pytest.raises(BadConfig, match="71"):
        store.batches(71, None)


def test_the_same_arguments_give_the_same_bytes(index, built, tmp_path):
    again = build(tmp_path / "again", index)
    for path in built.iterdir():
        assert (again / path.name).read_bytes() == path.read_bytes()


def test_the_manifest_describes_the_pairs(index, built):
    table = json.loads((built / MANIFEST).read_text())
    assert (table["version"], table["pairs"]) == (5, PAIRS)
    assert (table["seed"], table["encoding"]) == (SEED, "jpeg")
    assert (table["frame_px"], table["crop_px"]) == (FRAME_PX, CROP_PX)
    assert (table["alignment"], table["detector"]) == ("lfw-frame", "")
    assert table["index_fingerprint"] == index.fingerprint
    assert table["people_digest"] == people_digest(index, range(1, len(index.people)))
    assert [shard["pairs"] for shard in table["shards"]] == [17, 18, 17, 18]


def test_default_shards_and_progress(index, tmp_path):
    shards = {1: 1, 1_999: 1, 2_000: 2, 16_000: 16, 139_263: 16, 139_264: 17, 10**9: 99_999}
    assert {pairs: shard_count(pairs) for pairs in shards} == shards
    calls: list[tuple[object, ...]] = []
    with showing(progress=lambda phase: lambda *counts: calls.append((phase, *counts))):
        build(tmp_path / "c", index, pairs=35)
    assert RecordStore.open(tmp_path / "c").pairs == 35
    assert len(list((tmp_path / "c").glob("*-of-00002.tfrecord"))) == 2
    assert calls[-2:] == [("writing pairs", 17, 35), ("writing pairs", 35, 35)]


@settings(max_examples=60, deadline=None)
@given(
    st.binary(max_size=80)
    | st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["format", "version", "shards", "pairs"]), inner)
        ),
    ).map(lambda value: json.dumps(value).encode())
)
def test_an_invalid_manifest_raises_bad_data(built, tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp() / "nonsense"
    folder.mkdir(exist_ok=True)
    (folder / MANIFEST).write_bytes(data)
    with pytest.raises(BadData, match=MANIFEST):
        read_manifest(folder)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"version": 1}, "version is 1"),
        ({"format": "other"}, MANIFEST),
        ({"shards": None}, "shards is None"),
        ({"encoding": "png"}, "encoding is 'png'"),
        ({"pairs": "70"}, "pairs is '70'"),
        ({"shards": [{"name": "../x", "pairs": 70, "bytes": 1}]}, MANIFEST),
        ({"shards": [{"name": "x"}]}, r"shards\[0\]: "),
    ],
)
def test_what_is_wrong_with_a_manifest_is_named(cache, change, named):
    table = json.loads((cache / MANIFEST).read_text())
    (cache / MANIFEST).write_text(json.dumps(table | change))
    with pytest.raises(BadData, match=named):
        RecordStore.open(cache)


def boundaries(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        yield at
        at += 16 + int.from_bytes(data[at : at + 8], "little")


@pytest.mark.parametrize("seed", [None, 1])
def test_a_pass_of_another_length_raises(cache, seed):
    store = RecordStore.open(cache)
    path = cache / SHARD
    data = path.read_bytes()
    *_, last = boundaries(data)
    path.write_bytes(data[:last])
    with pytest.raises(tf.errors.FailedPreconditionError, match="70"):
        read_all(store.batches(8, seed), 20)
    path.write_bytes(data + data[last:])
    with pytest.raises(tf.errors.FailedPreconditionError, match="70"):
        read_all(store.batches(8, seed), 20)


def test_a_damaged_shard_is_found(cache):
    store, path = RecordStore.open(cache), cache / SHARD
    calls: list[tuple[object, ...]] = []
    with showing(progress=lambda phase: lambda *counts: calls.append((phase, *counts))):
        assert store.find_damage() is None
    done = np.cumsum([shard.pairs for shard in store.manifest.shards]).tolist()
    assert calls == [("checking the cache", read, store.pairs) for read in done]
    data = path.read_bytes()
    *_, last = boundaries(data)
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 1
    for changed in (flipped, data[:last], data[:-1], data + data[last:]):
        path.write_bytes(changed)
        assert store.find_damage() == path
    path.unlink()
    assert store.find_damage() == path


def test_missing_and_irregular_files_are_found(cache):
    (cache / SHARD).unlink()
    with pytest.raises(BadData, match=SHARD):
        RecordStore.open(cache)
    (cache / SHARD).mkdir()
    with pytest.raises(BadData, match=SHARD):
        RecordStore.open(cache)


def test_a_cache_of_other_pairs_is_refused_with_the_differences(index, built):
    store = RecordStore.open(built)
    fits = {
        "index_fingerprint": index.fingerprint,
        "people_digest": people_digest(index, range(1, len(index.people))),
        "seed": SEED,
        "frame_px": FRAME_PX,
        "crop_px": CROP_PX,
        "alignment": "lfw-frame",
        "detector": "",
    }
    store.check_matches(**fits)
    for change, named in (
        ({"index_fingerprint": "0" * 64}, "folder of faces"),
        ({"people_digest": people_digest(index, range(3))}, "other people"),
        ({"seed": 4, "frame_px": 41}, "seed is 3, not 4; frame_px is 40, not 41"),
        ({"crop_px": 25}, "crop_px is 24, not 25"),
        ({"alignment": "landmarks-5"}, "alignment is lfw-frame, not landmarks-5"),
        ({"detector": "eyes-2"}, "another detector"),
    ):
        with pytest.raises(BadData, match=named):
            store.check_matches(**{**fits, **change})
