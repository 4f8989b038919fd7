"""Writes what is wanted of a report: the page, the folder, or both."""

from pathlib import Path

from facepairs.errors import BadConfig
from facepairs.evaluation.evaluate import Evaluation
from facepairs.evaluation.report.data import report_data
from facepairs.evaluation.report.folder import check_folder, write_folder
from facepairs.evaluation.report.page import write_page
from facepairs.evaluation.report.photos import PhotoFinder
from facepairs.support.progress import ProgressFactory, ignore_phases


def check_places(page: Path | None, folder: Path | None) -> None:
    """Raise BadConfig where a report could not be written, before anything is measured."""
    if page is not None and page.suffix.lower() not in (".html", ".htm"):
        raise BadConfig(f"--report {page}: use a name that ends in .html")
    if page is not None and page.is_dir():
        raise BadConfig(f"--report {page}: is a folder; use a name that ends in .html")
    if folder is not None:
        check_folder(folder)


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
        write_page(page, report, PhotoFinder.below(evaluation.data, scores) if pictures else None)
    if folder is not None:
        write_folder(folder, report, evaluation.measurements)
