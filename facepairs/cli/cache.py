"""`facepairs cache build`."""

from pathlib import Path
from typing import Annotated

from typer import Option

from facepairs.choices import Encoding
from facepairs.cli.app import App
from facepairs.cli.shared.options import (
    Align,
    AnyData,
    BeamOptions,
    Config,
    Json,
    Runner,
    Seed,
    SkipBad,
    path,
    uses_beam,
)
from facepairs.cli.shared.output import print_result
from facepairs.support import console
from facepairs.support.extras import require_extra
from facepairs.support.words import counted

app = App(
    help="Keep sampled pairs and their images in TFRecord files.",
    epilog="Example: facepairs cache build photos/ --out cache/ --pair-count 20000",
    no_args_is_help=True,
)


@app.callback()
def cache() -> None:
    """Keep sampled pairs and their images in TFRecord files."""  # makes it a group


@app.command(epilog="Example: facepairs cache build photos/ --out cache/ --pair-count 100000")
def build(
    data: AnyData,
    out: Annotated[str, Option(parser=path, help="Folder to write; a cache there is replaced.")],
    pair_count: Annotated[int, Option(help="Number of pairs to sample.")],
    beam: BeamOptions = None,
    encoding: Annotated[
        Encoding, Option(help="Store JPEGs of the crops, or their pixels: no decoding, more space.")
    ] = "jpeg",
    align: Align = None,
    seed: Seed = None,
    skip_bad: SkipBad = False,
    lists: Annotated[
        Path | None, Option(help="Folder of LFW's lists: pairs of View 1's people.")
    ] = None,
    config: Config = None,
    runner: Runner = None,
    json: Json = False,
) -> None:
    """Write sampled pairs and their images to TFRecord files.

    Use the settings of the training (its --seed, --align, --lists, --config): training refuses a
    cache of other pairs. A cache is written whole or not at all, by threads of this machine or by a
    --runner. Of several faces in a photo, threads take the one that fits the folder, a runner takes
    the most prominent one. With the extra beam, DATA and --out may be gs://, s3:// or hdfs://
    places. Requires the train extra: pip install '.[train]'
    """
    require_extra("train", "facepairs cache build")
    with console.waiting("starting TensorFlow"):
        from facepairs.training.inputs.pair_cache import build_training_cache, cache_config

    people = str(lists) if lists else None
    settings = cache_config(config, align=align, seed=seed, skip_bad=skip_bad, lists=people)
    if uses_beam(runner, beam, data, out):
        from facepairs.beam.build_cache import build_cache_at

        manifest = build_cache_at(data, out, settings, pair_count, encoding, runner, beam or [])
    else:
        manifest = build_training_cache(Path(data), Path(out), settings, pair_count, encoding)
    size = manifest.total_bytes
    rows = [
        ("written", out),
        ("pairs", f"{manifest.pairs:,} in {counted(len(manifest.shards), 'shard')}"),
        ("crops", "JPEG" if encoding == "jpeg" else "raw pixels"),
        ("size", f"{size / 1e6:,.1f} MB"),
    ]
    values = {"out": out, "bytes": size, "manifest": manifest.to_json()}
    print_result(json, values, rows)
