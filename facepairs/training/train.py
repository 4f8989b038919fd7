"""`train`: from a folder of faces to a run folder with a verifier in it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from facepairs.config import TrainConfig
from facepairs.data.index import FaceIndex
from facepairs.data.split import PeopleSplit
from facepairs.pipeline.allocator import keep_freed_memory
from facepairs.training.cache import open_training_cache
from facepairs.training.interrupt import stop_on_signal
from facepairs.training.job import Say, Tick, TrainJob, TrainReport
from facepairs.training.run import RunFolder
from facepairs.training.store import open_store


def train(
    index: FaceIndex,
    split: PeopleSplit,
    out: Path,
    config: TrainConfig,
    resume: bool = False,
    say: Say = lambda line: None,
    progress: Callable[[str], Tick] | None = None,
    images_in_tensorboard: bool = True,
    profile: bool = False,
    config_file: Path | None = None,
    store_folder: Path | None = None,
    manifest: dict[str, Any] | None = None,
) -> TrainReport:
    """Train, calibrate and write `out/bundle`.

    `manifest` are fields for the bundle's manifest that stand in for calibrating here, as
    `evaluation.calibrate` gives them; training may then leave nobody for calibration.

    `profile` adds a profile of five steps to the run's TensorBoard log.

    `config` comes from `resolve_config`, `index` and `split` from `prepare`; the memory store's
    array is kept in `store_folder`, by default beside `out`. Raises a FacepairsError for whatever
    the user can mend.
    """
    tick = progress or (lambda label: lambda done, total: None)
    keep_freed_memory()
    with RunFolder(out, resume) as run, stop_on_signal(say) as should_stop:
        cache = None
        if config.store == "tfrecord":
            cache = open_training_cache(Path(config.cache), index, split, config, config_file)
        run.log(f"{len(index)} images of {len(index.people)} people in {index.root}")
        beside = store_folder or out.parent
        store = open_store(index, config, beside, say, tick("decoding images"))
        run.write_config(config)
        job = TrainJob(run, index, split, store, cache, config, say)
        job.restore()
        job.describe(should_stop, tick("describing images"))
        if not job.interrupted:
            job.train(should_stop, images_in_tensorboard, profile)
        if job.interrupted:
            return job.report(None)
        return job.report(job.finish(tick("calibrating"), manifest))
