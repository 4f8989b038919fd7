"""`facepairs export`."""

from pathlib import Path
from typing import Annotated

from typer import Option

from facepairs.choices import ExportFormat
from facepairs.cli.shared.options import BundleArgument, Json
from facepairs.cli.shared.output import print_result
from facepairs.support import console
from facepairs.support.extras import require_extra

EXAMPLE = "Example: facepairs export run/bundle --out phone --format litert"


def export(
    bundle: BundleArgument,
    out: Annotated[Path, Option(help="Folder to write; an earlier export is replaced.")],
    format: Annotated[
        ExportFormat, Option(help="litert is TensorFlow Lite; int8: 8-bit integers.")
    ] = "onnx",
    json: Json = False,
) -> None:
    """Write a bundle's network for ONNX Runtime or LiteRT.

    Compares the outputs of both networks on random crops and drawn faces, and writes nothing if
    they differ. Requires the train extra: pip install '.[train]'
    """
    require_extra("train", "facepairs export")
    with console.waiting(f"writing {format} and comparing it with the bundle"):
        from facepairs.support.results import to_plain
        from facepairs.training.export import export as run

        result = run(bundle, out, format)
    parity = result.parity
    difference = (
        f"at most {parity.max_difference:.3g} from the bundle's network, on {parity.crops} crops "
        f"(tolerance {parity.tolerance:g})"
    )
    rows = [
        ("written", f"{out} ({result.format}; README.md there explains its use)"),
        ("inputs", f"{', '.join(result.inputs)}; output {result.output}"),
        ("difference", difference),
    ]
    print_result(json, {**to_plain(result), "bundle": bundle, "out": str(out)}, rows)
