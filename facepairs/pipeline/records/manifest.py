"""The manifest of a TFRecord pair cache, and what is wrong with a cache; no TensorFlow here.

    OUT/
      manifest.json                   which pairs they are; count, size and SHA-256 of every shard
      pairs-00000-of-00016.tfrecord   a contiguous part of the sampled sequence
      …

The manifest carries a SHA-256 of its own fields and has one spelling only, so any changed byte of
it shows.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from facepairs.beam.places import Place, Uri, copy_from, files_below
from facepairs.errors import BadData
from facepairs.support.atomic import scratch_folder

FORMAT = "facepairs-pair-cache"
VERSION = 1
MANIFEST = "manifest.json"
DIGEST = "manifest_sha256"
SHARD_NAME = re.compile(r"pairs-\d{5}-of-\d{5}\.tfrecord")
MAX_SHARDS = 99_999
MAX_MANIFEST_BYTES = 64 << 20
FRAME_BYTES = 16  # of a TFRecord: length (8), its CRC (4), …, the data's CRC (4)

MISSING, NO_FILE = "missing", "not a file"

Tick = Callable[[int, int], None]


def shard_name(number: int, count: int) -> str:
    """Give the file name of shard `number`, from 0, of `count`."""
    return f"pairs-{number:05d}-of-{count:05d}.tfrecord"


@dataclass(frozen=True)
class RecordShard:
    """One file of a cache: its name, pairs, size in bytes and SHA-256 (hex)."""

    name: str
    pairs: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class CacheManifest:
    """What a cache holds: epoch 0 of the sampler that these fields name, cut into shards."""

    encoding: str  # jpeg: the files' own bytes; raw: uint8 crops
    frame_px: int
    crop_px: int
    index_fingerprint: str  # of the folder of faces that the images came from
    people_digest: str  # of the people that pairs were drawn from
    seed: int
    genuine_share: float
    pairs: int
    shards: tuple[RecordShard, ...]

    @property
    def total_bytes(self) -> int:
        """The size of all shards."""
        return sum(shard.bytes for shard in self.shards)

    def to_json(self) -> dict[str, Any]:
        """Give plain values, with the digest over all others."""
        plain = {"format": FORMAT, "version": VERSION, **asdict(self)}
        plain["shards"] = [asdict(shard) for shard in self.shards]
        return {**plain, DIGEST: hashlib.sha256(json.dumps(plain).encode()).hexdigest()}

    def render(self) -> bytes:
        """Give the file's content, the same bytes for the same values."""
        return (json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n").encode()


def read_manifest(folder: Place) -> CacheManifest:
    """Read and check a cache's manifest; raises BadData where it is missing or damaged."""
    path = folder / MANIFEST
    if isinstance(folder, Path) and not folder.is_dir():
        raise BadData(f"{folder}: no such folder; make a cache with: facepairs cache build")
    try:
        if isinstance(path, Path):
            status = path.stat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_MANIFEST_BYTES:
                raise BadData(f"{path}: not a pair cache's manifest; build the cache anew")
        data = path.read_bytes()
    except OSError as error:
        raise BadData(
            f"{path}: {error.strerror}; give the folder that facepairs cache build made"
        ) from None
    try:
        manifest = _parsed(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise BadData(f"{path}: {error}; build the cache anew") from None
    if manifest.render() != data:
        raise BadData(f"{path}: damaged (its own SHA-256 does not fit); build the cache anew")
    return manifest


def _parsed(table: Any) -> CacheManifest:
    """Build from what JSON held; raise ValueError for anything but a manifest of this version."""
    if not isinstance(table, dict) or table.get("format") != FORMAT:
        raise ValueError("not a pair cache's manifest")
    if table.get("version") != VERSION:
        raise ValueError(f"its version is {table.get('version')!r}; this facepairs reads {VERSION}")
    listed = table.get("shards")
    if not isinstance(listed, list):
        raise ValueError("it lists no shards")
    values = {name: value for name, value in table.items() if name in _TYPES[CacheManifest]}
    shards = tuple(_typed(RecordShard, entry) for entry in listed)
    manifest: CacheManifest = _typed(CacheManifest, {**values, "shards": shards})
    names = [shard_name(number, len(shards)) for number in range(len(shards))]
    if [shard.name for shard in shards] != names:
        raise ValueError("the shards it lists are not numbered in order")
    if sum(shard.pairs for shard in shards) != manifest.pairs:
        raise ValueError("its numbers contradict each other")
    return manifest


_TYPES = {
    kind: {field.name: field.type for field in fields(kind)} for kind in (RecordShard, CacheManifest)
}


def _typed(kind: Any, values: Any) -> Any:
    types = _TYPES[kind]
    if not isinstance(values, dict) or set(values) != set(types):
        raise ValueError(f"it must have {', '.join(types)}")
    for name, value in values.items():
        if types[name] in (int, float, str) and type(value) is not types[name]:
            raise ValueError(f"{name} is {value!r}")
    return kind(**values)


def misplaced(folder: Place, manifest: CacheManifest) -> dict[str, str]:
    """Say what names and sizes alone give away: file name → problem, nothing is read."""
    try:
        found = _sizes(folder)
    except OSError as error:
        raise BadData(f"{folder}: {error.strerror}; build the cache anew") from None
    problems: dict[str, str] = {}
    for shard in manifest.shards:
        if shard.name not in found:
            problems[shard.name] = MISSING
            continue
        size = found.pop(shard.name)
        if size is None:
            problems[shard.name] = NO_FILE
        elif size != shard.bytes:
            problems[shard.name] = f"{size:,} bytes, not {shard.bytes:,}"
    for name in sorted(found):
        if name != MANIFEST and not name.startswith("."):
            problems[name] = f"not listed in {MANIFEST}"
    return problems


def _sizes(folder: Place) -> dict[str, int | None]:
    """Give the size of each file of a folder by name, None for what is no file."""
    if isinstance(folder, Uri):
        return {entry.name: entry.size for entry in files_below(folder)}
    found = {entry.name: entry.stat() for entry in os.scandir(folder)}
    return {
        name: status.st_size if stat.S_ISREG(status.st_mode) else None
        for name, status in found.items()
    }


def check_cache(folder: Place, progress: Tick | None = None) -> list[str]:
    """Read a whole cache and name every problem, one line each; no line means that all is well.

    `progress(done, total)` counts bytes. Raises BadData when there is no such folder.
    """
    if isinstance(folder, Path) and not folder.is_dir():
        raise BadData(f"{folder}: no such folder; give the one that facepairs cache build made")
    try:
        manifest = read_manifest(folder)
        problems = misplaced(folder, manifest)
    except BadData as error:
        return [str(error)]
    done = 0
    for shard in manifest.shards:
        if problems.get(shard.name) not in (MISSING, NO_FILE):  # a pipe would wait for ever
            problems[shard.name] = _content_problem(folder / shard.name, shard)
        done += shard.bytes
        if progress:
            progress(done, manifest.total_bytes)
    return [f"{folder / name}: {text}" for name, text in sorted(problems.items()) if text]


def _content_problem(path: Place, shard: RecordShard) -> str:
    if isinstance(path, Uri):
        with scratch_folder("facepairs-shard") as local:
            try:
                copy_from(path, local / shard.name)
            except OSError as error:
                return f"cannot be read ({error.strerror})"
            return _content_problem(local / shard.name, shard)
    try:
        records, size = count_records(path), path.stat().st_size
        with open(path, "rb") as handle:
            digest = hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if size != shard.bytes:
        return (
            f"{size:,} bytes with {records:,} whole records, not {shard.bytes:,} bytes with "
            f"{shard.pairs:,}"
        )
    if digest != shard.sha256:
        return f"its content is not what {MANIFEST} promises (SHA-256)"
    return "" if records == shard.pairs else f"{records:,} records, not {shard.pairs:,}"


def count_records(path: Path) -> int:
    """Count a TFRecord file's whole records by their lengths alone."""
    count = at = 0
    size = path.stat().st_size
    with open(path, "rb") as handle:
        while at + FRAME_BYTES <= size:
            handle.seek(at)
            at += FRAME_BYTES + int.from_bytes(handle.read(8), "little")
            count += at <= size
    return count
