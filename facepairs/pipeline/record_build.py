"""Builds the TFRecord cache of sampled pairs, whole or not at all.

A pair takes the space of two images, so the cache earns its disk where files are slow to open one
by one; the stores `files` and `memory` need none.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.atomic import atomic_folder
from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.data.sampler import PairSampler
from facepairs.errors import BadConfig, BadData, BadImage
from facepairs.pipeline.dataset import Blocks, make_dataset
from facepairs.pipeline.decode import crop_decoder
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.record_check import (
    MANIFEST,
    MAX_SHARDS,
    SHARD_NAME,
    CacheManifest,
    Shard,
    Tick,
    shard_name,
)

ENCODINGS = ("jpeg", "raw")
BLOCK_PAIRS = 1024  # the sampler's blocks
DECODED_PAIRS = 64  # by one call; divides a block
EXAMPLE_BYTES = 130  # of a record beside its images


def people_digest(index: FaceIndex, people: npt.ArrayLike) -> str:
    """Give the SHA-256 (hex) over the names of these people, in the index's order."""
    digest = hashlib.sha256(b"facepairs-people-1\0")
    for person in np.unique(np.asarray(people, np.int64)):
        digest.update(os.fsencode(index.people[int(person)]) + b"\0")
    return digest.hexdigest()


def sampled(sampler: PairSampler, pairs: int) -> Iterator[PairList]:
    """Yield the first `pairs` pairs of the sampler's epoch 0, in blocks."""
    for number, start in enumerate(range(0, pairs, BLOCK_PAIRS)):
        yield sampler.block(0, number, min(BLOCK_PAIRS, pairs - start))


