"""`facepairs crossval`."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from facepairs.cli.shared.options import Config, Data, Json, Model
from facepairs.cli.shared.output import INTERRUPTED, log, print_json
from facepairs.support.words import command_line

EXAMPLE = (
    "Example: facepairs crossval data/lfw/lfw-deepfunneled --lists data/lfw --out view2 "
    "--model difference"
)


def crossval(
    data: Data,
    lists: Annotated[Path, Option(help="Folder of LFW's people.txt and pairs.txt.")],
    out: Annotated[Path, Option(help="Folder for one run folder per fold, and the results.")],
    model: Model = None,
    config: Config = None,
    fold: Annotated[
        list[int] | None, Option(help="Number of a fold, from 1; repeatable. [default: all]")
    ] = None,
    resume: Annotated[
        bool, Option("--resume", help="Continue the run in --out; finished folds stay.")
    ] = False,
    json: Json = False,
) -> None:
    """Measure the training of a model by LFW's View 2.

    Trains ten times on nine sets of people and tests on the tenth. Thresholds come from people of
    the nine sets who were not trained on. Use it for reporting only; choose models and settings on
    View 1. Ctrl-C saves, and --resume continues. `evaluate` compares the folders of several runs.
    Requires the train extra: pip install '.[train]'
    """
    from facepairs.config import TrainConfig, read_table
    from facepairs.evaluation.report.table import facts_of
    from facepairs.evaluation.report.tables import figure_rows
    from facepairs.support.validation import validate
    from facepairs.training.view2.crossval import crossval as run

    given = {**read_table(config), **({"model": model} if model else {})}
    settings = validate(given, TrainConfig, str(config or ""))
    report = run(data, lists, out, settings, folds=fold or (), resume=resume)
    if json:
        print_json(report)
    elif report.summary:
        print(facts_of("figures", "All figures", figure_rows(report.summary)))
    if report.interrupted:
        words = [word for word in sys.argv[1:] if word != "--resume"]
        log(f"stopped and saved; continue with: {command_line(*words, '--resume')}")
        raise typer.Exit(INTERRUPTED)
