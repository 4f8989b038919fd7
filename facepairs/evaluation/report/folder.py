"""The report as a folder: plots as PNG and SVG, numbers as JSON, CSV and Markdown.

DIR/report.json          every number
DIR/report.md            every table
DIR/tables/NAME.csv      each table, plain values
DIR/plots/NAME.svg, .png each plot
DIR/scores/N-NAME.csv    the scores of each verifier, as `evaluate --scores` reads them
"""

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path

from facepairs.errors import BadConfig
from facepairs.evaluation.measurement import Measurement
from facepairs.evaluation.report.cells import Cell, Table, percent
from facepairs.evaluation.report.data import ReportData
from facepairs.evaluation.report.plots.model import model_plots
from facepairs.evaluation.report.plots.shared import shared_plots
from facepairs.evaluation.report.plots.style import png, svg
from facepairs.evaluation.report.summary_tables import accuracy_note, accuracy_text
from facepairs.evaluation.report.tables import all_tables
from facepairs.evaluation.scores import write_scores
from facepairs.evaluation.serialize import to_plain
from facepairs.support.atomic import atomic_folder

REPORT = "report.json"


def check_folder(out: Path) -> None:
    """Raise BadConfig where something else than an older report exists."""
    is_empty = out.is_dir() and not any(out.iterdir())
    if out.exists() and not (out / REPORT).is_file() and not is_empty:
        raise BadConfig(f"--report-dir {out}: exists and is no report; choose another place")


def write_folder(out: Path, report: ReportData, measurements: Sequence[Measurement]) -> None:
    """Write the folder, completely or not at all; an older report in its place is replaced.

    Raises:
        BadConfig: Something else than a report exists there.
        BadData: The folder cannot be written.
    """
    check_folder(out)
    with atomic_folder(out) as folder:
        text = json.dumps(to_plain(report), indent=1, ensure_ascii=False, allow_nan=False)
        (folder / REPORT).write_text(text + "\n", encoding="utf-8")
        tables = all_tables(report)
        (folder / "report.md").write_text(_markdown(report, tables), encoding="utf-8")
        for name in ("tables", "plots", "scores"):
            (folder / name).mkdir()
        for table in tables:
            _write_csv(folder / "tables" / f"{table.key}.csv", table)
        plots = shared_plots(report)
        for place, model in enumerate(report.models, 1):
            plots += model_plots(model, place)
        for plot in plots:
            (folder / "plots" / f"{plot.key}.svg").write_text(svg(plot.figure), encoding="utf-8")
            (folder / "plots" / f"{plot.key}.png").write_bytes(png(plot.figure))
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


def _markdown(report: ReportData, tables: Sequence[Table]) -> str:
    """Return every table as Markdown, below a headline for each verifier."""
    lines = ["# facepairs report", ""]
    for model in report.models:
        summary = model.summary
        lines.append(
            f"- **{_escape(model.name)}**: accuracy {accuracy_text(summary)} "
            f"({accuracy_note(summary)}), AUC {summary.auc:.4f}, EER {percent(summary.eer)}"
        )
    lines += [f"- Warning: {_escape(line)}" for line in report.warnings]
    for table in tables:
        lines += ["", f"## {table.title} ({table.key})", ""]
        lines += [table.note, ""] if table.note else []
        lines += [_markdown_row(table.columns), _markdown_row(["---"] * len(table.columns))]
        lines += [_markdown_row([cell.text for cell in row]) for row in table.rows]
    return "\n".join(lines) + "\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_escape, cells)) + " |"


def _escape(text: str) -> str:
    """Keep names from being read as Markdown or HTML."""
    return re.sub(r"([\\|<>*`\[\]])", r"\\\1", " ".join(text.split()))
