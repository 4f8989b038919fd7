"""Writes what was asked for: the page, the folder, or both, from one evaluation."""

from collections.abc import Callable
from pathlib import Path

from facepairs.errors import BadConfig
from facepairs.evaluation.evaluate import Evaluation
from facepairs.evaluation.numbers import numbers_of
from facepairs.evaluation.photos import Photos
from facepairs.evaluation.report.folder import check_folder, write_folder
from facepairs.evaluation.report.page import write_page


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
    progress: Callable[[str], Callable[[int, int], None]] | None = None,
) -> None:
    """Write `page` (one HTML file) and `folder` (plots and numbers), each where it is given.

    `command` is told in them; without `pictures` no photo goes into the page. Raises BadData where
    a place cannot be written or DATA has none of the photos that scores name.
    """
    numbers = numbers_of(evaluation, command, progress)
    if page is not None:
        scores = evaluation.measured[0].scores
        photos = Photos.below(evaluation.data, scores) if pictures else None
        write_page(page, numbers, photos)
    if folder is not None:
        write_folder(folder, numbers, evaluation.measured)
