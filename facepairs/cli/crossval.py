"""`facepairs crossval`."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from facepairs.cli.output import INTERRUPTED, print_json, say, ticker

EXAMPLE = (
    "Example: facepairs crossval data/lfw/lfw-deepfunneled --lists data/lfw --out view2 "
    "--methods pixels,eigenfaces"
)


def crossval(
    data: Annotated[Path, typer.Argument(help="Folder of Person_Name/photo.jpg.")],
    lists: Annotated[Path, typer.Option(help="Folder of LFW's people.txt and pairs.txt.")],
    out: Annotated[Path, typer.Option(help="Folder for a run folder a fold, and the results.")],
    methods: Annotated[
        str | None,
        typer.Option(
            help="Some of siamese, siamese-conv, difference, pixels, eigenfaces, and "
            "difference-article, which draws its pairs as tutorials do. [default: train's own]"
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="TOML file: seed, folds, methods, and a table of settings a method."),
    ] = None,
    folds: Annotated[
        str | None, typer.Option(help="Such as 3, 1-10 or 2,5,7-8. [default: all]")
    ] = None,
    minutes_per_fold: Annotated[
        float | None, typer.Option(help="Plan a trained method's epochs to fit in so many minutes.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on in --out; folds that are done stay.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Measure methods by LFW's View 2: ten times, train on nine sets of people, test the tenth.

    Thresholds come from people of the nine sets that were not trained on. For reporting only:
    choose models and settings on View 1. Ctrl-C saves, and --resume goes on.
    """
    from facepairs.cli.quiet import quiet_tensorflow
    from facepairs.evaluation.view2 import comparison
    from facepairs.support.machine import require_room_to_train
    from facepairs.training.view2.folds import prepare_view2
    from facepairs.training.view2.methods import check_place, make_plan

    plan = make_plan(methods, folds, minutes_per_fold, config)
    check_place(out, data, resume)
    require_room_to_train()
    view = prepare_view2(data, lists, plan.folds, say, ticker("checking images"))
    quiet_tensorflow()
    from facepairs.training.view2.crossval import crossval as run

    report = run(view, plan, out, resume, say, ticker)
    if json:
        print_json({**report.results, "out": str(out), "interrupted": report.interrupted})
    elif report.results["methods"]:
        print("\n".join(comparison(report.results["methods"])))
    if report.interrupted:
        words = [word for word in sys.argv[1:] if word != "--resume"]
        say(f"stopped and saved; go on with: {shlex.join(['facepairs', *words, '--resume'])}")
        raise typer.Exit(INTERRUPTED)
