"""Builds the TFRecord cache of sampled pairs, whole or not at all.

A pair takes the space of two images, so the cache earns its disk where files are slow to open one
by one; the stores `files` and `memory` need none. What a shard holds is planned here; who writes
it, a thread or another machine, makes no difference to its bytes.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from facepairs.beam.places import Place, Uri, files_below, remove, writing
from facepairs.data.index import FaceIndex, StringTable
from facepairs.data.pairs import PairList
from facepairs.data.sampler import PairSampler
from facepairs.errors import BadConfig, BadData
from facepairs.pipeline.records.manifest import (
    MANIFEST,
    MAX_SHARDS,
    SHARD_NAME,
    CacheManifest,
    Tick,
    shard_name,
)
from facepairs.pipeline.records.shard import ShardPlan, ShardWriter
from facepairs.support.atomic import atomic_folder, is_temporary
from facepairs.support.parallel import Run, in_order

ENCODINGS = ("jpeg", "raw")
BLOCK_PAIRS = 1024  # the sampler's blocks
FEW_SHARDS, SHARD_PAIRS = 16, 8192  # a small cache's shards at most, a large one's pairs in each
EXAMPLE_BYTES = 130  # of a record beside its images


def people_digest(index: FaceIndex, people: npt.ArrayLike) -> str:
    """Give the SHA-256 (hex) over the names of these people, in the index's order."""
    digest = hashlib.sha256(b"facepairs-people-1\0")
    for person in np.unique(np.asarray(people, np.int64)):
        digest.update(os.fsencode(index.people[int(person)]) + b"\0")
    return digest.hexdigest()


def sampled(sampler: PairSampler, start: int, stop: int) -> PairList:
    """Give the pairs from `start` to before `stop` of the sampler's epoch 0, drawn in blocks."""
    first = start // BLOCK_PAIRS
    blocks = [
        sampler.block(0, number, min(BLOCK_PAIRS, stop - number * BLOCK_PAIRS))
        for number in range(first, -(-stop // BLOCK_PAIRS))
    ]
    columns = [
        np.concatenate([getattr(block, name) for block in blocks])[start - first * BLOCK_PAIRS :]
        for name in ("left", "right", "genuine")
    ]
    return PairList.of(*columns)


def build_cache(
    out: Place,
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
    run: Run = in_order,
) -> dict[str, Any]:
    """Write `pairs` sampled pairs of `people` to the folder `out`; give its manifest.

    `jpeg` copies the image files as they are, `raw` stores uint8[crop_px, crop_px, 3]. `shards`
    defaults to one a thousand pairs up to 16, and one every 8,192 pairs in larger caches.
    `progress(done, total)` counts pairs; `run` says where shards are written (default: in threads).
    The same arguments give the same bytes. Raises BadConfig for numbers that cannot be, BadData
    where `out` is taken or too small or a file has changed since it was indexed, BadImage for an
    image that TensorFlow cannot decode, NotEnough as PairSampler does.
    """
    count = check_request(out, pairs, shards, encoding)
    sampler = PairSampler(index.first, people, seed, genuine_share)
    _check_space(out, index, pairs, encoding, crop_px)
    written, done = [], 0
    with _whole_or_absent(out) as folder:
        work = ShardWriter(index.root, folder, encoding, frame_px, crop_px)
        for shard in run(work, _plans(index, sampler, pairs, count)):
            written.append(shard)
            done += shard.pairs
            if progress:
                progress(done, pairs)
        manifest = CacheManifest(
            encoding=encoding,
            frame_px=frame_px,
            crop_px=crop_px,
            index_fingerprint=index.fingerprint,
            people_digest=people_digest(index, sampler.people),
            seed=seed,
            genuine_share=float(genuine_share),
            pairs=pairs,
            shards=tuple(written),
        )
        _finish(folder, manifest)
    return manifest.to_json()


def _plans(index: FaceIndex, sampler: PairSampler, pairs: int, count: int) -> Iterator[ShardPlan]:
    """Plan `count` shards of a contiguous part of the sampled sequence each."""
    ends = [number * pairs // count for number in range(count + 1)]
    for number, (start, stop) in enumerate(pairwise(ends)):
        drawn = sampled(sampler, start, stop)
        images = drawn.images()
        names = StringTable(map(index.name, images.tolist()))
        yield ShardPlan(shard_name(number, count), drawn, images, names, index.sizes[images])


@contextmanager
def _whole_or_absent(out: Place) -> Iterator[Place]:
    """Yield the folder that shards go to; what fails leaves no cache behind."""
    if isinstance(out, Path):
        with atomic_folder(out) as folder:
            yield folder
        return
    try:
        remove(out / MANIFEST)  # without it there is no cache there, whatever else lies there
        yield out
    except BaseException as error:
        with suppress(OSError):
            remove(out)
        if isinstance(error, OSError):
            raise BadData(f"{out}: {error.strerror}; choose another place") from None
        raise


def _finish(folder: Place, manifest: CacheManifest) -> None:
    """Remove all but the shards, then write the manifest: with it the cache is there."""
    kept = {shard.name for shard in manifest.shards}
    for name in _names(folder) - kept:
        remove(folder / name)
    with writing(folder / MANIFEST) as handle:
        handle.write(manifest.render())


def _names(folder: Place) -> set[str]:
    if isinstance(folder, Path):
        return {entry.name for entry in folder.iterdir()}
    return {entry.name for entry in files_below(folder)}


def check_request(out: Place, pairs: int, shards: int | None, encoding: str) -> int:
    """Give the number of shards, or raise for what can be refused before an image is read.

    Raises BadConfig for numbers that cannot be, BadData where `out` is taken by anything but a
    cache.
    """
    if pairs < 1:
        raise BadConfig(f"pairs is {pairs}; use 1 or more")
    most = min(pairs, MAX_SHARDS)
    few = min(FEW_SHARDS, max(1, pairs // 1000))
    count = min(max(few, pairs // SHARD_PAIRS), MAX_SHARDS) if shards is None else shards
    if not 1 <= count <= most:
        raise BadConfig(f"shards is {shards}; use 1 to {most}, a pair or more in each")
    if encoding not in ENCODINGS:
        raise BadConfig(f"encoding is {encoding!r}; use one of {', '.join(ENCODINGS)}")
    _check_replaceable(out)
    return count


def _check_replaceable(out: Place) -> None:
    """Refuse to put a cache in the place of anything but nothing or a cache."""
    try:
        names = _names(out)
    except FileNotFoundError:
        return
    except OSError as error:
        raise BadData(f"{out}: {error.strerror}; choose another place") from None
    names = {name for name in names if not is_temporary(name)}  # a kill's, where no folder is
    shards = {name for name in names if SHARD_NAME.fullmatch(name)}
    if names and (not shards or names - shards - {MANIFEST}):
        raise BadData(f"{out}: exists and is no pair cache; choose another place or remove it")


def _check_space(out: Place, index: FaceIndex, pairs: int, encoding: str, crop_px: int) -> None:
    if isinstance(out, Uri):
        return
    image = float(index.sizes.mean()) if encoding == "jpeg" else 3 * crop_px**2
    needed = pairs * (2 * image + EXAMPLE_BYTES)
    place = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    free = shutil.disk_usage(place).free
    if needed > free:
        raise BadData(
            f"{out}: {pairs:,} pairs take about {needed / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB "
            "are free there; choose another place or fewer --pairs"
        )
