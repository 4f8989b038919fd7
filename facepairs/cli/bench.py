"""`facepairs bench`."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from facepairs.choices import BenchRow
from facepairs.cli.shared.options import Data, Json, joined, typed_command
from facepairs.cli.shared.output import (
    INTERRUPTED,
    NEGATIVE,
    OK,
    can_print,
    log,
    print_json,
    print_rows,
)
from facepairs.support.extras import require_extra
from facepairs.support.places import check_output_file
from facepairs.support.words import counted

EXAMPLE = "Example: facepairs bench photos/ --rows pil,files,memory --out bench.json"
MOST_IMAGES = 4000


def bench(
    data: Data,
    rows: Annotated[
        str | None,
        Option(help=f"Comma-separated pipelines: {joined(BenchRow)}. [default: all]"),
    ] = None,
    repeats: Annotated[int, Option(min=1, help="Rounds; each row runs once per round.")] = 2,
    seconds: Annotated[float, Option(min=0.05, help="Time per row and round.")] = 2.0,
    training: Annotated[
        bool, Option(help="Also measure training, from files and memory, or the stores in --rows.")
    ] = True,
    out: Annotated[Path | None, Option(help="JSON file to write.")] = None,
    json: Json = False,
) -> None:
    """Compare the speed of input pipelines on this machine.

    Runs each pipeline in its own process, and says beforehand how long it takes: about five minutes
    on two cores with the defaults. For figures to publish, use more rounds and seconds. Uses about
    4,000 photos of people drawn at random. Faces are found first, which reads all files once, so
    the disk does not matter if they fit in memory. Caches go to the folder for temporary files.
    Exit code 1 if a row fails; Ctrl-C prints the results so far. Requires the train extra: pip
    install '.[train]'
    """
    require_extra("train", "facepairs bench")
    from facepairs.bench.report import to_json
    from facepairs.bench.rows import STORES, TRAINED, Settings, select_rows
    from facepairs.bench.run import run_bench
    from facepairs.support.results import write_json

    selected = select_rows(rows)
    if out:
        check_output_file(out)
    trained = () if not training else STORES if rows else TRAINED
    settings = Settings(
        data=str(data),
        rows=selected,
        training=[name for name in trained if name in selected],
        repeats=repeats,
        seconds=seconds,
        most_images=MOST_IMAGES,
    )
    results = run_bench(settings)
    report = to_json(results, typed_command())
    if json:
        print_json(report)
    else:
        _print_report(report)
    if out:
        write_json(out, report)
        log(f"written: {out}")
    if results.interrupted:
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(NEGATIVE if results.failed else OK)


def _print_report(report: dict[str, Any]) -> None:
    from facepairs.bench.report import BLOCKS, bars, conclusion, to_text

    machine, settings = report["machine"], report["settings"]
    images = f"{counted(settings['images'], 'image')}, in batches of {settings['batch_size']}"
    print_rows(
        [
            ("machine", f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB"),
            ("images", f"{images}, align {settings['align']}"),
        ]
    )
    print("\n" + "\n".join(bars(report, can_print(BLOCKS))) + "\n")
    print("\n".join(to_text(report)) + "\n")
    print_rows((row["name"], row["note"]) for row in report["rows"])
    if sentences := conclusion(report):
        print("\n" + "\n".join(sentences))
