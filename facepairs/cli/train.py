"""`facepairs train`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from facepairs.cli.output import (
    INTERRUPTED,
    LOST_WORKER,
    print_error,
    print_json,
    print_rows,
    say,
    ticker,
)
from facepairs.errors import LostWorker

EXAMPLE = "Example: facepairs train photos/ --out run --minutes 10"


def train(
    data: Annotated[Path, typer.Argument(help="Folder of Person_Name/photo.jpg.")],
    out: Annotated[
        Path | None, typer.Option(help="Run folder; its bundle/ is the verifier. [default: runs/…]")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="siamese (default), siamese-conv, difference, or a baseline: pixels, eigenfaces."
        ),
    ] = None,
    init: Annotated[
        str | None,
        typer.Option(help="Bundle to start from, with a gentler recipe; default: the package's."),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            help="What a siamese model learns from: in-batch (default), supervised, margin, "
            "triplet, triplet-hard, cross-entropy, cosface or arcface."
        ),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="heldout (default: split by people) or view1 (LFW's lists).")
    ] = None,
    lists: Annotated[Path | None, typer.Option(help="Folder of the official LFW lists.")] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Epochs; with --minutes the most. [default: 30]")
    ] = (None),
    minutes: Annotated[
        float | None, typer.Option(help="Plan the epochs to fit in so many minutes of training.")
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(help="Pairs a step, on all devices together. [default: 256, others less]"),
    ] = None,
    image_size: Annotated[
        int | None,
        typer.Option(help="Side the network works at, 64 to 224 pixels. [default: 128, others 64]"),
    ] = None,
    store: Annotated[
        str | None, typer.Option(help="auto (default), files, memory or tfrecord.")
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Folder made by `facepairs cache build`; for tfrecord.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of split, pairs, weights, augmentation. [default: 0]")
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave unreadable images out.")
    ] = False,
    devices: Annotated[
        str,
        typer.Option(
            help="auto: all GPUs, or with TF_CONFIG all workers; one; all (without a GPU: CPUs)."
        ),
    ] = "auto",
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic", help="The same run each time on a GPU too; CPUs need it not. Slower."
        ),
    ] = False,
    checkpoint_minutes: Annotated[
        float | None,
        typer.Option(help="Save that often, not only after each epoch. [default: 5]"),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    config: Annotated[
        Path | None, typer.Option(help="TOML file of settings; options given here come first.")
    ] = None,
    tensorboard_images: Annotated[
        bool, typer.Option(help="Show faces and names in the run's TensorBoard log.")
    ] = True,
    profile: Annotated[
        bool, typer.Option("--profile", help="Add a profile of five steps to that log.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a face verifier on a folder of faces.

    People are set aside to calibrate the threshold and to measure errors on; Ctrl-C saves, and
    --resume goes on, with more devices or fewer. Where several workers share a training and one is
    lost, the others exit with 138.
    """
    from facepairs.cli.quiet import quiet_tensorflow
    from facepairs.support.machine import require_room_to_train
    from facepairs.training.distributed.cluster import DEVICES, read_cluster
    from facepairs.training.people import prepare
    from facepairs.training.run import resolve_config

    if devices not in DEVICES:
        raise typer.BadParameter(f"--devices is one of {', '.join(DEVICES)}")
    workers = 1 if devices == "one" else read_cluster().workers
    if out is None and workers > 1:
        raise typer.BadParameter("several workers need the run folder that they share: --out RUN")
    if out is None:
        from datetime import datetime

        if resume:
            raise typer.BadParameter("--resume needs the run folder: --out RUN")
        out = Path("runs") / datetime.now().strftime("%Y%m%d-%H%M%S")
    given: dict[str, Any] = {
        "model": model,
        "loss": loss,
        "init": init,
        "protocol": protocol,
        "lists": str(lists) if lists else None,
        "epochs": epochs,
        "minutes": minutes,
        "batch_size": batch_size,
        "image_size": image_size,
        "store": store,
        "cache": str(cache) if cache else None,
        "seed": seed,
        "skip_bad": skip_bad or None,
        "deterministic": deterministic or None,
        "checkpoint_minutes": checkpoint_minutes,
    }
    options = {name: value for name, value in given.items() if value is not None}
    settings = resolve_config(options, config, out, resume)
    require_room_to_train()
    index, split = prepare(data, settings, say, ticker("checking images"))
    quiet_tensorflow()
    from facepairs.training.train import train as run

    try:
        report = run(
            index, split, out, settings, resume, say, ticker, tensorboard_images, profile, config,
            devices=devices,
        )  # fmt: skip
    except LostWorker as lost:
        print_error(lost.kind, str(lost), json)
        raise typer.Exit(LOST_WORKER) from None
    if json:
        print_json(report.to_json())
    elif report.worker and not report.interrupted:
        say(f"done; worker 0 has written {out}")
    elif not report.interrupted:
        lists_option = f" --lists {settings.lists}" if settings.protocol == "view1" else ""
        print_rows(
            [
                ("bundle", str(report.bundle)),
                ("trained", f"{report.epochs} epochs in {report.seconds / 60:.1f} minutes"),
                ("validation AUC", f"{report.val_auc:.4f} (people that chose the threshold)"),
                ("threshold", f"{report.threshold:.4f}"),
                ("next", f"facepairs evaluate {report.bundle} {data}{lists_option}"),
                ("", f"facepairs verify A.jpg B.jpg --model {report.bundle}"),
            ]
        )
    if report.interrupted:
        say(f"stopped and saved; go on with: facepairs train {data} --out {out} --resume")
        raise typer.Exit(INTERRUPTED)
