"""`facepairs train`."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from facepairs.choices import Devices, Loss, Store
from facepairs.cli.shared.options import (
    Align,
    Config,
    Data,
    Json,
    Lists,
    Model,
    Protocol,
    Seed,
    SkipBad,
    training_settings,
)
from facepairs.cli.shared.output import (
    INTERRUPTED,
    LOST_WORKER,
    log,
    print_error,
    print_result,
    progress_display,
    waiting,
)
from facepairs.errors import LostWorker
from facepairs.support.clock import running_s
from facepairs.support.words import counted

if TYPE_CHECKING:
    from facepairs.config import TrainConfig
    from facepairs.training.run_folder.result import TrainReport

EXAMPLE = "Example: facepairs train photos/ --out run --minutes 10"


def train(
    context: typer.Context,
    data: Data,
    out: Annotated[
        Path | None, Option(help="Run folder; its bundle/ is the verifier. [default: runs/…]")
    ] = None,
    model: Model = None,
    init: Annotated[
        str | None, Option(help="Bundle to start from, with a gentler recipe; or: default.")
    ] = None,
    loss: Annotated[Loss | None, Option(help="Siamese models only. [default: in-batch]")] = None,
    protocol: Protocol = None,
    lists: Lists = None,
    epochs: Annotated[
        int | None, Option(help="Most epochs to train. [default: by model, 20 or 30]")
    ] = None,
    minutes: Annotated[
        float | None, Option(help="Plan the epochs so that the whole command takes this long.")
    ] = None,
    patience: Annotated[
        int | None,
        Option(help="Stop when this many epochs brought no better validation AUC."),
    ] = None,
    batch_size: Annotated[
        int | None, Option(help="Pairs per step, on all devices. [default: by model, 64 to 256]")
    ] = None,
    image_size: Annotated[
        int | None,
        Option(
            help="Input side, 64 to 224 pixels, for siamese a multiple of 16 from 96. "
            "[default: siamese 128, others 64]"
        ),
    ] = None,
    store: Annotated[Store | None, Option(help="Where images come from. [default: auto]")] = None,
    cache: Annotated[Path | None, Option(help="Pair cache, for --store tfrecord.")] = None,
    align: Align = None,
    seed: Seed = None,
    skip_bad: SkipBad = False,
    devices: Annotated[
        Devices, Option(help="auto: GPUs, or the workers of TF_CONFIG; all: GPUs, else CPUs.")
    ] = "auto",
    deterministic: Annotated[
        bool, Option("--deterministic", help="Identical runs on GPUs too, slower.")
    ] = False,
    checkpoint_minutes: Annotated[
        float | None, Option(help="Longest time between checkpoints. [default: 5]")
    ] = None,
    resume: Annotated[bool, Option("--resume", help="Continue the run in --out.")] = False,
    config: Config = None,
    tensorboard_images: Annotated[bool, Option(help="Show faces in TensorBoard.")] = True,
    profile: Annotated[
        bool, Option("--profile", help="Profile five steps in TensorBoard.")
    ] = False,
    json: Json = False,
) -> None:
    """Train a face verifier on a folder of faces.

    Some people are held out to choose the best epoch, some to calibrate the threshold, others to
    measure errors. The default architecture is siamese; pixels and eigenfaces are baselines. Ctrl-C
    saves, and --resume continues, with more or fewer devices. If one of several workers is lost,
    the others exit with 138.
    """
    started_s = running_s()
    from facepairs.cli.shared.quiet import quiet_tensorflow
    from facepairs.support.machine import require_room_to_train
    from facepairs.training.distributed.cluster import Cluster, read_cluster
    from facepairs.training.inputs.people import describe_few_people, prepare
    from facepairs.training.run_folder.folder import (
        CONFIG,
        check_place,
        check_unlocked,
        resolve_config,
    )
    from facepairs.training.run_folder.result import finished_report

    cluster = Cluster() if devices == "one" else read_cluster()
    run_folder = out or _new_run_folder(cluster.workers, resume)
    options = training_settings(context)
    settings = resolve_config(options, config, run_folder, resume)
    check_place(run_folder, data, resume)
    if cluster.workers == 1:  # several would disturb each other; the chief checks it later
        check_unlocked(run_folder)
    finished = finished_report(run_folder, settings) if resume else None
    if finished:
        log(
            f"{run_folder} is finished after {counted(finished.epochs, 'epoch')}; nothing was done "
            f"(for more: --resume --epochs {2 * finished.epochs or 1})"
        )
        _print(finished, data, settings, json)
        return
    require_room_to_train()
    progress = progress_display(json)
    index, plan, split = prepare(data, settings, log, progress("finding faces"))
    quiet_tensorflow()
    with waiting("starting TensorFlow", json):
        from facepairs.training.train import TrainOptions
        from facepairs.training.train import train as run

    run_options = TrainOptions(
        resume=resume,
        log=log,
        progress=progress,
        images_in_tensorboard=tensorboard_images,
        profile=profile,
        devices=devices,
        config_file=run_folder / CONFIG if resume else config,
        started_s=started_s,
    )
    try:
        report = run(index, plan, split, settings, run_folder, run_options)
    except LostWorker as lost:
        print_error(lost.kind, str(lost), json)
        raise typer.Exit(LOST_WORKER) from None
    few = describe_few_people(split)
    if few and not report.interrupted:
        log(f"warning: {few}")
    if json or report.bundle:
        _print(report, data, settings, json)
    elif not report.interrupted:
        log(f"done; worker 0 has written {run_folder}")
    if report.interrupted:
        log(f"stopped and saved; continue with: facepairs train {data} --out {run_folder} --resume")
        raise typer.Exit(INTERRUPTED)


def _new_run_folder(workers: int, resume: bool) -> Path:
    """Return a run folder named by the time, for a single worker that starts a new run."""
    if workers > 1:
        raise typer.BadParameter("several workers need the run folder that they share: --out RUN")
    if resume:
        raise typer.BadParameter("--resume needs the run folder: --out RUN")
    return Path("runs") / datetime.now().strftime("%Y%m%d-%H%M%S")


def _print(report: "TrainReport", data: Path, settings: "TrainConfig", as_json: bool) -> None:
    """Print the result; without a bundle (interrupted, or not the chief) only as JSON."""
    print_result(as_json, report.to_json(), [] if as_json else _rows(report, data, settings))


def _rows(report: "TrainReport", data: Path, settings: "TrainConfig") -> list[tuple[str, str]]:
    lists_option = f" --lists {settings.lists}" if settings.protocol == "view1" else ""
    return [
        ("bundle", str(report.bundle)),
        ("trained", report.describe_time()),
        ("validation AUC", f"{report.val_auc:.4f}, measured on {_describe_people(report)}"),
        ("threshold", f"{report.threshold:.4f}"),
        ("next", f"facepairs evaluate {report.bundle} {data}{lists_option}"),
        ("", f"facepairs verify A.jpg B.jpg --bundle {report.bundle}"),
    ]


def _describe_people(report: "TrainReport") -> str:
    if report.val_people:
        return f"{report.val_people:,} people who are not trained on"
    calibrating = report.people["calibration"]
    return f"the {calibrating:,} people who set the threshold"
