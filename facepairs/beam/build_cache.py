"""`cache build` with the photos or the cache on any storage, or the work on Beam."""

import fnmatch
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from facepairs.beam import paths
from facepairs.beam.paths import BeamPath, Place, remote_errors, stand_in
from facepairs.beam.runner import make_ordered_map
from facepairs.choices import Encoding
from facepairs.config import Settings
from facepairs.data.index import APART, FaceIndex, Skipped, name_problem, no_images, stray_problem
from facepairs.errors import BadData
from facepairs.photos.photo_cache import photo_cache
from facepairs.photos.photo_table import BATCH, FINDING, plan_crops
from facepairs.photos.reader import PhotoReader
from facepairs.pipeline.records.build import ShardPlan, check_count, check_request, write_shard
from facepairs.pipeline.records.manifest import MANIFEST, CacheManifest, RecordShard
from facepairs.support.atomic import atomic_folder, is_temporary
from facepairs.support.lock import held, lock_beside
from facepairs.support.parallel import batches, unbatched
from facepairs.support.places import is_leftover
from facepairs.training.inputs.pair_cache import cache_plan
from facepairs.training.inputs.people import keep_usable


def upload_shard(read: Callable[[str], bytes], cache: BeamPath, plan: ShardPlan) -> RecordShard:
    """Write a shard to a scratch folder of the worker and copy it to the cache.

    Args:
        read: Returns the content of a photo by its name.
        cache: The folder of the cache.
        plan: The shard.

    Raises:
        BadData: As `write_shard` does.
        BadImage: As `write_shard` does.
    """
    with remote_errors(cache), tempfile.TemporaryDirectory() as folder:
        shard = write_shard(plan, read, Path(folder))
        with open(Path(folder, plan.name), "rb") as file, paths.writing(cache / plan.name) as copy:
            shutil.copyfileobj(file, copy, 1 << 20)
    return shard


def build_cache_at(
    data: str,
    out: str,
    config: Settings,
    pairs: int,
    encoding: Encoding = "jpeg",
    runner: str | None = None,
    beam_options: Sequence[str] = (),
) -> CacheManifest:
    """Write a cache as `training.inputs.pair_cache.build_training_cache` does.

    A remote cache is not locked, as an object store has no locks; a build that fails removes it.

    Args:
        data: Folder of faces: a local one, or one of `scheme://…`.
        out: Folder to write, likewise; a cache there is replaced.
        config, pairs, encoding: As for `build_training_cache`.
        runner: Name of the Beam runner that does the work, or None for threads.
        beam_options: Beam's own options, as on its command line.

    Returns:
        The cache's manifest.

    Raises:
        BadConfig: Beam is needed and missing, or does not know the runner or an option.
        FacepairsError: As `build_training_cache`.
    """
    ordered_map = make_ordered_map(runner, beam_options)
    faces, folder = paths.parse_place(data), paths.parse_place(out)
    with remote_errors(faces, folder):
        _check_request(faces, folder, pairs)
        index = index_place(faces)
        read = BeamPath(str(faces)).read_file
        known = photo_cache() if runner is None else None  # nothing stays on other machines
        reader = PhotoReader(config.align == "landmarks", cache=known, open=read)
        inspected = ordered_map(reader.records, batches(index.names(), BATCH))
        records = list(unbatched(inspected, FINDING, len(index)))
        index, records = keep_usable(index, records, config)
        crops = plan_crops(records, config.recipe.crop_spec, config.align)
        plan = cache_plan(index, crops, config, pairs, encoding)
        with _replaced(folder) as cache:
            written = ordered_map(partial(upload_shard, read, cache), plan.shard_plans())
            manifest = plan.collect(written)
            for name, _ in paths.files_below(cache):
                if name not in manifest.shard_names:
                    paths.remove(cache / name)
            with paths.writing(cache / MANIFEST) as handle:  # it completes the cache
                handle.write(manifest.render())
    return manifest


def index_place(root: Place) -> FaceIndex:
    """Index a folder of faces; the same photos give the same index wherever they are stored.

    Raises:
        BadData: The folder has no image in a person's folder, or a local one cannot be read.
        OSError: A remote folder cannot be read.
    """
    if isinstance(root, Path):
        return FaceIndex.scan(root)
    photos, skipped = [], []
    for name, size in paths.files_below(root):
        parts = name.split("/")
        if parts[0] == APART or any(map(is_leftover, parts)):
            continue
        if problem := stray_problem(name) if len(parts) != 2 else name_problem(name):
            skipped.append(Skipped(name, problem))
        else:
            photos.append((name, size))
    if not photos:
        raise no_images(str(root), skipped)
    return FaceIndex.from_files(photos, stand_in(root), skipped)


def _check_request(faces: Place, out: Place, pairs: int) -> None:
    """Check what can be checked before a photo is read; raises what `check_request` raises."""
    if isinstance(out, Path):
        check_request(out, stand_in(faces), pairs)
        return
    check_count(pairs)
    names = {name for name, _ in paths.files_below(out) if not is_temporary(name)}
    if names - {MANIFEST, *fnmatch.filter(names, "pairs-*-of-*.tfrecord")}:
        raise BadData(f"{out}: exists and is not a pair cache; choose another place or remove it")


@contextmanager
def _replaced(out: Place) -> Iterator[BeamPath]:
    """Yield the folder to write the cache to; what was in `out` is replaced.

    A remote cache has no manifest until it is complete, and is removed if the block fails.
    """
    if isinstance(out, Path):
        lock = held(lock_beside(out), out, BadData)
        with lock, atomic_folder(out) as folder:
            yield BeamPath(str(folder))
        return
    try:
        paths.remove(out / MANIFEST)
        yield out
    except BaseException:
        with suppress(OSError):
            paths.remove(out)
        raise
