"""Build the TFRecord cache of sampled pairs; it appears whole or not at all.

A pair takes the space of two crops, so the cache pays where photos are slow to open or to decode;
the stores `files` and `memory` need no such space. The content of each shard is planned here; its
bytes do not depend on what writes it, a thread here or another machine.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.choices import Encoding
from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.data.sampler import PairSampler
from facepairs.errors import BadConfig, BadData
from facepairs.photos.crop import CropPlan
from facepairs.photos.photo import read_below
from facepairs.pipeline.decode import Cropper
from facepairs.pipeline.records.manifest import (
    MANIFEST,
    MAX_SHARDS,
    REBUILD,
    CacheManifest,
    RecordShard,
    read_manifest,
    shard_name,
)
from facepairs.support import console
from facepairs.support.atomic import atomic_folder
from facepairs.support.parallel import thread_map
from facepairs.support.places import check_output_folder

SMALL_SHARD_PAIRS, SMALL_CACHE_SHARDS, SHARD_PAIRS = 1000, 16, 8192
JPEG_QUALITY = 95
KEPT_CROPS = 1024  # encoded, while a shard is written: people with few photos come again
ReadPhoto = Callable[[str], bytes]


@dataclass(frozen=True)
class ShardPlan:
    """The content of a shard that is to be written; it can be pickled.

    Attributes:
        name: File name of the shard.
        encoding: How crops are stored.
        root: Names the folder of faces in messages.
        pairs: The pairs, by image numbers of the index.
        images: int32[M], the image numbers in `pairs`, sorted and distinct.
        names: The images' paths below the folder of faces, M of them.
        crops: How these M images are cropped.
    """

    name: str
    encoding: Encoding
    root: Path
    pairs: PairList
    images: npt.NDArray[np.int32]
    names: list[str]
    crops: CropPlan


@dataclass(frozen=True)
class CachePlan:
    """The content of a cache: everything in it is a function of these fields.

    Attributes:
        index: The images.
        crops: How they are cropped.
        sampler: Every shard is a block of its epoch 0.
        pairs: How many pairs there are in all.
        encoding: `jpeg` stores the crops as JPEGs, with a small loss; `raw` stores their pixels,
            which take five to six times the space and need no decoding.
    """

    index: FaceIndex
    crops: CropPlan
    sampler: PairSampler
    pairs: int
    encoding: Encoding = "jpeg"

    def shard_plans(self) -> Iterator[ShardPlan]:
        """Plan the shards: each is a block of the sampler's epoch 0."""
        index, count = self.index, shard_count(self.pairs)
        for number in range(count):
            size = (number + 1) * self.pairs // count - number * self.pairs // count
            pairs = self.sampler.block(0, number, size)
            images = pairs.images()
            yield ShardPlan(
                name=shard_name(number, count),
                encoding=self.encoding,
                root=index.root,
                pairs=pairs,
                images=images,
                names=list(map(index.name, images.tolist())),
                crops=self.crops.take(images),
            )

    def collect(self, written: Iterable[RecordShard]) -> CacheManifest:
        """Return the manifest of a cache whose shards are written while they are collected."""
        shards, done, progress = [], 0, console.progress("writing pairs")
        for shard in written:
            shards.append(shard)
            done += shard.pairs
            progress(done, self.pairs)
        return CacheManifest(
            encoding=self.encoding,
            frame_px=self.crops.spec.frame_px,
            crop_px=self.crops.spec.crop_px,
            alignment=self.crops.alignment,
            detector=self.crops.detector,
            index_fingerprint=self.index.fingerprint,
            people_digest=people_digest(self.index, self.sampler.people),
            seed=self.sampler.seed,
            pairs=self.pairs,
            shards=tuple(shards),
        )


