"""The manifest of a TFRecord pair cache, and what differs from it (no TensorFlow here).

    OUT/
      manifest.json                   which pairs; count and size of every shard
      pairs-00000-of-00016.tfrecord   a block of the sampler
      …

Records carry checksums, which TensorFlow compares.
"""

import json
import stat
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from facepairs.choices import Encoding
from facepairs.errors import BadData
from facepairs.support.validation import validate

FORMAT: Final = "facepairs-pair-cache"
VERSION: Final = 5
MANIFEST = "manifest.json"
MAX_SHARDS = 99_999
MAX_MANIFEST_BYTES = 64_000_000
REBUILD = "build the cache again"

Count = Annotated[int, Meta(ge=0)]
Version = Annotated[
    Literal[5], Meta(description=f"{VERSION}, the version that this facepairs reads")
]


def shard_name(number: int, count: int) -> str:
    """Return the file name of shard `number`, from 0, of `count`."""
    return f"pairs-{number:05d}-of-{count:05d}.tfrecord"


class RecordShard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of a cache: its name, number of pairs and size in bytes."""

    name: str
    pairs: Count
    bytes: Annotated[int, Meta(ge=1)]


class CacheManifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Contents of a cache: each shard is a block of epoch 0 of the sampler with these settings.

    Attributes:
        encoding: How crops are stored: `jpeg`, or `raw` for their pixels.
        frame_px: Side of the frame to which `crop_px` refers.
        crop_px: Side of the crops.
        alignment: Name of the alignment of the crops.
        detector: What found the faces; "" unaligned.
        index_fingerprint: Fingerprint of the index of the images.
        people_digest: SHA-256 over the names of the people in the pairs.
        seed: The sampler's seed.
        pairs: Number of pairs in all shards.
        shards: The files, in order.
    """

    format: Literal["facepairs-pair-cache"] = FORMAT
    version: Version = VERSION
    encoding: Encoding
    frame_px: Count
    crop_px: Count
    alignment: str
    detector: str = ""
    index_fingerprint: str
    people_digest: str
    seed: Count
    pairs: Count
    shards: tuple[RecordShard, ...]

    @property
    def total_bytes(self) -> int:
        """Size of all shards."""
        return sum(shard.bytes for shard in self.shards)

    @property
    def shard_names(self) -> set[str]:
        """File names of all shards."""
        return {shard.name for shard in self.shards}

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return dict(msgspec.to_builtins(self))

    def render(self) -> bytes:
        """Return the content of the manifest's file."""
        return (json.dumps(self.to_json(), indent=1) + "\n").encode()


def read_manifest(folder: Path) -> CacheManifest:
    """Read and check the manifest of a cache.

    Raises:
        BadData: It is missing, damaged or of another version.
    """
    path = folder / MANIFEST
    if not folder.is_dir():
        raise BadData(f"{folder}: no such folder; build a cache with: facepairs cache build")
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_MANIFEST_BYTES:
            raise BadData(f"{path}: not a pair cache's manifest; {REBUILD}")
        values = json.loads(path.read_bytes())
    except OSError as error:
        raise BadData(
            f"{path}: {error.strerror}; give the folder that facepairs cache build made"
        ) from None
    except (ValueError, RecursionError) as error:
        raise BadData(f"{path}: {error}; {REBUILD}") from None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise BadData(f"{path}: not a pair cache's manifest; {REBUILD}")
    manifest = validate(values, CacheManifest, str(path), BadData, REBUILD)
    names = [shard_name(number, len(manifest.shards)) for number in range(len(manifest.shards))]
    if [shard.name for shard in manifest.shards] != names:
        raise BadData(f"{path}: damaged (its shards are not numbered in order); {REBUILD}")
    return manifest


def check_sizes(folder: Path, manifest: CacheManifest) -> None:
    """Check that a folder has the files that the manifest lists, with their sizes.

    Raises:
        BadData: A file is missing or of another size.
    """
    for shard in manifest.shards:
        path = folder / shard.name
        size = path.stat().st_size if path.is_file() else 0
        if size != shard.bytes:
            raise BadData(f"{path}: has {size:,} bytes, not {shard.bytes:,}; {REBUILD}")
