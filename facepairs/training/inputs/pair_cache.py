"""The TFRecord cache of training pairs: build it for a training, and open it when it fits one."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from facepairs.choices import Encoding
from facepairs.config import Settings, TrainConfig, read_table
from facepairs.data.index import FaceIndex
from facepairs.data.sampler import PairSampler
from facepairs.data.split import PeopleSplit
from facepairs.errors import BadData
from facepairs.photos.crop import CropPlan
from facepairs.pipeline.files import READING_ERRORS
from facepairs.pipeline.records.build import (
    CachePlan,
    build_cache,
    check_request,
    people_digest,
)
from facepairs.pipeline.records.manifest import CacheManifest
from facepairs.pipeline.records.store import RecordStore
from facepairs.support.lock import held, lock_beside
from facepairs.support.validation import validate
from facepairs.training.inputs.people import choose_people, usable_photos


def build_training_cache(
    data: Path,
    out: Path,
    config: Settings,
    pairs: int,
    encoding: Encoding = "jpeg",
) -> CacheManifest:
    """Write the cache of pairs that a training with these settings reads.

    Args:
        data: Folder of `Person_Name/photo.jpg`.
        out: Folder to write; a cache there is replaced.
        config: The training's settings.
        pairs: How many pairs.
        encoding: How crops are stored, as in `CachePlan`.

    Returns:
        The cache's manifest.

    Raises:
        BadConfig: The number of pairs is out of range.
        BadData: An image or `out` cannot be used, or another process writes there.
        NotEnough: There are too few people.
    """
    check_request(out, data, pairs)
    with held(lock_beside(out), out, BadData):
        index, crops = usable_photos(FaceIndex.scan(data), config, fit_faces=not config.lists)
        return build_cache(out, cache_plan(index, crops, config, pairs, encoding))


def cache_plan(
    index: FaceIndex,
    crops: CropPlan,
    config: Settings,
    pairs: int,
    encoding: Encoding,
) -> CachePlan:
    """Return the cache of pairs for a training with these settings.

    Args:
        index: The usable photos.
        crops: How they are cropped.
        config: The settings.
        pairs: How many pairs.
        encoding: How crops are stored.

    Raises:
        NotEnough: There are too few people.
    """
    sampler = PairSampler(index.first, choose_people(index, config).training, config.seed)
    return CachePlan(index, crops, sampler, pairs, encoding)


def cache_config(config_file: Path | None, **options: Any) -> Settings:
    """Return the settings of the training that a cache is for.

    Args:
        config_file: The training's TOML file; a file that names no model means `difference`.
        **options: Settings that override the file's; None and False leave them as they are.

    Raises:
        BadConfig: A setting cannot be used, or the model does not train from a cache.
    """
    given = {name: value for name, value in options.items() if value not in (None, False)}
    table = {"model": "difference", **read_table(config_file), **given}
    table["pair_cache"] = "to be built"  # refused for a model that cannot read one
    return validate(table, TrainConfig, str(config_file or "")).resolve()


def open_training_cache(
    folder: Path,
    index: FaceIndex,
    plan: CropPlan,
    split: PeopleSplit,
    config: Settings,
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
        frame_px=config.recipe.frame_px,
        crop_px=config.recipe.crop_px,
        alignment=plan.alignment,
        detector=plan.detector,
    )
    return store


@contextlib.contextmanager
def cache_named(store: RecordStore | None) -> Iterator[None]:
    """Raise BadData that names the cache where TensorFlow finds it damaged.

    Raises:
        BadData: The cache has changed, or is damaged.
    """
    try:
        yield
    except (*READING_ERRORS, tf.errors.DataLossError) as error:
        if store is None:
            raise
        problem = (error.message or type(error).__name__).splitlines()[0]
        place = store.find_damage() or store.folder
        raise BadData(
            f"{place}: the cache has changed or is damaged ({problem}); build it again"
        ) from None
