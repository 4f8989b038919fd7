"""`cache build` with images and cache on any storage."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from facepairs.beam.paths import (
    BeamPath,
    copy_to,
    files_below,
    parse_place,
    remove,
    writing,
)
from facepairs.beam.remote_index import index_place, remote_errors, stand_in
from facepairs.beam.runner import choose_map
from facepairs.data.sampler import PairSampler
from facepairs.pipeline.records.build import (
    check_replaceable,
    shard_count,
    write_shards,
)
from facepairs.pipeline.records.manifest import MANIFEST, CacheManifest, RecordShard
from facepairs.pipeline.records.shard import ShardPlan, ShardWriter
from facepairs.support.atomic import scratch_folder
from facepairs.support.progress import (
    MessageCallback,
    ProgressFactory,
    ignore_message,
    ignore_phases,
)
from facepairs.training.inputs.pair_cache import (
    build_training_cache,
    cache_config,
)
from facepairs.training.inputs.people import choose_people, usable_photos


@dataclass(frozen=True)
class UploadingShardWriter(ShardWriter):
    """Writes a shard to a scratch folder of the worker and uploads it to `target`."""

    _: KW_ONLY
    target: BeamPath

    def __call__(self, plan: ShardPlan) -> RecordShard:
        """Write and upload a shard; raises what ShardWriter raises."""
        with remote_errors(self.target), scratch_folder("facepairs-shard") as folder:
            shard = ShardWriter(self.root, folder, self.encoding, self.read_file)(plan)
            copy_to(folder / plan.name, self.target / plan.name)
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
    if isinstance(folder, Path):
        request = (pairs, encoding, shards, options, config_file, log, progress, ordered_map)
        if isinstance(faces, Path):
            return build_training_cache(faces, folder, *request)
        with remote_errors(faces):
            return build_training_cache(
                stand_in(faces), folder, *request, lambda _: index_place(faces), faces.read_file
            )
    config = cache_config(options, config_file)
    read_file = faces.read_file if isinstance(faces, BeamPath) else None
    with remote_errors(faces, folder):
        count = shard_count(pairs, shards, encoding)
        check_replaceable(out, [entry.name for entry in files_below(folder)])
        inspected = progress("finding faces")
        index, table = usable_photos(
            index_place(faces),
            config.align,
            config.skip_bad,
            log,
            inspected,
            ordered_map,
            read_file,
        )
        plan = table.crop_plan(config.recipe.crop_spec, config.align)
        people = choose_people(index, config).training
        sampler = PairSampler(index.first, people, config.seed, config.recipe.genuine_share)
        writer = UploadingShardWriter(
            index.root, stand_in(folder), encoding, read_file, target=folder
        )
        written = progress("writing pairs")
        with _removed_on_failure(folder):
            manifest = write_shards(
                writer, index, plan, sampler, pairs, count, written, ordered_map
            )
            _publish(folder, manifest)
        return manifest


@contextmanager
def _removed_on_failure(out: BeamPath) -> Iterator[None]:
    """Remove the old cache's manifest at once, and everything if the block fails."""
    try:
        remove(out / MANIFEST)  # without it there is no cache, whatever else is in the folder
        yield
    except BaseException:
        with suppress(OSError):
            remove(out)
        raise


def _publish(out: BeamPath, manifest: CacheManifest) -> None:
    """Remove all files but the shards, then write the manifest, which completes the cache."""
    for entry in files_below(out):
        if entry.name not in manifest.shard_names:
            remove(out / entry.name)
    with writing(out / MANIFEST) as handle:
        handle.write(manifest.render())
