"""Tables and figures of an evaluation as files, for documents of others."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from facepairs.errors import BadData
from facepairs.evaluation.report.table import Table
from facepairs.support.atomic import atomic_file

if TYPE_CHECKING:
    from facepairs.evaluation.report.figures import Figure


def write_tables(tables: Iterable[Table], folder: Path) -> None:
    """Write each table as KEY.csv and KEY.tex into a folder, which is made if it is missing.

    Raises:
        BadData: A file cannot be written.
    """
    for table in tables:
        _write(folder / f"{table.key}.csv", table.to_csv().encode())
        _write(folder / f"{table.key}.tex", table.to_latex().encode())


def write_figures(figures: "Iterable[Figure]", folder: Path) -> None:
    """Write each figure as KEY.svg and KEY.png; folder and errors are those of `write_tables`."""
    for figure in figures:
        _write(folder / f"{figure.key}.svg", figure._repr_svg_().encode())
        _write(folder / f"{figure.key}.png", figure.png())


def check_folder(folder: Path) -> None:
    """Raise BadData where files cannot be written into a folder because it is a file."""
    if folder.exists() and not folder.is_dir():
        raise BadData(f"{folder}: not a folder; choose another place")


def _write(path: Path, content: bytes) -> None:
    with atomic_file(path, "wb") as handle:
        handle.write(content)