def build_cache(out: Path, plan: CachePlan) -> CacheManifest:
    """Write a cache of sampled pairs; the same plan gives the same bytes.

    Args:
        out: Folder to write; replaces a cache, but nothing else.
        plan: What to write.

    Returns:
        The cache's manifest.

    Raises:
        BadConfig: The number of pairs is out of range.
        BadData: `out` is not a cache, a file has changed, or the disk is full.
        BadImage: An image cannot be decoded.
    """
    check_request(out, plan.index.root, plan.pairs)
    read = partial(read_below, plan.index.root)
    with atomic_folder(out) as folder:
        shards = thread_map(lambda shard: write_shard(shard, read, folder), plan.shard_plans())
        manifest = plan.collect(shards)
        (folder / MANIFEST).write_bytes(manifest.render())
    return manifest


def check_request(out: Path, photos: Path, pairs: int) -> None:
    """Check what can be checked before an image is read.

    Args:
        out: The folder of the cache.
        photos: The folder of faces.
        pairs: As in `CachePlan`.

    Raises:
        BadConfig: `pairs` is empty.
        BadData: `out` holds something else than a cache, cannot be read, or is inside of `photos`.
    """
    check_count(pairs)
    check_output_folder(
        out, "a pair cache", lambda old: {MANIFEST} | read_manifest(old).shard_names, photos
    )


def check_count(pairs: int) -> None:
    """Raise BadConfig unless there is a pair to write."""
    if pairs < 1:
        raise BadConfig(f"the number of pairs is {pairs}; use 1 or more")


def shard_count(pairs: int) -> int:
    """Return the number of files for a number of pairs.

    Small caches have one per 1,000 pairs, at most 16; large ones have one per 8,192 pairs.
    """
    small = min(SMALL_CACHE_SHARDS, max(1, pairs // SMALL_SHARD_PAIRS))
    return min(max(small, pairs // SHARD_PAIRS), MAX_SHARDS)


def write_shard(plan: ShardPlan, read: ReadPhoto, folder: Path) -> RecordShard:
    """Write a shard to a file of a folder; the same plan gives the same bytes.

    Args:
        plan: The shard.
        read: Returns the content of a photo by its path below the folder of faces.
        folder: Where the file goes.

    Raises:
        BadData: A photo cannot be read, or the file cannot be written.
        BadImage: A photo cannot be decoded.
    """
    path, pairs = folder / plan.name, plan.pairs
    crop = lru_cache(KEPT_CROPS)(partial(_crop, plan, Cropper(plan.crops), read))
    rows = (np.searchsorted(plan.images, side).tolist() for side in (pairs.left, pairs.right))
    try:
        with tf.io.TFRecordWriter(str(path)) as writer:
            for left, right, genuine in zip(*rows, pairs.genuine.tolist(), strict=True):
                feature = {"genuine": _integer(genuine)}
                for side, row in (("left", left), ("right", right)):
                    feature[side] = _content(crop(row))
                    feature[f"{side}_id"] = _integer(plan.images[row])
                example = tf.train.Example(features=tf.train.Features(feature=feature))
                writer.write(example.SerializeToString(deterministic=True))
        return RecordShard(plan.name, len(plan.pairs), path.stat().st_size)
    except (tf.errors.OpError, OSError) as error:
        problem = error.strerror if isinstance(error, OSError) else error.message
        raise BadData(f"{path}: {problem}; choose another place or free space") from None


def _crop(plan: ShardPlan, cropper: Cropper, read: ReadPhoto, row: int) -> bytes:
    """Return the encoded crop of a photo."""
    path = plan.root / plan.names[row]
    try:
        data = read(plan.names[row])
    except OSError as error:
        raise BadData(f"{path}: {error.strerror}; {REBUILD}") from None
    crop = cropper.crop(data, row, str(path))
    if plan.encoding == "raw":
        return crop.tobytes()
    with tf.device("/CPU:0"):
        jpeg = tf.io.encode_jpeg(crop, quality=JPEG_QUALITY, chroma_downsampling=False)
        return bytes(jpeg.numpy())


def _content(value: bytes) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def _integer(value: int) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[int(value)]))


def people_digest(index: FaceIndex, people: npt.ArrayLike) -> str:
    """Return the SHA-256 (hex) over the names of some people, in the order of the index."""
    digest = hashlib.sha256(b"facepairs-people-1\0")
    for person in np.unique(np.asarray(people, np.int64)):
        digest.update(os.fsencode(index.people[int(person)]) + b"\0")
    return digest.hexdigest()
