"""`cache build` with images and cache on any storage."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from facepairs.beam.checks import InspectRemoteFiles
from facepairs.beam.paths import (
    BeamPath,
    Place,
    copy_to,
    files_below,
    parse_place,
    remove,
    writing,
)
from facepairs.beam.remote_index import index_place, remote_names, stand_in
from facepairs.beam.runner import choose_map
from facepairs.data.index import FaceIndex
from facepairs.data.sampler import PairSampler
from facepairs.errors import BadData
from facepairs.pipeline.records.build import (
    check_replaceable,
    check_request,
    shard_count,
    write_shards,
)
from facepairs.pipeline.records.manifest import MANIFEST, CacheManifest, RecordShard
from facepairs.pipeline.records.shard import ShardPlan, ShardWriter
from facepairs.support.atomic import scratch_folder
from facepairs.support.lock import held, lock_beside
from facepairs.support.parallel import OrderedMap
from facepairs.support.progress import (
    MessageCallback,
    ProgressFactory,
    ignore_message,
    ignore_phases,
)
from facepairs.training.inputs.pair_cache import (
    build_training_cache,
    cache_config,
    cache_index,
)
from facepairs.training.inputs.people import choose_people, keep_readable


@dataclass(frozen=True)
class RemoteFiles:
    """Returns the content of files below a remote folder by name. Raises OSError."""

    root: BeamPath

    def __call__(self, name: str) -> bytes:
        """Read one file; `name` is its path below `root`."""
        return (self.root / name).read_bytes()


@dataclass(frozen=True)
class UploadingShardWriter(ShardWriter):
    """Writes a shard to a scratch folder of the worker and uploads it to `target`."""

    _: KW_ONLY
    target: BeamPath

    def __call__(self, plan: ShardPlan) -> RecordShard:
        """Write and upload a shard; raises what ShardWriter raises."""
        with scratch_folder("facepairs-shard") as folder:
            writer = ShardWriter(
                self.root, folder, self.encoding, self.frame_px, self.crop_px, self.read_file
            )
            shard = writer(plan)
            try:
                copy_to(folder / plan.name, self.target / plan.name)
            except OSError as error:
                raise BadData(
                    f"{self.target / plan.name}: {error.strerror}; choose another place or free "
                    "space"
                ) from None
        return shard


def build_cache_at(
    data: str,
    out: str,
    pairs: int,
    encoding: str,
    shards: int | None,
    options: dict[str, Any],
    config_file: Path | None,
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
        pairs, encoding, shards, options, config_file, log, progress: As for
            `build_training_cache`.
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
    request = (pairs, encoding, shards, options, config_file, log, progress, ordered_map)
    if isinstance(faces, Path) and isinstance(folder, Path):
        return build_training_cache(faces, folder, *request)
    with remote_names(faces, folder):
        return _build(faces, folder, *request)


def _build(
    data: Place,
    out: Place,
    pairs: int,
    encoding: str,
    shards: int | None,
    options: dict[str, Any],
    config_file: Path | None,
    log: MessageCallback,
    progress: ProgressFactory,
    ordered_map: OrderedMap,
) -> CacheManifest:
    count = _check_request(out, pairs, shards, encoding)
    config = cache_config(options, config_file)
    read_file = RemoteFiles(data) if isinstance(data, BeamPath) else None

    def readable_index() -> FaceIndex:
        inspect = InspectRemoteFiles(data, thorough=False) if isinstance(data, BeamPath) else None
        ticks = progress("checking images")
        return keep_readable(index_place(data), config.skip_bad, log, ticks, ordered_map, inspect)

    if isinstance(out, Path):
        with held(lock_beside(out), out, BadData, "choose another place"):
            index, ticks = readable_index(), progress("writing pairs")
            return cache_index(
                out, index, pairs, encoding, shards, config, ticks, ordered_map, read_file
            )
    index = readable_index()
    people = choose_people(index, config).training
    sampler = PairSampler(index.first, people, config.seed, config.genuine_share)
    crop = (config.frame_px, config.crop_px)
    writer = UploadingShardWriter(index.root, stand_in(out), encoding, *crop, read_file, target=out)
    with _removed_on_failure(out):
        ticks = progress("writing pairs")
        manifest = write_shards(writer, index, sampler, pairs, count, ticks, ordered_map)
        _publish(out, manifest)
    return manifest


def _check_request(out: Place, pairs: int, shards: int | None, encoding: str) -> int:
    """Return the number of shards; raise what `records.build.check_request` raises."""
    if isinstance(out, Path):
        return check_request(out, pairs, shards, encoding)
    count = shard_count(pairs, shards, encoding)
    try:
        check_replaceable(str(out), {entry.name for entry in files_below(out)})
    except FileNotFoundError:
        pass
    except OSError as error:
        raise BadData(f"{out}: {error.strerror}; choose another place") from None
    return count


@contextmanager
def _removed_on_failure(out: BeamPath) -> Iterator[None]:
    """Remove the old cache's manifest at once, and everything if the block fails."""
    try:
        remove(out / MANIFEST)  # without it there is no cache, whatever else is in the folder
        yield
    except BaseException as error:
        with suppress(OSError):
            remove(out)
        if isinstance(error, OSError):
            raise BadData(f"{out}: {error.strerror}; choose another place") from None
        raise


def _publish(out: BeamPath, manifest: CacheManifest) -> None:
    """Remove all files but the shards, then write the manifest, which completes the cache."""
    for entry in files_below(out):
        if entry.name not in manifest.shard_names:
            remove(out / entry.name)
    with writing(out / MANIFEST) as handle:
        handle.write(manifest.render())
