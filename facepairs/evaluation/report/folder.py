"""The report as a folder: plots as SVG, numbers as JSON and CSV.

DIR/report.json          every number
DIR/tables/NAME.csv      each table, plain values
DIR/plots/NAME.svg       each plot
DIR/scores/N-NAME.csv    the scores of each verifier, as `evaluate --scores` reads them
"""

import csv
import re
from collections.abc import Sequence
from pathlib import Path

from facepairs.errors import BadConfig
from facepairs.evaluation.measurement import Measurement
from facepairs.evaluation.report.cells import Cell, Table
from facepairs.evaluation.report.data import ReportData
from facepairs.evaluation.report.plots.model import model_plots
from facepairs.evaluation.report.plots.shared import shared_plots
from facepairs.evaluation.report.plots.style import svg
from facepairs.evaluation.report.tables import all_tables
from facepairs.evaluation.scores import write_scores
from facepairs.evaluation.serialize import write_json
from facepairs.support.atomic import atomic_folder
from facepairs.support.outputs import check_output_folder

REPORT = "report.json"


def check_folder(out: Path) -> None:
    """Raise BadConfig where something else than an older report exists."""
    check_output_folder(out, "a report", lambda old: (old / REPORT).is_file(), error=BadConfig)


def write_folder(out: Path, report: ReportData, measurements: Sequence[Measurement]) -> None:
    """Write the folder, completely or not at all; an older report in its place is replaced.

    Raises:
        BadConfig: Something else than a report exists there.
        BadData: The folder cannot be written.
    """
    check_folder(out)
    with atomic_folder(out) as folder:
        write_json(folder / REPORT, report)
        for name in ("tables", "plots", "scores"):
            (folder / name).mkdir()
        for table in all_tables(report):
            _write_csv(folder / "tables" / f"{table.key}.csv", table)
        plots = shared_plots(report)
        for place, model in enumerate(report.models, 1):
            plots += model_plots(model, place)
        for plot in plots:
            (folder / "plots" / f"{plot.key}.svg").write_text(svg(plot.figure), encoding="utf-8")
        for place, one in enumerate(measurements, 1):
            name = re.sub(r"[^\w.-]+", "-", one.name, flags=re.ASCII).strip("-.")[:60]
            write_scores(folder / "scores" / f"{place}-{name}.csv", one.scores)


def _write_csv(path: Path, table: Table) -> None:
    """Write plain values; intervals and compound cells stay as people read them."""
    with open(path, "w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(table.columns)
        writer.writerows([_csv_value(cell) for cell in row] for row in table.rows)


def _csv_value(cell: Cell) -> object:
    is_compound = any(mark in cell.text for mark in (" to ", " of ", " ± "))
    return cell.text if is_compound or cell.value is None else cell.value
