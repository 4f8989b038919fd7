"""`facepairs export`."""

from pathlib import Path
from typing import Annotated

import typer

from facepairs.cli.output import print_json, print_rows

EXAMPLE = "Example: facepairs export run/bundle phone --format litert"


def export(
    bundle: Annotated[str, typer.Argument(help="Bundle to export; default is the package's.")],
    out: Annotated[Path, typer.Argument(help="Folder to write; an earlier export is replaced.")],
    format: Annotated[
        str, typer.Option(help="onnx, litert (TensorFlow Lite) or saved_model.")
    ] = "onnx",
    tolerance: Annotated[
        float, typer.Option(help="Refuse when outputs differ from the bundle's by more.")
    ] = 1e-4,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Write a bundle's network for other runtimes, checked against the bundle's own.

    Both networks get the same random crops and drawn faces; nothing is written where they differ.
    """
    if format in ("litert", "saved_model"):
        from facepairs.cli.quiet import quiet_tensorflow

        quiet_tensorflow()
    from facepairs.training.export.export import export as run

    done = run(bundle, out, format, tolerance)
    if json:
        print_json(done)
    else:
        parity = done["parity"]
        print_rows(
            [
                ("written", f"{done['out']} ({done['format']}; its README.md tells how to use it)"),
                ("inputs", f"{', '.join(done['inputs'])}; output {done['output']}"),
                (
                    "difference",
                    f"{parity['max_difference']:.3g} at most from the bundle's network, on "
                    f"{parity['crops']} crops (refused from {parity['tolerance']:g})",
                ),
            ]
        )
