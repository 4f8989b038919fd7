"""Writes what is wanted of a report: the page, the folder of plots and numbers, or both.

DIR/report.json          every number
DIR/tables/NAME.csv      each table, plain values
DIR/plots/NAME.svg       each plot
DIR/scores/N-NAME.csv    the scores of each verifier, as `evaluate --scores` reads them
"""

import csv
import re
from pathlib import Path

from facepairs.errors import BadConfig
from facepairs.evaluation.evaluate import Evaluation
from facepairs.evaluation.report.cells import Cell, Table, Value
from facepairs.evaluation.report.data import ReportData, report_data
from facepairs.evaluation.report.page import render_page
from facepairs.evaluation.report.photos import PhotoFinder
from facepairs.evaluation.report.plots.model import model_plots
from facepairs.evaluation.report.plots.shared import shared_plots
from facepairs.evaluation.report.plots.style import svg
from facepairs.evaluation.report.tables import all_tables
from facepairs.evaluation.scores import write_scores
from facepairs.evaluation.serialize import to_plain, write_json
from facepairs.support.atomic import atomic_file, atomic_folder
from facepairs.support.extras import require_extras
from facepairs.support.places import check_output_folder, files_below, listed_files
from facepairs.support.progress import ProgressFactory, ignore_phases

REPORT = "report.json"


def check_places(page: Path | None, folder: Path | None) -> None:
    """Check that a report can be written, before anything is measured.

    Raises:
        MissingExtra: The extra `measure` is not installed.
        BadConfig: It cannot be written there.
    """
    if page is not None or folder is not None:
        require_extras(["measure"], "a report of facepairs evaluate")
    if page is not None and page.suffix.lower() not in (".html", ".htm"):
        raise BadConfig(f"--report {page}: use a name that ends in .html")
    if folder is not None:
        check_output_folder(
            folder, "a report", lambda old: listed_files(old / REPORT), error=BadConfig
        )


def write_reports(
    evaluation: Evaluation,
    command: str,
    page: Path | None,
    folder: Path | None,
    pictures: bool = True,
    progress: ProgressFactory = ignore_phases,
) -> None:
    """Write the report of an evaluation.

    Args:
        evaluation: The measurements.
        command: The command line, which the report quotes.
        page: HTML file to write, or None.
        folder: Folder of plots and numbers to write, or None.
        pictures: Whether photos of wrong pairs go into the page.
        progress: Called with the name of each phase.

    Raises:
        BadConfig: Something else than a report exists in the place of the folder.
        BadData: A place cannot be written, or the folder of photos has none of those in the scores.
    """
    report = report_data(evaluation, command, progress)
    if page is not None:
        scores = evaluation.measurements[0].scores
        photos = PhotoFinder.below(evaluation.data, scores) if pictures else None
        text = render_page(report, photos)
        with atomic_file(page) as handle:
            handle.write(text)
    if folder is not None:
        check_places(None, folder)
        with atomic_folder(folder) as draft:
            _fill_folder(draft, report, evaluation)


def _fill_folder(folder: Path, report: ReportData, evaluation: Evaluation) -> None:
    """Write numbers, tables, plots and scores into an empty folder."""
    for name in ("tables", "plots", "scores"):
        (folder / name).mkdir()
    for table in all_tables(report):
        _write_csv(folder / "tables" / f"{table.key}.csv", table)
    plots = shared_plots(report)
    for place, model in enumerate(report.models, 1):
        plots += model_plots(model, place)
    for plot in plots:
        (folder / "plots" / f"{plot.key}.svg").write_text(svg(plot.figure), encoding="utf-8")
    for place, one in enumerate(evaluation.measurements, 1):
        name = re.sub(r"[^\w.-]+", "-", one.name, flags=re.ASCII).strip("-.")[:60]
        write_scores(folder / "scores" / f"{place}-{name}.csv", one.scores, one.provenance)
    write_json(folder / REPORT, {**to_plain(report), "files": list(files_below(folder))})


def _write_csv(path: Path, table: Table) -> None:
    """Write plain values; an interval becomes two columns of its bounds, … low and … high."""
    columns = []
    for name, *cells in zip(table.columns, *table.rows, strict=True):
        values = [_csv_value(cell) for cell in cells]
        has_bounds = any(cell.bounds for cell in cells)
        if not has_bounds or any(value != "" for value in values):
            columns.append([name, *values])
        if has_bounds:
            bounds = [cell.bounds or ("", "") for cell in cells]
            columns.append([f"{name} low", *(low for low, _ in bounds)])
            columns.append([f"{name} high", *(high for _, high in bounds)])
    with open(path, "w", encoding="utf-8", newline="") as handle:
        csv.writer(handle).writerows(zip(*columns, strict=True))


def _csv_value(cell: Cell) -> Value:
    """Return the value; the text of a cell without one, such as the reason why there is none."""
    if cell.value is None:
        return "" if cell.bounds else cell.text
    return cell.value
