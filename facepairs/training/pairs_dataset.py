"""Pairs of a folder of faces for `keras.Model.fit`."""

import itertools
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Literal

import keras
import numpy as np
import tensorflow as tf
from msgspec import Meta

from facepairs.choices import Align
from facepairs.config import TrainConfig
from facepairs.data.sampler import distinct_pairs
from facepairs.errors import BadConfig, BadData
from facepairs.pipeline.dataset import Batch, load_ahead, no_autograph
from facepairs.pipeline.records.manifest import REBUILD, read_manifest
from facepairs.support import console
from facepairs.support.validation import check_value
from facepairs.training.inputs.data import TrainingData
from facepairs.training.inputs.people import prepare

Split = Literal["training", "validation", "test"]
PairStore = Literal["files", "memory", "tfrecord"]
Pairs = Annotated[int, Meta(ge=2)]
BatchSize = Annotated[int, Meta(ge=2, le=4096)]
Side = Annotated[int, Meta(ge=1, le=1024)]
TRAINING_PAIRS, HELD_OUT_PAIRS = 12_800, 2_000
SILENT_S = 2.0  # after which progress is shown


def pairs_dataset(
    data: Path | str,
    *,
    split: Split = "training",
    batch_size: int = 64,
    image_size: int = 64,
    pairs: int | None = None,
    seed: int = 0,
    store: PairStore = "files",
    cache: Path | str | None = None,
    align: Align = "landmarks",
    distinct_people: bool = False,
    skip_bad: bool = False,
) -> "tf.data.Dataset[tuple[tuple[tf.Tensor, tf.Tensor], tf.Tensor]]":
    """Return a `tf.data.Dataset` of pairs of faces, ready for `keras.Model.fit`.

    ```
    data/
    ├── Ann_Example/
    │   ├── holiday.jpg
    │   └── passport.jpg
    └── Bob_Example/
        └── portrait.png
    ```

    What takes long, such as finding the faces, is shown by a progress bar like Keras'; what was
    found is kept for the next time. People are split by a hash of their names, as a training of
    that seed does, so that no person is in two splits.

    Examples:
        >>> model = facepairs.build_keras("difference")
        >>> model.compile("adam", loss=keras.losses.BinaryCrossentropy(from_logits=True))
        >>> model.fit(facepairs.pairs_dataset("photos"), epochs=3)

        From the TFRecord files of `facepairs cache build`:

        >>> cached = facepairs.pairs_dataset("photos", store="tfrecord", cache="cache")

    Args:
        data: Folder of `Person_Name/photo.jpg`.
        split: `training`: other pairs in each epoch, people first and then photos, so that people
            with many photos do not dominate. `validation` and `test`: the same distinct pairs.
        batch_size: Pairs per batch; the last batch of held-out pairs may be smaller.
        image_size: Side of the images in pixels.
        pairs: Pairs per epoch, half of them genuine; by default 12,800 to train on, and 2,000
            held-out ones. With few held-out people, strangers outnumber genuine pairs. Measure
            them with `PairMetrics`; accuracy would mostly count strangers.
        seed: Seed of the split and of the pairs.
        store: `files` decodes photos as they are needed, `memory` all of them once. `tfrecord`
            reads the training pairs of a `cache`; an epoch goes on where the last one ended.
        cache: Folder that `facepairs cache build` wrote, for `tfrecord`. It must be of these photos
            and this seed; all of it is read once, to name a damaged file. One that is damaged later
            ends `fit` with TensorFlow's error; the next call names it.
        align: `landmarks` finds and aligns the face in every photo; `none` takes photos as they
            are, framed like LFW's.
        distinct_people: Only genuine pairs to train on, of different people within a batch, as
            in-batch losses need them: those of `siamese`, three in four of people with several
            photos. Two photos of a person with only one are the same.
        skip_bad: Leave out photos that cannot be read or show no face, instead of raising.

    Returns:
        A dataset of `((left, right), genuine)`: images float32[B, image_size, image_size, 3] in
        [0, 255], and float32[B] of 1 (one person) and 0.

    Raises:
        BadConfig: An argument is out of range.
        BadData: A photo cannot be used, and `skip_bad` is false; or the cache is damaged, or holds
            pairs of other photos, people or settings.
        NotEnough: There are too few people or photos.
    """
    check_value("split", split, Split)
    check_value("store", store, PairStore)
    check_value("pairs", pairs, Pairs | None)
    check_value("batch_size", batch_size, BatchSize)
    check_value("image_size", image_size, Side)
    if (store == "tfrecord") != (cache is not None):
        raise BadConfig('a cache is given together with store="tfrecord"', "cache")
    if cache is not None and (split != "training" or distinct_people):
        raise BadConfig(
            "a cache serves only the training split, and no pairs of distinct people", "cache"
        )
    most = sys.maxsize if cache is None else read_manifest(Path(cache)).pairs
    config = TrainConfig(
        model="siamese" if distinct_people else "difference",
        batch_size=batch_size,
        pairs_per_epoch=max(batch_size, min(pairs or TRAINING_PAIRS, most)),
        seed=seed,
        align=align,
        pair_cache=None if cache is None else str(cache),
        skip_bad=skip_bad,
    ).resolve()
    with _progress_shown():
        found = TrainingData.open(*prepare(Path(data), config), config, store)
        if found.cache and (damaged := found.cache.find_damage()):  # `fit` would not name it
            raise BadData(f"{damaged}: damaged; {REBUILD}")
    if split == "training":
        dataset = _epochs(found)
    else:
        people = found.split.test
        if split == "validation":
            people = np.union1d(found.split.validation, found.split.calibration)
        fixed = distinct_pairs(found.index.first, people, pairs or HELD_OUT_PAIRS, seed)
        dataset = found.fixed_batches(found.store, fixed)

    def resize(sides: tuple[tf.Tensor, tf.Tensor], genuine: tf.Tensor) -> Batch:
        left, right = (tf.image.resize(side, (image_size, image_size)) for side in sides)
        return (left, right), genuine

    return load_ahead(dataset, resize)


def _progress_shown() -> AbstractContextManager[None]:
    """Show what takes long by Keras' progress bar, unless the caller shows it in another way."""
    return nullcontext() if console.is_shown() else console.showing(progress=_keras_bar)


def _keras_bar(phase: str) -> console.Progress:
    """Return a function that draws the progress of a phase that takes over two seconds."""
    started, bars = time.monotonic(), list[keras.utils.Progbar]()

    def draw(done: int, total: int) -> None:
        if not bars and time.monotonic() - started > SILENT_S:
            print(phase)
            bars.append(keras.utils.Progbar(total))
        for bar in bars:
            bar.update(done)

    return draw


def _epochs(found: TrainingData) -> tf.data.Dataset:
    """Return a dataset that has the next epoch each time it is iterated."""
    epochs = itertools.count()
    number = tf.data.Dataset.from_generator(
        lambda: iter([next(epochs)]), output_signature=tf.TensorSpec([], tf.int64)
    )
    batches = number.flat_map(no_autograph(lambda epoch: found.batches(found.store, epoch, 1)))
    return batches.apply(tf.data.experimental.assert_cardinality(found.steps_per_epoch))
