"""`facepairs cache build | check | forget`."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from facepairs.choices import Encoding, ImageModel
from facepairs.cli.shared.options import (
    Align,
    AnyData,
    BeamOptions,
    Config,
    Json,
    Lists,
    Runner,
    Seed,
    SkipBad,
    path,
    training_settings,
)
from facepairs.cli.shared.output import (
    NEGATIVE,
    OK,
    log,
    print_json,
    print_result,
    progress_display,
    starting_tensorflow,
)
from facepairs.support.words import counted

app = typer.Typer(
    help="Keep sampled pairs in TFRecord files; forget what was found in photos.",
    epilog="Example: facepairs cache build photos/ --out cache/ --pair-count 20000",
    no_args_is_help=True,
)


@app.command(epilog="Example: facepairs cache build photos/ --out cache/ --pair-count 100000")
def build(
    context: typer.Context,
    data: AnyData,
    out: Annotated[str, Option(parser=path, help="Folder to write; a cache there is replaced.")],
    pair_count: Annotated[int, Option(help="Number of pairs to sample.")],
    beam: BeamOptions = None,
    encoding: Annotated[
        Encoding, Option(help="jpeg stores crops as JPEGs, raw their pixels.")
    ] = "jpeg",
    shards: Annotated[
        int | None, Option(help="Files. [default: one per 1,000 pairs to 16, then per 8,192]")
    ] = None,
    model: Annotated[
        ImageModel | None, Option(help="Architecture to train. [default: difference]")
    ] = None,
    align: Align = None,
    seed: Seed = None,
    lists: Lists = None,
    skip_bad: SkipBad = False,
    config: Config = None,
    runner: Runner = None,
    json: Json = False,
) -> None:
    """Write sampled pairs and their images to TFRecord files.

    Use the settings of the training (its --config): training refuses a cache of other pairs. A
    cache is written whole or not at all, by threads of this machine or by a --runner, with the
    same bytes. With facepairs[beam], DATA and --out may be gs://, s3:// or hdfs:// places.
    """
    with starting_tensorflow(json):
        from facepairs.beam.pair_cache import build_cache_at
        from facepairs.training.inputs.pair_cache import cache_config

    manifest = build_cache_at(
        data,
        out,
        cache_config(training_settings(context), config),
        pair_count,
        encoding,
        shards,
        log=log,
        progress=progress_display(json),
        runner=runner,
        beam_options=beam or [],
    )
    size = manifest.total_bytes
    rows = [
        ("written", out),
        ("pairs", f"{manifest.pairs:,} in {counted(len(manifest.shards), 'shard')}, {encoding}"),
        ("size", f"{size / 1e6:,.1f} MB"),
    ]
    values = {"out": out, "bytes": size, "manifest": manifest.to_json(), "schema": 1}
    print_result(json, values, rows)


@app.command(epilog="Example: facepairs cache check cache/")
def check(
    cache: Annotated[Path, Argument(help="Folder made by `facepairs cache build`.")],
    json: Json = False,
) -> None:
    """Compare a whole cache with its checksums.

    Lists every file that is damaged, truncated, missing or unexpected; exit code 1 if there is one,
    2 if the folder has no manifest that can be read.
    """
    from facepairs.pipeline.records.manifest import check_cache

    problems = check_cache(cache, progress_display(json)("checking shards"))
    if json:
        print_json({"out": str(cache), "ok": not problems, "problems": problems, "schema": 1})
    else:
        print("\n".join(problems) if problems else "ok")
    raise typer.Exit(NEGATIVE if problems else OK)


@app.command(epilog="Example: facepairs cache forget")
def forget(json: Json = False) -> None:
    """Delete what all commands found in photos and kept: places of faces, and embeddings.

    It is found again when it is needed. Galleries, scores and bundles stay.
    """
    from facepairs.faces.photo_cache import photo_cache

    cache = photo_cache()
    deleted = cache.forget()
    values = {"photo_cache": str(cache.path), "deleted": deleted, "schema": 1}
    print_result(json, values, [("deleted" if deleted else "nothing at", str(cache.path))])
