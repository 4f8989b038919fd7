"""`facepairs evaluate`."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from facepairs.cli.output import print_json, print_rows, say, ticker

EXAMPLE = "Example: facepairs evaluate run/bundle default photos/ --report report.html"


def evaluate(
    bundles: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[BUNDLE]... [DATA]",
            show_default=False,
            help="What to measure, several to compare: bundles (default: the package's), TOMLs of "
            "other embedders, scores files, folders of crossval; then the folder of "
            "Person_Name/photo.jpg.",
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            help="heldout or view1, with a TOML view2 too. [default: the one the bundle was "
            "trained under]"
        ),
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
    report: Annotated[
        Path | None,
        typer.Option(
            help="HTML file to write: curves, tables, and photos of the worst errors, which stay "
            "in that file."
        ),
    ] = None,
    report_dir: Annotated[
        Path | None, typer.Option(help="Folder to write: plots as PNG and SVG, numbers, tables.")
    ] = None,
    no_images: Annotated[
        bool,
        typer.Option(
            "--no-images", help="Leave photos out of the report; names of files and people stay."
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Measure a verifier on people that it does not know, or any scores file; compare several.

    Accuracy is at a threshold that was set without the pairs it is reported on. Several verifiers
    are compared on the same pairs: McNemar's test for accuracy, a paired bootstrap for the rest.
    """
    from facepairs.evaluation.evaluate import evaluate as measure
    from facepairs.evaluation.report.tables import comparison_lines
    from facepairs.evaluation.report.write import check_places, write_reports
    from facepairs.evaluation.summary import table

    check_places(report, report_dir)
    result = measure(
        bundles or [],
        protocol=protocol,
        lists=lists,
        pairs_csv=pairs,
        scores=scores,
        threshold=threshold,
        progress=ticker,
    )
    for line in result.warnings:
        say(f"warning: {line}")
    if report or report_dir:
        command = shlex.join(["facepairs", *sys.argv[1:]])
        write_reports(result, command, report, report_dir, not no_images, ticker)
    if json:
        print_json(result.summary)
    elif result.comparison:
        print("\n".join(comparison_lines(result.summary)))
    else:
        print_rows([("pairs", result.summary["pairs"]), *table(result.summary)])
    for path in (report, report_dir):
        if path and not json:
            say(f"written: {path}")
