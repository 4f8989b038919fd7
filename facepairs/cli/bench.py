"""`facepairs bench`."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from facepairs.cli.output import INTERRUPTED, NEGATIVE, print_rows, say, ticker

EXAMPLE = "Example: facepairs bench photos/ --rows pil,files,memory --json bench.json"


def bench(
    data: Annotated[Path, typer.Argument(help="Folder of Person_Name/photo.jpg.")],
    rows: Annotated[
        str | None, typer.Option(help="Pipelines to compare, as a,b,c. [default: all]")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds; a row runs once in each.")] = 3,
    seconds: Annotated[float, typer.Option(min=0.05, help="Measured of each row a round.")] = 5.0,
    batch_size: Annotated[int, typer.Option(min=2, max=4096, help="Pairs a batch.")] = 64,
    image_size: Annotated[
        int,
        typer.Option(
            min=16, max=250, help="Side of a crop: the centre so many of 250 pixels of an image."
        ),
    ] = 112,
    model: Annotated[
        str, typer.Option(help="Model of the training table: difference or siamese-conv.")
    ] = "difference",
    training: Annotated[
        bool, typer.Option(help="Measure the training loop from each store as well.")
    ] = True,
    json: Annotated[Path | None, typer.Option(help="Write everything as JSON.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the rows (.png, .svg, .pdf).")] = None,
) -> None:
    """Compare input pipelines on this machine, each in a process of its own.

    Files are read once beforehand, so the disk has no part in it; caches go to the folder for
    temporary files. Exit code 1 where a row fails; Ctrl-C shows what there is.
    """
    from facepairs.bench.plot import check_plot, write_plot
    from facepairs.bench.report import to_json
    from facepairs.bench.rows import choose
    from facepairs.bench.run import Options, run_bench

    chosen = choose(rows)
    if plot:
        check_plot(plot)
    options = Options(data, chosen, repeats, seconds, batch_size, image_size, model, training)
    results = run_bench(options, say, ticker("reading images"))
    report = to_json(results, shlex.join(["facepairs", *sys.argv[1:]]))
    _print(report)
    if json:
        _write_json(json, report)
    if plot:
        write_plot(plot, report)
    if results.interrupted:
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(NEGATIVE if results.failed else 0)


def _print(report: dict[str, Any]) -> None:
    from facepairs.bench.report import row_table, training_table

    machine, settings = report["machine"], report["settings"]
    print_rows(
        [
            ("machine", f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB"),
            ("images", f"{settings['images']:,} of {settings['people']:,} people"),
            ("pairs", f"{settings['pairs']:,} again and again, {settings['batch_size']} a batch"),
            ("crop", f"centre {settings['crop_px']} of {settings['frame_px']} pixels"),
            ("page cache", settings["page_cache"]),
        ]
    )
    for table in (row_table(report["rows"]), training_table(report["training"])):
        if len(table) > 1:
            print("\n" + "\n".join(table))
    print()
    print_rows((row["name"], row["note"]) for row in report["rows"])


def _write_json(path: Path, report: dict[str, Any]) -> None:
    import json

    from facepairs.support.atomic import atomic_file

    with atomic_file(path) as handle:
        handle.write(json.dumps(report, indent=1, allow_nan=False) + "\n")
