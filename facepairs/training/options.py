"""`TrainOptions`: how a training runs, as opposed to what it learns (`TrainConfig`)."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from facepairs.choices import Devices, Store
from facepairs.support.progress import (
    MessageCallback,
    ProgressFactory,
    ignore_message,
    ignore_phases,
)


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """How a training runs, as opposed to what it learns (`TrainConfig`).

    Attributes:
        log: Receives messages, such as `print`; by default they are discarded.
        progress: Shows the progress of each phase: called with its name, it returns a function that
            is called with the work done and the work in all.
        devices: `one`; `auto`: all GPUs, or the workers of TF_CONFIG; `all`: GPUs, else CPUs.
        store: Where images come from: decoded anew in each batch (`files`), all of them once
            (`memory`), or `auto`: `memory` if they fit.
        deterministic: Refuse TensorFlow operations whose results may vary (on GPUs).
        store_folder: Where the memory store's array is kept; by default beside the run folder.
        started_s: When the command began, by `time.perf_counter`; by default when `train` begins.
        starting: Returns a context in which TensorFlow is imported, which takes seconds.
    """

    log: MessageCallback = ignore_message
    progress: ProgressFactory = ignore_phases
    devices: Devices = "one"
    store: Store = "auto"
    deterministic: bool = False
    store_folder: Path | None = None
    started_s: float | None = None
    starting: Callable[[], AbstractContextManager[None]] = nullcontext
