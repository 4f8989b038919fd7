"""Build the TFRecord cache of sampled pairs; it appears whole or not at all.

A pair takes the space of two images, so the cache only pays where opening files one by one is slow;
the stores `files` and `memory` need no such space. The content of each shard is planned here. Its
bytes do not depend on what writes it: a thread or another machine.
"""

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.data.index import FaceIndex, ReadFile, StringTable
from facepairs.data.pairs import PairList
from facepairs.data.sampler import PairSampler
from facepairs.errors import BadConfig, BadData
from facepairs.images.crop_plan import CropPlan
from facepairs.pipeline.records.manifest import (
    MANIFEST,
    MAX_SHARDS,
    SHARD_NAME,
    CacheManifest,
    read_manifest,
    shard_name,
)
from facepairs.pipeline.records.shard import ShardPlan, ShardWriter, crop_bytes
from facepairs.support.atomic import atomic_folder, is_temporary
from facepairs.support.parallel import OrderedMap, thread_map
from facepairs.support.places import check_output_folder
from facepairs.support.progress import ProgressCallback, ignore_progress

ENCODINGS = ("jpeg", "raw")
BLOCK_PAIRS = 1024  # pairs per block of the sampler
# Small caches have a shard per 1,000 pairs, at most 16; large ones a shard per 8,192 pairs.
SMALL_SHARD_PAIRS, SMALL_CACHE_SHARDS, SHARD_PAIRS = 1000, 16, 8192
RECORD_BYTES = 250  # of a record, without its images


def people_digest(index: FaceIndex, people: npt.ArrayLike) -> str:
    """Return the SHA-256 (hex) over the names of some people, in the order of the index."""
    digest = hashlib.sha256(b"facepairs-people-1\0")
    for person in np.unique(np.asarray(people, np.int64)):
        digest.update(os.fsencode(index.people[int(person)]) + b"\0")
    return digest.hexdigest()


