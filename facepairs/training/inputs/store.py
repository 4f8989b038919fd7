"""Which store a training reads from."""

from collections.abc import Callable
from pathlib import Path

import psutil

from facepairs.config import TrainConfig
from facepairs.data.index import FaceIndex
from facepairs.pipeline.dataset import Store
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore, store_bytes

SHARE_OF_FREE_MEMORY = 0.25


def open_store(
    index: FaceIndex,
    config: TrainConfig,
    beside: Path,
    say: Callable[[str], None],
    progress: Callable[[int, int], None] | None = None,
) -> Store:
    """Open the store that the configuration names; `auto` takes memory where it fits, and says so.

    The memory store's array is kept in the folder `beside`, for all runs there on these images.
    """
    size = store_bytes(len(index), config.crop_px)
    free = psutil.virtual_memory().available
    kind = config.store
    if kind == "auto":
        kind = "memory" if size <= SHARE_OF_FREE_MEMORY * free else "files"
        say(
            f"store: {kind} ({size / 1e6:,.0f} MB decoded, {free / 1e6:,.0f} MB of memory are free)"
        )
    if kind == "memory":
        name = f"store-{index.fingerprint[:16]}-{config.crop_px}of{config.frame_px}.npy"
        frame_px, crop_px, path = config.frame_px, config.crop_px, beside / name
        return MemoryStore.build(index, frame_px, crop_px, path, progress, say)
    return FileStore(index, config.frame_px, config.crop_px)
