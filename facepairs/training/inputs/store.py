"""Open the image store that a training reads from."""

from pathlib import Path

import psutil

from facepairs.config import TrainConfig
from facepairs.data.index import FaceIndex
from facepairs.images.crop_plan import CropPlan
from facepairs.pipeline.dataset import Store
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore, store_bytes
from facepairs.support.progress import MessageCallback, ProgressCallback, ignore_message

SHARE_OF_FREE_MEMORY = 0.25  # that the memory store may take when `store` is auto


def store_kind(config: TrainConfig, images: int, log: MessageCallback = ignore_message) -> str:
    """Return `config.store`; where that is `auto`, `memory` if the images fit, else `files`.

    Args:
        config: The training's settings.
        images: How many images there are.
        log: Receives the choice that `auto` made.
    """
    if config.store != "auto":
        return config.store
    size = store_bytes(images, config.crop_px)
    free = psutil.virtual_memory().available
    kind = "memory" if size <= SHARE_OF_FREE_MEMORY * free else "files"
    log(f"store: {kind} ({size / 1e6:,.0f} MB decoded, {free / 1e6:,.0f} MB of memory are free)")
    return kind


def open_store(
    index: FaceIndex,
    plan: CropPlan,
    config: TrainConfig,
    folder: Path,
    log: MessageCallback,
    progress: ProgressCallback,
) -> Store:
    """Open the store that `config.store` names (`store_kind`).

    Args:
        index: The images.
        plan: How they are cropped.
        config: The training's settings.
        folder: Where the memory store's array is kept, for all trainings on these images there.
        log: Receives the choice that `auto` made.
        progress: Counts the images decoded into memory.
    """
    if store_kind(config, len(index), log) == "memory":
        path = folder / f"store-{index.fingerprint[:16]}-{plan.digest[:16]}.npy"
        log(f"all crops are kept in {path}, for further trainings on these photos")
        return MemoryStore.build(index, plan, path, progress, log)
    return FileStore(index, plan)
