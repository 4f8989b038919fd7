"""`train`: from a folder of faces to a run, before and after TensorFlow is loaded.

Importing this module loads no TensorFlow, so mistakes are reported before it is.
"""

import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from facepairs.choices import Devices, Store
from facepairs.config import TrainConfig
from facepairs.errors import BadConfig
from facepairs.support import console
from facepairs.support.extras import require_extra
from facepairs.support.words import counted
from facepairs.training.cluster import Cluster, read_cluster
from facepairs.training.inputs.people import prepare
from facepairs.training.run_folder import Run, check_place, finished_run, settings_of_run

if TYPE_CHECKING:  # importing it loads TensorFlow
    import keras


def train(
    data: Path | str,
    out: Path | str | None = None,
    config: TrainConfig | None = None,
    *,
    resume: bool = False,
    callbacks: "Sequence[keras.callbacks.Callback]" = (),
    devices: Devices = "one",
    store: Store = "auto",
) -> Run:
    """Train a face verifier on a folder of faces, as `facepairs train` does.

    Some people are held out to choose the best epoch, some to calibrate the threshold, others to
    measure errors. The run is saved after every epoch. An interrupt (Ctrl-C, or the stop button of
    a notebook) stops it and returns.

    Examples:
        >>> run = facepairs.train("photos", "run", TrainConfig(minutes=10))
        >>> run = facepairs.train("photos", "run", resume=True)  # after its last finished epoch
        >>> run.verifier().verify("a.jpg", "b.jpg")

    Args:
        data: Folder of `Person_Name/photo.jpg`.
        out: The run folder, new or empty; by default a folder below `runs/`, named by the time.
        config: The settings; None for the defaults.
        resume: Continue the run in `out` with its own settings. `config` may be given again, and
            may then change how long to train.
        callbacks: Keras callbacks, which `fit` calls after the training's own. The logs of an epoch
            are `loss`, `val_auc`, `learning_rate`, `pairs_per_s`, `input_wait` and `seconds`.
        devices: `one`; `auto`: all GPUs, or the workers of TF_CONFIG; `all`: GPUs, else CPUs.
        store: Where images come from: decoded again in each batch (`files`), all of them once
            (`memory`), the pair cache of the settings (`tfrecord`), or `auto`: the pair cache if
            one is given, else `memory` if they fit.

    Returns:
        The run, finished or interrupted; a finished one is returned as it is.

    Raises:
        BadConfig: A setting or a path cannot be used.
        BadData: A photo cannot be used, and `config.skip_bad` is false.
        BadRun: `out` holds something already, or nothing to resume, or is in use.
        NotEnough: There are too few people or photos.
        MissingExtra: The packages for training are not installed.
        LostWorker: Another worker of the training stopped or cannot be reached.
    """
    started_s = time.perf_counter()
    require_extra("train", "facepairs.train")
    folder = Path(data)
    cluster = Cluster() if devices == "one" else read_cluster()
    given = Path(out) if out is not None else None
    settings = settings_of_run(config or TrainConfig(), given, resume)
    if cluster.workers > 1 and given is None:
        raise BadConfig("several workers need the run folder that they share", "out")
    place = given or Path("runs") / datetime.now().strftime("%Y%m%d-%H%M%S")
    check_place(place, folder, resume)
    finished = finished_run(place, settings) if resume else None
    if finished:
        console.log(
            f"{place} is finished after {counted(finished.epochs, 'epoch')}; nothing was done "
            f"(for more: resume it with {2 * finished.epochs} epochs)"
        )
        return finished
    index, plan, split = prepare(folder, settings, store)
    with console.waiting("starting TensorFlow"):
        from facepairs.training.fit import fit_people

    return fit_people(
        index,
        plan,
        split,
        settings,
        place,
        devices=devices,
        store=store,
        callbacks=callbacks,
        started_s=started_s,
    )
