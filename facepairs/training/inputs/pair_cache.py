"""The TFRecord cache of training pairs: build it for a training, and open it when it fits one."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from facepairs.config import TrainConfig, load_config
from facepairs.data.index import FaceIndex, ReadFile
from facepairs.data.split import PeopleSplit
from facepairs.errors import BadConfig, BadData
from facepairs.images.crop_plan import CropPlan
from facepairs.pipeline.records.build import (
    build_cache,
    check_request,
    people_digest,
)
from facepairs.pipeline.records.manifest import CacheManifest
from facepairs.pipeline.records.store import RecordStore
from facepairs.support.lock import held, lock_beside
from facepairs.support.parallel import OrderedMap, thread_map
from facepairs.support.progress import (
    MessageCallback,
    ProgressFactory,
    ignore_message,
    ignore_phases,
)
from facepairs.support.words import command_line
from facepairs.training.inputs.people import choose_people, usable_photos


def build_training_cache(
    data: Path,
    out: Path,
    pairs: int,
    encoding: str,
    shards: int | None,
    options: dict[str, Any],
    config_file: Path | None,
    log: MessageCallback = ignore_message,
    progress: ProgressFactory = ignore_phases,
    ordered_map: OrderedMap = thread_map,
    scan: Callable[[Path], FaceIndex] = FaceIndex.scan,
    read_file: ReadFile | None = None,
) -> CacheManifest:
    """Write the cache of pairs that a training with these settings reads.

    Args:
        data: Folder of `Person_Name/photo.jpg`.
        out: Folder to write; a cache there is replaced.
        pairs: Number of pairs to sample.
        encoding: `jpeg` or `raw`.
        shards: Number of files, or None to choose it from the number of pairs.
        options: Fields of TrainConfig; they override those of the TOML file.
        config_file: TOML file of the training's settings, or None.
        log: Receives messages.
        progress: Shows the progress of each phase.
        ordered_map: Checks images and writes shards; in threads by default.
        scan: Indexes `data`.
        read_file: Reads an image by its name; by default from the file below `data`.

    Returns:
        The cache's manifest.

    Raises:
        BadConfig: The settings cannot be used, or `out` is inside the folder of faces.
        BadData: An image or `out` cannot be used, or another process writes there.
        NotEnough: There are too few people.
    """
    check_request(out, pairs, shards, encoding)
    config = cache_config(options, config_file)
    if out.resolve().is_relative_to(data.resolve()):
        raise BadConfig(f"{out} lies in the folder of faces; choose another place for the cache")
    with held(lock_beside(out), out, BadData, "choose another place"):
        inspected = progress("finding faces")
        index, table = usable_photos(
            scan(data), config.align, config.skip_bad, log, inspected, ordered_map, read_file
        )
        return build_cache(
            out,
            index,
            table.crop_plan(config.recipe.crop_spec, config.align),
            choose_people(index, config).training,
            pairs,
            seed=config.seed,
            genuine_share=config.recipe.genuine_share,
            encoding=encoding,
            shards=shards,
            progress=progress("writing pairs"),
            ordered_map=ordered_map,
            read_file=read_file,
        )


def cache_config(options: dict[str, Any], config_file: Path | None) -> TrainConfig:
    """Return the settings of the training that a cache is for; `options` override the TOML file.

    Raises:
        BadConfig: A setting cannot be used, or the model does not train from a cache.
    """
    base = load_config(config_file) if config_file else TrainConfig(model="difference")
    return base.replace(**options, cache="to be built")  # refused where no cache can be read


def open_training_cache(
    folder: Path,
    index: FaceIndex,
    plan: CropPlan,
    split: PeopleSplit,
    config: TrainConfig,
) -> RecordStore:
    """Open the cache for a training on `split.training`.

    Args:
        folder: The cache.
        index: The images of the training.
        plan: How they are cropped.
        split: Its people.
        config: Its settings.

    Raises:
        BadData: The cache is incomplete or damaged, or holds other pairs than `config` asks for;
            the message then names the differences.
    """
    store = RecordStore.open(folder)
    store.check_matches(
        index_fingerprint=index.fingerprint,
        people_digest=people_digest(index, split.training),
        seed=config.seed,
        genuine_share=config.recipe.genuine_share,
        frame_px=config.recipe.frame_px,
        crop_px=config.recipe.crop_px,
        alignment=plan.alignment,
        detector=plan.detector,
    )
    return store


def cached_batches(
    store: RecordStore,
    batch_size: int,
    seed: int,
    start_step: int = 0,
    pair_range: tuple[int, int] | None = None,
) -> Iterator[dict[str, tf.Tensor]]:
    """Yield the batches of a training without end; every pass is in a new order.

    Args:
        store: The cache.
        batch_size: Pairs per batch.
        seed: Seed of the order.
        start_step: First step.
        pair_range: The [begin, end) range of each batch whose images are read, as in
            `make_dataset`; None for all.

    Raises:
        BadData: The cache is damaged.
        BadConfig: A batch is larger than the cache.
    """
    try:
        yield from store.batches(
            batch_size, seed, repeat=True, start_step=start_step, pair_range=pair_range
        )
    except tf.errors.OpError as error:
        problem = (error.message or type(error).__name__).splitlines()[0]
        raise BadData(
            f"{store.folder}: the cache has changed or is damaged ({problem}); "
            f"see: {command_line('cache', 'check', store.folder)}"
        ) from None
