"""`cache build` with the photos or the cache on any storage, or the work on Beam."""

import fnmatch
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from facepairs.beam.paths import BeamPath, Place, copy_to, files_below, parse_place, remove, writing
from facepairs.beam.remote_index import index_place, remote_errors, stand_in
from facepairs.beam.runner import choose_map
from facepairs.choices import Encoding
from facepairs.config import TrainConfig
from facepairs.errors import BadData
from facepairs.faces.face_cache import face_cache
from facepairs.faces.inspection import BATCH, InspectPhotos, collect
from facepairs.faces.photo_table import PhotoTable
from facepairs.images.photo import read_below
from facepairs.pipeline.records.build import (
    ReadPhoto,
    ShardPlan,
    check_request,
    shard_count,
    write_shard,
)
from facepairs.pipeline.records.manifest import MANIFEST, CacheManifest, RecordShard
from facepairs.support.atomic import atomic_folder, is_temporary, scratch_folder
from facepairs.support.lock import held, lock_beside
from facepairs.support.parallel import batches
from facepairs.support.progress import (
    MessageCallback,
    ProgressFactory,
    ignore_message,
    ignore_phases,
)
from facepairs.training.inputs.pair_cache import build_training_cache, cache_plan
from facepairs.training.inputs.people import choose_usable

SHARDS = "pairs-*-of-*.tfrecord"


@dataclass(frozen=True)
class UploadShard:
    """Writes a shard to a scratch folder of the worker and copies it to the cache.

    Attributes:
        read: Returns the content of a photo by its name.
        cache: The folder of the cache.
    """

    read: ReadPhoto
    cache: BeamPath

    def __call__(self, plan: ShardPlan) -> RecordShard:
        """Write and copy a shard; raises what `write_shard` raises."""
        with remote_errors(self.cache), scratch_folder("facepairs-shard") as folder:
            shard = write_shard(plan, self.read, folder)
            copy_to(folder / plan.name, self.cache / plan.name)
        return shard


def build_cache_at(
    data: str,
    out: str,
    config: TrainConfig,
    pairs: int,
    encoding: Encoding,
    shards: int | None,
    log: MessageCallback = ignore_message,
    progress: ProgressFactory = ignore_phases,
    runner: str | None = None,
    beam_options: Sequence[str] = (),
) -> CacheManifest:
    """Write a cache as `training.inputs.pair_cache.build_training_cache` does.

    A remote cache is not locked, as an object store has no locks; a build that fails removes it.

    Args:
        data: Folder of faces: a local one, or one of `scheme://…`.
        out: Folder to write, likewise; a cache there is replaced.
        config, pairs, encoding, shards, log, progress: As for `build_training_cache`.
        runner: Name of the Beam runner that does the work, or None for threads.
        beam_options: Beam's own options, as on its command line.

    Returns:
        The cache's manifest.

    Raises:
        BadConfig: Beam is needed and missing, or does not know the runner or an option.
        FacepairsError: What `build_training_cache` raises.
    """
    ordered_map = choose_map(runner, beam_options)
    faces, folder = parse_place(data), parse_place(out)
    if runner is None and isinstance(faces, Path) and isinstance(folder, Path):
        return build_training_cache(faces, folder, config, pairs, encoding, shards, log, progress)
    with remote_errors(faces, folder):
        _check_request(faces, folder, pairs, shards)
        index = index_place(faces)
        read = partial(read_below, faces) if isinstance(faces, Path) else faces.read_file
        inspect = InspectPhotos(config.align == "landmarks", face_cache(), read)
        inspected = ordered_map(inspect, batches(index.names(), BATCH))
        records = collect(inspected, len(index), progress("finding faces"))
        table = PhotoTable.of(records, len(index), config.align)
        index, table = choose_usable(index, table, config.skip_bad, log)
        plan = cache_plan(index, table, config, pairs, encoding, shards)
        with _replaced(folder) as cache:
            written = ordered_map(UploadShard(read, cache), plan.shard_plans())
            manifest = plan.collect(written, progress("writing pairs"))
            for entry in files_below(cache):
                if entry.name not in manifest.shard_names:
                    remove(cache / entry.name)
            with writing(cache / MANIFEST) as handle:  # it completes the cache
                handle.write(manifest.render())
    return manifest


def _check_request(faces: Place, out: Place, pairs: int, shards: int | None) -> None:
    """Check what can be checked before a photo is read; raises what `check_request` raises."""
    if isinstance(out, Path):
        check_request(out, stand_in(faces), pairs, shards)
        return
    shard_count(pairs, shards)
    names = {entry.name for entry in files_below(out) if not is_temporary(entry.name)}
    shards_there = set(fnmatch.filter(names, SHARDS))
    if names and (not shards_there or names - shards_there - {MANIFEST}):
        raise BadData(f"{out}: exists and is not a pair cache; choose another place or remove it")


@contextmanager
def _replaced(out: Place) -> Iterator[BeamPath]:
    """Yield the folder to write the cache to; what was in `out` is replaced.

    A remote cache has no manifest until it is complete, and is removed if the block fails.
    """
    if isinstance(out, Path):
        lock = held(lock_beside(out), out, BadData, "choose another place")
        with lock, atomic_folder(out) as folder:
            yield BeamPath(str(folder))
        return
    try:
        remove(out / MANIFEST)
        yield out
    except BaseException:
        with suppress(OSError):
            remove(out)
        raise
