"""The options of commands that can do their work on an Apache Beam runner."""

from typing import Annotated

import typer


def path(text: str) -> str:
    """Take a path or a URI as it was typed; `pathlib` would make one slash of `//`."""
    return text


Runner = Annotated[
    str | None,
    typer.Option(
        help="Do the work on this Apache Beam runner: DirectRunner, DataflowRunner, FlinkRunner, "
        "SparkRunner, …  [default: threads on this machine]"
    ),
]
BeamOptions = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- BEAM OPTIONS]",
        help="Beam's own options, with --runner.",
        show_default=False,
    ),
]
