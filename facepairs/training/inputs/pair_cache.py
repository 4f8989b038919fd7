"""The TFRecord pair cache of a training: built for its settings, and opened only when it fits."""

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from facepairs.beam.places import Place, Uri
from facepairs.config import TrainConfig, load_config
from facepairs.data.index import FaceIndex
from facepairs.data.split import PeopleSplit
from facepairs.errors import BadConfig, BadData
from facepairs.pipeline.records.build import build_cache, check_request, people_digest
from facepairs.pipeline.records.store import RecordStore
from facepairs.support.lock import held, lock_beside
from facepairs.support.parallel import Run, in_order
from facepairs.training.inputs.people import choose_people, readable_index

Say = Callable[[str], None]
Tick = Callable[[int, int], None]

MODEL = "difference"  # whose crop a cache has unless told otherwise; the default model needs none
# What decides the pairs, and has no option of `cache build`: only a TOML file can change it.
FROM_FILE = ("genuine_share", "frame_px", "crop_px", "calibration_share", "test_share")


def build_training_cache(
    data: Place,
    out: Place,
    pairs: int,
    encoding: str,
    shards: int | None,
    options: dict[str, Any],
    config_file: Path | None,
    say: Say = lambda line: None,
    progress: Callable[[str], Tick] | None = None,
    run: Run = in_order,
) -> dict[str, Any]:
    """Write the cache that a training with these settings reads; give its manifest.

    `options` are fields of TrainConfig and go before those of the TOML file; `run` says where
    images are checked and shards written. Raises what `readable_index`, `choose_people` and
    `build_cache` raise, and BadData where another process builds there.
    """
    tick = progress or (lambda label: lambda done, total: None)
    check_request(out, pairs, shards, encoding)
    base = load_config(config_file) if config_file else TrainConfig().replace(model=MODEL)
    config = base.replace(**options)
    if config.model == "siamese":
        raise BadConfig(
            "siamese does not train from a cache of pairs; give --model difference or siamese-conv"
        )
    if isinstance(out, Uri):  # an object store has no locks
        return _build(data, out, pairs, encoding, shards, config, say, tick, run)
    if isinstance(data, Path) and out.resolve().is_relative_to(data.resolve()):
        raise BadConfig(f"{out} lies in the folder of faces; choose another place for the cache")
    with held(lock_beside(out), out, BadData, "choose another place"):
        return _build(data, out, pairs, encoding, shards, config, say, tick, run)


def _build(
    data: Place,
    out: Place,
    pairs: int,
    encoding: str,
    shards: int | None,
    config: TrainConfig,
    say: Say,
    tick: Callable[[str], Tick],
    run: Run,
) -> dict[str, Any]:
    index = readable_index(data, config.skip_bad, say, tick("checking images"), run)
    return build_cache(
        out,
        index,
        choose_people(index, config).training,
        pairs,
        seed=config.seed,
        genuine_share=config.genuine_share,
        encoding=encoding,
        shards=shards,
        frame_px=config.frame_px,
        crop_px=config.crop_px,
        progress=tick("writing pairs"),
        run=run,
    )


def open_training_cache(
    folder: Path,
    index: FaceIndex,
    split: PeopleSplit,
    config: TrainConfig,
    config_file: Path | None = None,
) -> RecordStore:
    """Open a cache for a training on `split.training`; `config_file` is where `config` came from.

    Raises BadData for a cache that is incomplete or damaged, or, with the command that rebuilds
    it, holds other pairs than `config` asks for.
    """
    store = RecordStore.open(folder)
    store.matches(
        index.fingerprint,
        people_digest(index, split.training),
        config.seed,
        config.genuine_share,
        config.frame_px,
        config.crop_px,
        rebuild=rebuild_command(store, index.root, config, config_file),
    )
    return store


def rebuild_command(
    store: RecordStore, data: Path, config: TrainConfig, config_file: Path | None
) -> str:
    """Give the command that puts a cache for `config` in the place of `store`."""
    has = store.manifest
    words = ["facepairs", "cache", "build", str(data), str(store.folder)]
    words += ["--pairs", str(has.pairs), "--encoding", has.encoding]
    words += ["--shards", str(len(has.shards)), "--seed", str(config.seed)]
    words += ["--model", config.model, "--protocol", config.protocol]
    words += ["--lists", config.lists] if config.lists else []
    words += ["--skip-bad"] if config.skip_bad else []
    words += ["--config", str(config_file)] if config_file else []
    default = TrainConfig().replace(model=config.model)
    changed = [
        f"{name} = {getattr(config, name)}"
        for name in FROM_FILE
        if getattr(config, name) != getattr(default, name)
    ]
    if not changed or config_file:
        return shlex.join(words)
    return f"{shlex.join([*words, '--config', 'FILE.toml'])} where it says {', '.join(changed)}"


def cached_batches(
    store: RecordStore,
    batch_size: int,
    seed: int,
    start_step: int = 0,
    part: tuple[int, int] | None = None,
) -> Iterator[dict[str, tf.Tensor]]:
    """Yield a training's batches from `start_step` on, without end, every pass in a new order.

    `part` are the pairs of each batch whose images are wanted, as in `make_dataset`.

    Raises BadData where the cache turns out damaged, BadConfig for a batch larger than it.
    """
    try:
        yield from store.batches(batch_size, seed, repeat=True, start_step=start_step, part=part)
    except tf.errors.OpError as error:
        what = (error.message or type(error).__name__).splitlines()[0]
        raise BadData(
            f"{store.folder}: the cache has changed or is damaged ({what}); "
            f"see: facepairs cache check {store.folder}"
        ) from None
