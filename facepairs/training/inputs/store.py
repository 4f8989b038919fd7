"""Open the image store that a training reads from."""

from pathlib import Path

import psutil

from facepairs import choices
from facepairs.data.index import FaceIndex
from facepairs.images.crop_plan import CropPlan
from facepairs.pipeline.dataset import Store
from facepairs.pipeline.files import FileStore
from facepairs.pipeline.memory import MemoryStore, store_bytes
from facepairs.support.progress import MessageCallback, ProgressCallback

SHARE_OF_FREE_MEMORY = 0.25  # that the memory store may take when the choice is `auto`


def open_store(
    index: FaceIndex,
    plan: CropPlan,
    kind: choices.Store,
    folder: Path,
    log: MessageCallback,
    progress: ProgressCallback,
) -> Store:
    """Open a store of images.

    Args:
        index: The images.
        plan: How they are cropped.
        kind: `files`, `memory`, or `auto`: `memory` if the images fit, else `files`.
        folder: Where the memory store's array is kept, for all trainings on these images there.
        log: Receives the choice that `auto` made.
        progress: Counts the images decoded into memory.
    """
    if kind == "auto":
        size, free = store_bytes(len(index), plan.spec.crop_px), psutil.virtual_memory().available
        kind = "memory" if size <= SHARE_OF_FREE_MEMORY * free else "files"
        log(
            f"store: {kind} ({size / 1e6:,.0f} MB decoded, {free / 1e6:,.0f} MB of memory are free)"
        )
    if kind == "files":
        return FileStore(index, plan)
    path = folder / f"store-{index.fingerprint[:16]}-{plan.digest[:16]}.npy"
    log(f"all crops are kept in {path}, for further trainings on these photos")
    return MemoryStore.build(index, plan, path, progress, log)
