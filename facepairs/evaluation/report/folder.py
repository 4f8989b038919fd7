"""The report as a folder: plots as PNG and SVG, numbers as JSON, CSV and Markdown.

DIR/report.json          every number
DIR/report.md            every table
DIR/tables/NAME.csv      each table, bare values
DIR/plots/NAME.svg, .png each plot
DIR/scores/N-NAME.csv    each verifier's scores, as `--scores` reads them
"""

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from facepairs.errors import BadConfig
from facepairs.evaluation.measured import Measured
from facepairs.evaluation.report.model_plots import model_plots
from facepairs.evaluation.report.shared_plots import shared_plots
from facepairs.evaluation.report.style import png, svg
from facepairs.evaluation.report.tables import Table, accuracy_note, accuracy_text, all_tables
from facepairs.evaluation.scores import write_scores
from facepairs.support.atomic import atomic_folder

NUMBERS = "report.json"


def check_folder(out: Path) -> None:
    """Raise BadConfig where something else than an older report stands, before any work."""
    if out.exists() and not (out / NUMBERS).is_file() and not _empty(out):
        raise BadConfig(f"--report-dir {out}: exists and is no report; choose another place")


def _empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


def write_folder(out: Path, numbers: Mapping[str, Any], measured: Sequence[Measured]) -> None:
    """Write the folder, whole or not at all; an older report in its place is replaced.

    Raises BadConfig as `check_folder`, BadData where the place cannot be written.
    """
    check_folder(out)
    with atomic_folder(out) as folder:
        text = json.dumps(numbers, indent=1, ensure_ascii=False, allow_nan=False)
        (folder / NUMBERS).write_text(text + "\n", encoding="utf-8")
        tables = all_tables(numbers)
        (folder / "report.md").write_text(markdown(numbers, tables), encoding="utf-8")
        for name in ("tables", "plots", "scores"):
            (folder / name).mkdir()
        for table in tables:
            _write_csv(folder / "tables" / f"{table.key}.csv", table)
        plots = shared_plots(numbers)
        for place, model in enumerate(numbers["models"], 1):
            plots += model_plots(model, place)
        for plot in plots:
            (folder / "plots" / f"{plot.key}.svg").write_text(svg(plot.figure), encoding="utf-8")
            (folder / "plots" / f"{plot.key}.png").write_bytes(png(plot.figure))
        for place, one in enumerate(measured, 1):
            plain = re.sub(r"[^\w.-]+", "-", one.name, flags=re.ASCII).strip("-.")[:60]
            write_scores(folder / "scores" / f"{place}-{plain}.csv", one.scores)


def _write_csv(path: Path, table: Table) -> None:
    """Write bare values; an interval or a compound cell stays as people read it."""
    with open(path, "w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(table.columns)
        for row in table.rows:
            writer.writerow([_bare(cell.text, cell.value) for cell in row])


def _bare(text: str, value: Any) -> Any:
    compound = value is None or any(mark in text for mark in (" to ", " of ", " ± "))
    return text if compound else value


def markdown(numbers: Mapping[str, Any], tables: Sequence[Table]) -> str:
    """Give every table as Markdown, below a headline for each verifier."""
    lines = ["# facepairs report", ""]
    for model in numbers["models"]:
        summary = model["summary"]
        lines.append(
            f"- **{_plain(model['name'])}**: accuracy {accuracy_text(summary)} "
            f"({accuracy_note(summary)}), AUC {summary['auc']:.4f}, "
            f"EER {100 * summary['eer']:.2f} %"
        )
    lines += [f"- Warning: {_plain(line)}" for line in numbers["warnings"]]
    for table in tables:
        lines += ["", f"## {table.title} ({table.key})", ""]
        lines += [table.note, ""] if table.note else []
        lines += [_row(table.columns), _row(["---"] * len(table.columns))]
        lines += [_row([cell.text for cell in row]) for row in table.rows]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_plain(cell) for cell in cells) + " |"


def _plain(text: str) -> str:
    """Keep names from being read as Markdown or HTML."""
    return re.sub(r"([\\|<>*`\[\]])", r"\\\1", " ".join(text.split()))