def build_cache(
    out: Path,
    index: FaceIndex,
    people: npt.ArrayLike,
    pairs: int,
    *,
    seed: int = 0,
    genuine_share: float = 0.5,
    encoding: str = "jpeg",
    shards: int | None = None,
    frame_px: int = 250,
    crop_px: int = 112,
    progress: Tick | None = None,
) -> dict[str, Any]:
    """Write `pairs` sampled pairs of `people` to the folder `out`; give its manifest.

    `jpeg` copies the image files as they are, `raw` stores uint8[crop_px, crop_px, 3]. `shards`
    defaults to one a thousand pairs, 16 at most. `progress(done, total)` counts pairs. The same
    arguments give the same bytes. Raises BadConfig for numbers that cannot be, BadData where
    `out` is taken or too small or a file has changed since it was indexed, BadImage for an image
    that TensorFlow cannot decode, NotEnough as PairSampler does.
    """
    count = check_request(out, pairs, shards, encoding)
    sampler = PairSampler(index.first, people, seed, genuine_share)
    _check_space(out, index, pairs, encoding, crop_px)

    def blocks() -> Iterator[PairList]:
        return sampled(sampler, pairs)

    if encoding == "jpeg":
        images = _files(index, blocks)
    else:
        images = _crops(index, blocks, frame_px, crop_px)
    examples = _counted(_examples(blocks, images), pairs, progress)
    with atomic_folder(out) as folder:
        ends = [number * pairs // count for number in range(count + 1)]
        written = tuple(
            _write_shard(folder / shard_name(number, count), examples, end - start)
            for number, (start, end) in enumerate(pairwise(ends))
        )
        manifest = CacheManifest(
            encoding=encoding,
            frame_px=frame_px,
            crop_px=crop_px,
            index_fingerprint=index.fingerprint,
            people_digest=people_digest(index, sampler.people),
            seed=seed,
            genuine_share=float(genuine_share),
            pairs=pairs,
            shards=written,
        )
        (folder / MANIFEST).write_bytes(manifest.render())
    return manifest.to_json()


def check_request(out: Path, pairs: int, shards: int | None, encoding: str) -> int:
    """Give the number of shards, or raise for what can be refused before an image is read.

    Raises BadConfig for numbers that cannot be, BadData where `out` is taken by anything but a
    cache.
    """
    if pairs < 1:
        raise BadConfig(f"pairs is {pairs}; use 1 or more")
    most = min(pairs, MAX_SHARDS)
    count = min(16, max(1, pairs // 1000)) if shards is None else shards
    if not 1 <= count <= most:
        raise BadConfig(f"shards is {shards}; use 1 to {most}, a pair or more in each")
    if encoding not in ENCODINGS:
        raise BadConfig(f"encoding is {encoding!r}; use one of {', '.join(ENCODINGS)}")
    _check_replaceable(out)
    return count


def _check_replaceable(out: Path) -> None:
    """Refuse to put a cache in the place of anything but nothing or a cache."""
    try:
        names = {entry.name for entry in out.iterdir()}
    except FileNotFoundError:
        return
    except OSError as error:
        raise BadData(f"{out}: {error.strerror}; choose another place") from None
    shards = {name for name in names if SHARD_NAME.fullmatch(name)}
    if names and (not shards or names - shards - {MANIFEST}):
        raise BadData(f"{out}: exists and is no pair cache; choose another place or remove it")


def _check_space(out: Path, index: FaceIndex, pairs: int, encoding: str, crop_px: int) -> None:
    image = float(index.sizes.mean()) if encoding == "jpeg" else 3 * crop_px**2
    needed = pairs * (2 * image + EXAMPLE_BYTES)
    place = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    free = shutil.disk_usage(place).free
    if needed > free:
        raise BadData(
            f"{out}: {pairs:,} pairs take about {needed / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB "
            "are free there; choose another place or fewer --pairs"
        )


def _files(index: FaceIndex, blocks: Blocks) -> Iterator[tuple[bytes, bytes]]:
    """Yield the bytes of each pair's left and right file."""
    for left, right in _pairs(blocks):
        yield _file(index, left), _file(index, right)


def _file(index: FaceIndex, image: int) -> bytes:
    path, size = index.path(image), int(index.sizes[image])
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadData(f"{path}: {error.strerror}; build the cache anew") from None
    if size not in (-1, len(data)):
        raise BadData(f"{path}: changed since the folder was read; build the cache anew")
    return data


def _pairs(blocks: Blocks) -> Iterator[tuple[int, int]]:
    for block in blocks():
        yield from zip(block.left.tolist(), block.right.tolist(), strict=True)


def _crops(
    index: FaceIndex, blocks: Blocks, frame_px: int, crop_px: int
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the raw pixels of each pair's left and right crop, just as training from files sees."""
    done = 0
    dataset = make_dataset(FileStore(index, frame_px, crop_px), blocks, DECODED_PAIRS)
    try:
        for batch in dataset.as_numpy_iterator():
            for left, right in zip(*np.split(batch["images"], 2), strict=True):
                yield left.tobytes(), right.tobytes()
            done += len(batch["genuine"])
    except tf.errors.OpError:
        decode = crop_decoder(frame_px, crop_px)
        for pair in islice(_pairs(blocks), done, done + DECODED_PAIRS):
            for image in pair:
                _try(decode, index.path(image))
        raise


def _try(decode: Callable[[tf.Tensor], tf.Tensor], path: Path) -> None:
    try:
        decode(tf.io.read_file(os.fsencode(path)))
    except tf.errors.OpError:
        raise BadImage(f"{path}: TensorFlow cannot decode it; mend or remove it") from None


def _examples(blocks: Blocks, images: Iterator[tuple[bytes, bytes]]) -> Iterator[bytes]:
    """Yield serialised records; the same values give the same bytes."""
    labels = (int(label) for block in blocks() for label in block.genuine)
    for (left_id, right_id), genuine, (left, right) in zip(
        _pairs(blocks), labels, images, strict=True
    ):
        feature = {
            "left": _bytes(left),
            "right": _bytes(right),
            "genuine": _integer(genuine),
            "left_id": _integer(left_id),
            "right_id": _integer(right_id),
        }
        example = tf.train.Example(features=tf.train.Features(feature=feature))
        yield example.SerializeToString(deterministic=True)


def _bytes(value: bytes) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def _integer(value: int) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def _counted(examples: Iterator[bytes], pairs: int, progress: Tick | None) -> Iterator[bytes]:
    for number, example in enumerate(examples, start=1):
        if progress and (number % 100 == 0 or number == pairs):
            progress(number, pairs)
        yield example


def _write_shard(path: Path, examples: Iterator[bytes], pairs: int) -> Shard:
    try:
        with tf.io.TFRecordWriter(str(path)) as writer:
            for example in islice(examples, pairs):
                writer.write(example)
    except tf.errors.OpError as error:
        raise BadData(f"{path}: {error.message}; choose another place or free space") from None
    with open(path, "rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    return Shard(path.name, pairs, path.stat().st_size, digest)
