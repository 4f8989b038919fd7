"""`facepairs cache build | check`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from facepairs.cli.output import NEGATIVE, print_json, print_rows, say, ticker
from facepairs.cli.runner import BeamOptions, Runner
from facepairs.cli.runner import path as as_typed

app = typer.Typer(
    help="Keep sampled pairs in TFRecord files.",
    epilog="Example: facepairs cache build photos/ cache/ --pairs 20000",
    no_args_is_help=True,
)


class Encoding(StrEnum):
    """What a record holds of an image."""

    JPEG = "jpeg"
    RAW = "raw"


@app.command(epilog="Example: facepairs cache build photos/ cache/ --pairs 100000")
def build(
    data: Annotated[str, typer.Argument(parser=as_typed, help="Folder of Person_Name/photo.jpg.")],
    out: Annotated[
        str, typer.Argument(parser=as_typed, help="Folder to write; a cache there is replaced.")
    ],
    pairs: Annotated[int, typer.Option(help="How many pairs to sample.")],
    encoding: Annotated[
        Encoding, typer.Option(help="jpeg copies the files, raw keeps decoded crops.")
    ] = Encoding.JPEG,
    shards: Annotated[
        int | None,
        typer.Option(
            help="Files. [default: one a thousand pairs, up to 16, then 8,192 pairs each]"
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Model to train: difference (default) or siamese-conv.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The training's seed. [default: 0]")] = None,
    protocol: Annotated[
        str | None, typer.Option(help="heldout (default: split by people) or view1 (LFW's lists).")
    ] = None,
    lists: Annotated[Path | None, typer.Option(help="Folder of the official LFW lists.")] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave unreadable images out.")
    ] = False,
    config: Annotated[
        Path | None, typer.Option(help="The training's TOML file; options given come first.")
    ] = None,
    runner: Runner = None,
    beam: BeamOptions = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Write sampled pairs and their images to TFRecord files.

    Give the training's own settings: a cache of other pairs is refused there. A cache is written
    whole or not at all. The work is done in threads here, or where --runner says: a worker writes
    a shard, and all bytes are the same. With facepairs[beam] DATA and OUT may be gs://, s3:// or
    hdfs:// places.
    """
    from facepairs.cli.quiet import quiet_tensorflow

    given: dict[str, Any] = {
        "model": model,
        "seed": seed,
        "protocol": protocol,
        "lists": str(lists) if lists else None,
        "skip_bad": skip_bad or None,
    }
    quiet_tensorflow()
    from facepairs.beam.places import place
    from facepairs.beam.runner import choose_run
    from facepairs.training.cache import build_training_cache

    run = choose_run(runner, beam or [])
    options = {name: value for name, value in given.items() if value is not None}
    made = build_training_cache(
        place(data), place(out), pairs, encoding.value, shards, options, config, say, ticker, run
    )
    size = sum(shard["bytes"] for shard in made["shards"])
    if json:
        print_json({"out": out, "bytes": size, "manifest": made, "schema": 1})
    else:
        print_rows(
            [
                ("cache", out),
                ("pairs", f"{made['pairs']:,} in {len(made['shards'])} shards, {encoding.value}"),
                ("size", f"{size / 1e6:,.1f} MB"),
            ]
        )


@app.command(epilog="Example: facepairs cache check cache/")
def check(
    out: Annotated[str, typer.Argument(parser=as_typed, help="Folder that cache build wrote.")],
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Compare a whole cache with its checksums.

    Names every file that is damaged, cut, missing or left over. Exit code 1 where there is one.
    """
    from facepairs.beam.places import place
    from facepairs.pipeline.records.manifest import check_cache

    problems = check_cache(place(out), ticker("checking shards"))
    if json:
        print_json({"out": out, "ok": not problems, "problems": problems, "schema": 1})
    else:
        print("\n".join(problems) if problems else "ok")
    raise typer.Exit(NEGATIVE if problems else 0)
