"""`facepairs bench`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from facepairs.choices import BenchRow, ImageModel
from facepairs.cli.shared.options import Align, Data, Json, joined, typed_command
from facepairs.cli.shared.output import (
    INTERRUPTED,
    NEGATIVE,
    OK,
    log,
    print_json,
    print_rows,
    progress_display,
)
from facepairs.support.places import check_output_file
from facepairs.support.words import counted

if TYPE_CHECKING:
    from facepairs.bench.run import BenchResults

EXAMPLE = "Example: facepairs bench photos/ --rows pil,files,memory --out bench.json"


def bench(
    data: Data,
    rows: Annotated[
        str | None,
        Option(help=f"Comma-separated pipelines: {joined(BenchRow)}. [default: all]"),
    ] = None,
    images: Annotated[
        int, Option(min=4, help="Photos to use at most, of people drawn at random.")
    ] = 4000,
    repeats: Annotated[int, Option(min=1, help="Rounds; each row runs once per round.")] = 2,
    seconds: Annotated[float, Option(min=0.05, help="Time per row and round.")] = 2.0,
    batch_size: Annotated[int, Option(min=2, max=4096, help="Pairs per batch.")] = 64,
    image_size: Annotated[
        int,
        Option(min=16, max=250, help="Side of the centre crop, in pixels of a 250-px frame."),
    ] = 112,
    model: Annotated[ImageModel, Option(help="Architecture to train.")] = "difference",
    align: Align = None,
    training: Annotated[
        bool,
        Option(help="Measure training as well: from files and memory, or from stores in --rows."),
    ] = True,
    out: Annotated[Path | None, Option(help="JSON file to write.")] = None,
    json: Json = False,
) -> None:
    """Compare input pipelines on this machine, each in a process of its own.

    Says beforehand how long it takes: with the defaults about four minutes on two cores. For
    figures to publish, use more photos, rounds and seconds. Faces are found beforehand, and all
    files read once, so the disk does not matter; caches are written to the folder for temporary
    files. Exit code 1 if a row fails; Ctrl-C prints what was measured.
    """
    from facepairs.bench.job import BenchSettings
    from facepairs.bench.report import to_json
    from facepairs.bench.rows import STORES, TRAINED, select_rows
    from facepairs.bench.run import Options, run_bench
    from facepairs.evaluation.serialize import write_json

    selected = select_rows(rows)
    if out:
        check_output_file(out)
    settings = BenchSettings(
        str(data), batch_size, image_size, seconds, model, align or "landmarks", images
    )
    stores = [name for name in (STORES if rows else TRAINED) if training and name in selected]
    options = Options(settings, selected, repeats, stores)
    results = run_bench(options, log, progress_display(json))
    report = to_json(results, typed_command())
    if json:
        print_json(report)
    else:
        _print_results(results)
    if out:
        write_json(out, report)
        log(f"written: {out}")
    if results.interrupted:
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(NEGATIVE if results.failed else OK)


def _print_results(results: "BenchResults") -> None:
    from facepairs.bench.report import row_table, summarize_rows, summarize_steps, training_table
    from facepairs.support.machine import describe

    machine, settings = describe(), results.options.settings
    print_rows(
        [
            ("machine", f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB"),
            (
                "images",
                f"{counted(results.images, 'image')} of "
                f"{counted(results.people, 'person', 'people')}",
            ),
            (
                "crop",
                f"centre {settings.crop_px} of 250 pixels, align {settings.align}; "
                f"batch of {settings.batch_size}",
            ),
            ("page cache", results.page_cache),
        ]
    )
    for table in (row_table(summarize_rows(results)), training_table(summarize_steps(results))):
        if len(table) > 1:
            print("\n" + "\n".join(table))
    print()
    print_rows((name, row.note) for name, row in results.options.rows.items())
