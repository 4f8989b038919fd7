"""Compare a TFRecord pair cache with its manifest (no TensorFlow here)."""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from facepairs.errors import BadData
from facepairs.pipeline.records.manifest import (
    MANIFEST,
    REBUILD,
    SHARD_NAME,
    CacheManifest,
    read_manifest,
)
from facepairs.support.progress import ProgressCallback, ignore_progress


def find_wrong_sizes(folder: Path, manifest: CacheManifest) -> dict[str, str]:
    """Find problems by names and sizes alone, without reading a shard.

    Returns:
        Problems by file name.

    Raises:
        BadData: The folder cannot be read.
    """
    try:
        statuses = {entry.name: entry.stat() for entry in os.scandir(folder)}
    except OSError as error:
        raise BadData(f"{folder}: {error.strerror}; {REBUILD}") from None
    sizes = {
        name: status.st_size if stat.S_ISREG(status.st_mode) else None
        for name, status in statuses.items()
    }
    return compare_sizes(sizes, manifest)


def compare_sizes(sizes: Mapping[str, int | None], manifest: CacheManifest) -> dict[str, str]:
    """Compare the files of a folder with those that the manifest lists.

    Args:
        sizes: Size in bytes of each file by name, None for what is no regular file.
        manifest: What the folder should hold.

    Returns:
        Problems by file name.
    """
    problems: dict[str, str] = {}
    for shard in manifest.shards:
        size = sizes.get(shard.name, -1)
        if size == -1:
            problems[shard.name] = "missing"
        elif size is None:
            problems[shard.name] = "not a file"
        elif size != shard.bytes:
            problems[shard.name] = f"{size:,} bytes, not {shard.bytes:,}"
    for name in sorted(sizes.keys() - manifest.shard_names):
        if name != MANIFEST and not name.startswith("."):
            problems[name] = f"not listed in {MANIFEST}"
    return problems


def check_cache(folder: Path, progress: ProgressCallback = ignore_progress) -> list[str]:
    """Read a whole cache and find every problem.

    Args:
        folder: The cache.
        progress: Called with bytes read and in all.

    Returns:
        One line per problem; empty for an intact cache.

    Raises:
        BadData: The folder is missing or no cache.
    """
    if not folder.exists():
        raise BadData(f"{folder}: no such folder; give the one that facepairs cache build made")
    try:
        manifest = read_manifest(folder)
        problems = find_wrong_sizes(folder, manifest)
    except BadData as error:
        names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
        check_is_cache(str(folder), names)
        return [str(error)]
    check_contents(manifest, problems, lambda name: (folder / name).open("rb"), progress)
    return [f"{folder / name}: {problem}" for name, problem in sorted(problems.items())]


def check_is_cache(folder: str, names: Iterable[str]) -> None:
    """Check that a folder whose manifest cannot be used holds shards at least.

    Raises:
        BadData: It holds none.
    """
    if not any(SHARD_NAME.fullmatch(name) for name in names):
        raise BadData(f"{folder}: not a pair cache; give one that facepairs cache build made")


def check_contents(
    manifest: CacheManifest,
    problems: dict[str, str],
    open_shard: Callable[[str], AbstractContextManager[Any]],
    progress: ProgressCallback = ignore_progress,
) -> None:
    """Read every shard of the right size, and record the problems.

    Args:
        manifest: What the cache should hold.
        problems: Problems by file name, as `compare_sizes` returns them; changed in place.
        open_shard: Opens a shard by its name for reading bytes.
        progress: Called with bytes read and in all.
    """
    done = 0
    for shard in manifest.shards:
        if shard.name not in problems:
            try:
                with open_shard(shard.name) as handle:
                    digest = hashlib.file_digest(handle, "sha256").hexdigest()
                if digest != shard.sha256:
                    problems[shard.name] = f"damaged: its SHA-256 is not the one in {MANIFEST}"
            except OSError as error:
                problems[shard.name] = f"cannot be read ({error.strerror})"
        done += shard.bytes
        progress(done, manifest.total_bytes)
