"""`facepairs train`."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from facepairs.choices import Devices, Store
from facepairs.cli.shared.options import (
    Align,
    Config,
    Data,
    Json,
    Model,
    Seed,
    SkipBad,
)
from facepairs.cli.shared.output import INTERRUPTED, log, print_result
from facepairs.support.words import command_line, counted

if TYPE_CHECKING:
    from facepairs.training.run_folder import Run

EXAMPLE = "Example: facepairs train photos/ --out run --minutes 10"


def train(
    context: typer.Context,
    data: Data,
    out: Annotated[Path | None, Option(help="Run folder. [default: runs/…]")] = None,
    model: Model = None,
    init: Annotated[str | None, Option(help="Bundle to start from, or `default`.")] = None,
    lists: Annotated[Path | None, Option(help="LFW's lists: train on View 1's people.")] = None,
    epochs: Annotated[
        int | None, Option(help="Maximum number of epochs. [default: by model]")
    ] = None,
    minutes: Annotated[float | None, Option(help="Time limit, with at least one epoch.")] = None,
    batch_size: Annotated[int | None, Option(help="Pairs per step. [default: by model]")] = None,
    store: Annotated[Store, Option(help="Where images come from.")] = "auto",
    pair_cache: Annotated[Path | None, Option(help="Train on the pairs of `cache build`.")] = None,
    align: Align = None,
    seed: Seed = None,
    skip_bad: SkipBad = False,
    devices: Annotated[Devices, Option(help="Devices to train on; all: GPUs, else CPUs.")] = "auto",
    resume: Annotated[bool, Option("--resume", help="Continue the run in --out.")] = False,
    config: Config = None,
    json: Json = False,
) -> None:
    """Train a face verifier on a folder of faces.

    Some people are held out to choose the best epoch, calibrate and measure errors. Every epoch is
    saved: stop with Ctrl-C, continue with --resume.
    Requires the train extra: pip install '.[train]'
    """
    from facepairs.config import TrainConfig, read_table
    from facepairs.support.validation import validate
    from facepairs.training.train import train as run

    fields = {field.name for field in dataclasses.fields(TrainConfig)}
    given = read_table(config)
    for name, value in context.params.items():
        if name in fields and value is not None and value is not False:
            given[name] = str(value) if isinstance(value, Path) else value
    settings = validate(given, TrainConfig, str(config or ""))
    result = run(data, out, settings, resume=resume, devices=devices, store=store)
    if json or result.has_bundle:
        print_result(json, result.to_json(), [] if json else _rows(result, data))
    elif not result.interrupted:
        log(f"done; worker 0 has written {result.out}")
    if result.interrupted:
        words = command_line("train", data, "--out", result.out, "--resume")
        log(f"stopped after {counted(result.epochs, 'epoch')}; continue with: {words}")
        raise typer.Exit(INTERRUPTED)


def _rows(run: "Run", data: Path) -> list[tuple[str, str]]:
    decides = run.operating_point
    lists = ("--lists", run.config.lists) if run.config.lists else ()
    return [
        ("bundle", str(run.bundle)),
        ("trained", run.describe_time()),
        ("validation AUC", f"{run.val_auc:.4f}, measured on {_describe_people(run)}"),
        ("threshold", f"{decides.threshold:.4f}" if decides else ""),
        ("next", command_line("evaluate", run.bundle, data, *lists)),
        ("", command_line("verify", "A.jpg", "B.jpg", "--bundle", run.bundle)),
    ]


def _describe_people(run: "Run") -> str:
    if run.val_people:
        return f"{run.val_people:,} people who are not trained on"
    calibrating = run.people["calibration"]
    return f"the {calibrating:,} people who set the threshold"
