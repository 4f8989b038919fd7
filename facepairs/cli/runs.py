"""`facepairs runs`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from facepairs.cli.shared.options import Json
from facepairs.cli.shared.output import print_json, print_rows

if TYPE_CHECKING:
    from facepairs.training.run_folder.listing import RunFigures

EXAMPLE = "Example: facepairs runs run-a run-b"
HEADER = ("run", "state", "model", "people", "epochs", "loss", "validation AUC", "minutes")
UNKNOWN = "-"


def runs(
    paths: Annotated[
        list[Path] | None,
        Argument(
            metavar="RUN...",
            help="Run folders, or folders that hold them. [default: runs]",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List the runs of `facepairs train` with their figures; compare those that you name.

    For two runs and more, the settings in which they differ are printed, too. Figures of other
    people cannot be compared: `facepairs evaluate A/bundle B/bundle PHOTOS` measures on the same.
    """
    from facepairs.training.run_folder.listing import differing_settings, read_runs

    named = paths or [Path("runs")]
    found = read_runs(named)
    differing = differing_settings(found) if len(found) == len(named) > 1 else {}
    if json:
        print_json({"runs": [run.to_json() for run in found], "differing_settings": differing})
        return
    print_rows([HEADER, *map(_row, found)])
    if differing:
        print()
        folders = [str(run.folder) for run in found]
        rows = [(name, *map(_value, values)) for name, values in differing.items()]
        print_rows([("setting", *folders), *rows])


def _row(run: "RunFigures") -> tuple[str, ...]:
    return (
        str(run.folder),
        run.state,
        run.config.model,
        f"{run.people['training']:,}" if run.people else UNKNOWN,
        _epochs(run),
        UNKNOWN if run.loss is None else f"{run.loss:.4f}",
        UNKNOWN if run.val_auc is None else f"{run.val_auc:.4f}",
        UNKNOWN if run.minutes is None else f"{run.minutes:.1f}",
    )


def _epochs(run: "RunFigures") -> str:
    """Return the epochs done, and which one is kept or how many there will be."""
    if run.epoch is None:
        planned = f" of {run.config.max_epochs:,}" if not run.config.minutes else ""
        return f"{run.epochs:,}{planned}"
    return f"{run.epochs:,}" + (f", kept {run.epoch:,}" if run.epoch != run.epochs else "")


def _value(value: Any) -> str:
    return UNKNOWN if value is None or value == "" else str(value)
