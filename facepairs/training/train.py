"""`train`: from a folder of faces to a run folder with a verifier in it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from facepairs.config import TrainConfig
from facepairs.data.index import FaceIndex
from facepairs.data.split import PeopleSplit
from facepairs.errors import BadConfig
from facepairs.support.allocator import keep_freed_memory
from facepairs.training.inputs.pair_cache import open_training_cache
from facepairs.training.distributed.context import Team, lost_worker, open_team
from facepairs.training.loop.interrupt import stop_on_signal
from facepairs.training.job import Say, Tick, TrainJob, TrainReport
from facepairs.training.run_folder.folder import RunFolder
from facepairs.training.inputs.store import open_store

SHARED = ("siamese", "siamese-conv", "difference")  # models whose steps devices can share


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
    devices: str = "one",
) -> TrainReport:
    """Train, calibrate and write `out/bundle`.

    `manifest` are fields for the bundle's manifest that stand in for calibrating here, as
    `evaluation.calibrate` gives them; training may then leave nobody for calibration.

    `profile` adds a profile of five steps to the run's TensorBoard log.

    `config` comes from `resolve_config`, `index` and `split` from `prepare`; the memory store's
    array is kept in `store_folder`, by default beside `out`. `devices` are those of `open_team`; of
    several workers, which all call this, the chief alone writes to `out`. Raises LostWorker where
    another one has gone, else a FacepairsError for whatever the user can mend.
    """
    tick = progress or (lambda label: lambda done, total: None)
    keep_freed_memory()
    team = open_team(devices, say)
    check_team(team, config, say)
    with (
        lost_worker(team.workers),
        RunFolder(out, resume, read_only=not team.chief) as run,
        stop_on_signal(say) as should_stop,
    ):
        cache = None
        if config.store == "tfrecord":
            cache = open_training_cache(Path(config.cache), index, split, config, config_file)
        run.log(f"{len(index)} images of {len(index.people)} people in {index.root}")
        with team.in_turn():  # the second finds what the first has decoded
            beside = store_folder or out.parent
            store = open_store(index, config, beside, say, tick("decoding images"))
        run.write_config(config)
        job = TrainJob(run, index, split, store, cache, config, say, team)
        job.restore()
        job.describe(should_stop, tick("describing images"))
        if not job.interrupted:
            job.train(should_stop, images_in_tensorboard, profile)
        bundle = None
        if team.chief and not job.interrupted:
            bundle = job.finish(tick("calibrating"), manifest)
        team.part()  # whoever left before would be missed
        return job.report(bundle)


def check_team(team: Team, config: TrainConfig, say: Say) -> None:
    """Say who trains; raise BadConfig where several devices have nothing to share."""
    if not team.strategy:
        return
    if config.model not in SHARED:
        raise BadConfig(
            f"{config.model} is not trained step by step, so several devices have nothing to "
            "share; give --devices one to a single worker"
        )
    if config.batch_size < 2 * team.replicas:
        raise BadConfig(
            f"batch_size {config.batch_size} is too small for {team.replicas} devices; give "
            f"--batch-size {2 * team.replicas} or more, or fewer devices"
        )
    say(f"worker {team.worker} of {team.workers}; {team.replicas} devices share every batch")
