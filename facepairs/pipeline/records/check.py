"""Compare a TFRecord pair cache with its manifest (no TensorFlow here)."""

import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
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


def file_sizes(folder: Path) -> dict[str, int | None]:
    """Return the sizes of a folder's files by name, None for what is no regular file.

    Raises:
        BadData: The folder cannot be read.
    """
    try:
        return {entry.name: _size(entry) for entry in os.scandir(folder)}
    except OSError as error:
        raise BadData(f"{folder}: {error.strerror}; {REBUILD}") from None


def _size(entry: os.DirEntry[str]) -> int | None:
    try:
        status = entry.stat()
    except OSError:  # a link to nothing
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


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
    sizes = file_sizes(folder) if folder.is_dir() else {}
    return check_files(
        folder, sizes, partial(read_manifest, folder), lambda path: path.open("rb"), progress
    )


def check_files(
    folder: Any,
    sizes: Mapping[str, int | None],
    read: Callable[[], CacheManifest],
    open_file: Callable[[Any], AbstractContextManager[Any]],
    progress: ProgressCallback = ignore_progress,
) -> list[str]:
    """Check the files of a cache on any storage; as `check_cache`.

    Args:
        folder: The cache, a `Path` or what else `/` joins with a name.
        sizes: As for `compare_sizes`.
        read: Reads the manifest; raises BadData if it cannot be used.
        open_file: Opens a file of the cache for reading bytes.
        progress: Called with bytes read and in all.
    """
    try:
        manifest = read()
    except BadData as error:
        if any(SHARD_NAME.fullmatch(name) for name in sizes):
            return [str(error)]
        raise BadData(
            f"{folder}: not a pair cache; give one that facepairs cache build made"
        ) from None
    problems, done = compare_sizes(sizes, manifest), 0
    for shard in manifest.shards:
        if shard.name not in problems:
            try:
                with open_file(folder / shard.name) as handle:
                    digest = hashlib.file_digest(handle, "sha256").hexdigest()
                if digest != shard.sha256:
                    problems[shard.name] = f"damaged: its SHA-256 is not the one in {MANIFEST}"
            except OSError as error:
                problems[shard.name] = f"cannot be read ({error.strerror})"
        done += shard.bytes
        progress(done, manifest.total_bytes)
    return [f"{folder / name}: {problem}" for name, problem in sorted(problems.items())]