def sample_pairs(sampler: PairSampler, start: int, stop: int) -> PairList:
    """Sample consecutive pairs of the sampler's epoch 0.

    Args:
        sampler: The sampler.
        start: Number of the first pair.
        stop: Number after the last pair.
    """
    first = start // BLOCK_PAIRS
    blocks = [
        sampler.block(0, number, min(BLOCK_PAIRS, stop - number * BLOCK_PAIRS))
        for number in range(first, -(-stop // BLOCK_PAIRS))
    ]
    return PairList.join(blocks).where(slice(start - first * BLOCK_PAIRS, None))


def build_cache(
    out: Path,
    index: FaceIndex,
    plan: CropPlan,
    people: npt.ArrayLike,
    pairs: int,
    *,
    seed: int = 0,
    genuine_share: float = 0.5,
    encoding: str = "jpeg",
    shards: int | None = None,
    progress: ProgressCallback = ignore_progress,
    ordered_map: OrderedMap = thread_map,
    read_file: ReadFile | None = None,
) -> CacheManifest:
    """Write a cache of sampled pairs; the same arguments give the same bytes.

    Args:
        out: Folder to write; replaces a cache, but nothing else.
        index: The images.
        plan: How they are cropped.
        people: int[P], the person numbers from which pairs are sampled.
        pairs: How many pairs.
        seed: The sampler's seed.
        genuine_share: Share of genuine pairs.
        encoding: `jpeg` copies plain JPEG files (see `CropPlan`) that are smaller than their crop
            and stores the crops of all others; `raw` stores crops only.
        shards: How many files; by default one per 1,000 pairs up to 16, and one per 8,192 pairs in
            larger caches.
        progress: Called with pairs written and in all.
        ordered_map: Writes the shards; in threads by default.
        read_file: Reads an image by its name; by default from the file below `index.root`.

    Returns:
        The cache's manifest.

    Raises:
        BadConfig: A number is out of range.
        BadData: `out` is not a cache or has too little space, or a file has changed.
        BadImage: An image cannot be decoded.
        NotEnough: There are too few people or photos to sample from.
    """
    count = check_request(out, pairs, shards, encoding)
    sampler = PairSampler(index.first, people, seed, genuine_share)
    _check_space(out, index, plan, pairs, encoding)
    with atomic_folder(out) as folder:
        writer = ShardWriter(index.root, folder, encoding, read_file)
        manifest = write_shards(writer, index, plan, sampler, pairs, count, progress, ordered_map)
        for name in {entry.name for entry in folder.iterdir()} - manifest.shard_names:
            (folder / name).unlink()  # left by a worker whose attempt was abandoned
        (folder / MANIFEST).write_bytes(manifest.render())
    return manifest


def write_shards(
    writer: ShardWriter,
    index: FaceIndex,
    plan: CropPlan,
    sampler: PairSampler,
    pairs: int,
    count: int,
    progress: ProgressCallback = ignore_progress,
    ordered_map: OrderedMap = thread_map,
) -> CacheManifest:
    """Write all shards of a cache, but not its manifest.

    Args:
        writer: Writes a shard.
        index: The images.
        plan: How they are cropped.
        sampler: The first `pairs` pairs of its epoch 0 are written.
        pairs: How many pairs.
        count: How many shards.
        progress: Called with pairs written and in all.
        ordered_map: Applies `writer` to the plans of the shards; in threads by default.

    Returns:
        The manifest to write beside the shards.

    Raises:
        BadData: As `ShardWriter` does.
        BadImage: As `ShardWriter` does.
    """
    shards, done = [], 0
    for shard in ordered_map(writer, _plans(index, plan, sampler, pairs, count)):
        shards.append(shard)
        done += shard.pairs
        progress(done, pairs)
    return CacheManifest(
        encoding=writer.encoding,
        frame_px=plan.spec.frame_px,
        crop_px=plan.spec.crop_px,
        alignment=plan.alignment,
        detector=plan.detector,
        index_fingerprint=index.fingerprint,
        people_digest=people_digest(index, sampler.people),
        seed=sampler.seed,
        genuine_share=float(sampler.genuine_share),
        pairs=pairs,
        shards=tuple(shards),
    )


def _plans(
    index: FaceIndex, plan: CropPlan, sampler: PairSampler, pairs: int, count: int
) -> Iterator[ShardPlan]:
    """Plan the shards: each has a contiguous part of the sampled sequence."""
    bounds = [number * pairs // count for number in range(count + 1)]
    for number, (start, stop) in enumerate(pairwise(bounds)):
        sampled = sample_pairs(sampler, start, stop)
        images = sampled.images()
        names = StringTable(map(index.name, images.tolist()))
        name, sizes = shard_name(number, count), index.sizes[images]
        yield ShardPlan(name, sampled, images, names, sizes, plan.take(images))


def check_request(out: Path, pairs: int, shards: int | None, encoding: str) -> int:
    """Check what can be checked before an image is read.

    Args:
        out: The folder of the cache.
        pairs: How many pairs.
        shards: How many shards, None for the default.
        encoding: One of ENCODINGS.

    Returns:
        The number of shards.

    Raises:
        BadConfig: As `shard_count` does.
        BadData: `out` holds something else than a cache, or cannot be read.
    """
    count = shard_count(pairs, shards, encoding)
    check_output_folder(
        out, "a pair cache", lambda old: {MANIFEST} | read_manifest(old).shard_names
    )
    return count


def shard_count(pairs: int, shards: int | None, encoding: str) -> int:
    """Return the number of shards: `shards`, or a default that suits the number of pairs.

    Args:
        pairs: How many pairs, at least 1.
        shards: How many shards, at most one for each pair; None for the default.
        encoding: One of ENCODINGS.

    Raises:
        BadConfig: A number is out of range, or the encoding is unknown.
    """
    if pairs < 1:
        raise BadConfig(f"the number of pairs is {pairs}; use 1 or more")
    small = min(SMALL_CACHE_SHARDS, max(1, pairs // SMALL_SHARD_PAIRS))
    default = min(max(small, pairs // SHARD_PAIRS), MAX_SHARDS)
    count = default if shards is None else shards
    highest = min(pairs, MAX_SHARDS)
    if not 1 <= count <= highest:
        raise BadConfig(
            f"the number of shards (files) is {shards}; use 1 to {highest}, so that none is empty"
        )
    if encoding not in ENCODINGS:
        raise BadConfig(f"encoding is {encoding!r}; use one of {', '.join(ENCODINGS)}")
    return count


def check_replaceable(out: str, names: Iterable[str]) -> None:
    """Check that a folder with these file names is empty or a cache.

    Raises:
        BadData: It is neither.
    """
    names = {name for name in names if not is_temporary(name)}
    shards = {name for name in names if SHARD_NAME.fullmatch(name)}
    if names and (not shards or names - shards - {MANIFEST}):
        raise BadData(f"{out}: exists and is not a pair cache; choose another place or remove it")


def _check_space(out: Path, index: FaceIndex, plan: CropPlan, pairs: int, encoding: str) -> None:
    """Raise BadData if the disk has too little space."""
    stored = np.full(len(index), crop_bytes(plan.spec.crop_px))
    if encoding == "jpeg":
        stored[plan.plain] = np.minimum(index.sizes, stored)[plan.plain]
    image_bytes = float(stored.mean())
    needed = pairs * (2 * image_bytes + RECORD_BYTES)
    folder = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise BadData(
            f"{out}: {pairs:,} pairs take about {needed / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB "
            "are free there; choose another place or fewer pairs"
        )
