"""`facepairs evaluate`."""

from pathlib import Path
from typing import Annotated

import typer

from facepairs.cli.output import print_json, print_rows, say, ticker

EXAMPLE = "Example: facepairs evaluate run/bundle photos/ --scores scores.csv"


def evaluate(
    bundle: Annotated[
        str | None, typer.Argument(help="Bundle to measure; default is the one of the package.")
    ] = None,
    data: Annotated[Path | None, typer.Argument(help="Folder of Person_Name/photo.jpg.")] = None,
    protocol: Annotated[
        str | None,
        typer.Option(help="heldout or view1. [default: the one the bundle was trained under]"),
    ] = None,
    lists: Annotated[Path | None, typer.Option(help="Folder of the official LFW lists.")] = None,
    pairs: Annotated[
        Path | None, typer.Option(help="CSV left,right,genuine with paths below DATA.")
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(help="Scores file to write; without BUNDLE the one to read and measure."),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="With a scores file alone: accept at this score and above.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Measure a verifier on people that it does not know, or any scores file.

    Accuracy is at a threshold that was set without the pairs it is reported on.
    """
    from facepairs.evaluation.evaluate import evaluate_bundle, evaluate_scores
    from facepairs.evaluation.summary import table

    if bundle is None:
        if scores is None:
            raise typer.BadParameter("give BUNDLE and DATA, or --scores FILE alone")
        result = evaluate_scores(scores, threshold)
    else:
        if data is None:
            raise typer.BadParameter("give the folder of photos after the bundle")
        if threshold is not None:
            raise typer.BadParameter("--threshold goes with a scores file; a bundle has its own")
        result = evaluate_bundle(
            bundle, data, protocol, lists, pairs, scores, ticker("scoring pairs")
        )
    for line in result.warnings:
        say(f"warning: {line}")
    if json:
        print_json(result.summary)
    else:
        print_rows([("pairs", result.summary["pairs"]), *table(result.summary)])
