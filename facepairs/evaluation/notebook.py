"""What notebooks show of an evaluation: data frames, tables and plots."""

from dataclasses import replace
from typing import TYPE_CHECKING

from facepairs.errors import BadConfig
from facepairs.evaluation.evaluate import Evaluation
from facepairs.evaluation.measurement import Measurement
from facepairs.evaluation.report.cells import Table
from facepairs.evaluation.report.data import report_data
from facepairs.evaluation.report.plots.model import model_plots
from facepairs.evaluation.report.plots.shared import shared_plots
from facepairs.evaluation.report.plots.style import Plot
from facepairs.evaluation.report.summary_tables import (
    group_tables,
    source_rows,
    summaries_table,
    summary_rows,
    tests_table,
)
from facepairs.evaluation.serialize import to_plain
from facepairs.support.extras import require_extras
from facepairs.support.html import html_table

if TYPE_CHECKING:
    import pandas

TAR = ("tar", "tar_interval")


def figures_frame(evaluation: Evaluation) -> "pandas.DataFrame":
    """Return a row for each verifier: its name, every plain figure, and tar_at_far_0.01, …

    An interval of 95 % is in two columns: auc_low and auc_high.
    """
    require_extras(["measure"], "Evaluation.to_frame")
    import pandas

    rows = []
    for one in evaluation.measurements:
        figures = to_plain(one.summary)
        for far, tar in figures["tar_at_far"].items():
            figures |= {f"tar_at_far_{far}{key.removeprefix('tar')}": tar[key] for key in TAR}
        row: dict[str, object] = {"verifier": one.name}
        for key, value in figures.items():
            if key.endswith("_interval"):
                name = key.removesuffix("_interval")
                row[f"{name}_low"], row[f"{name}_high"] = value or (None, None)
            elif not isinstance(value, list | dict):
                row[key] = value
        rows.append(row)
    return pandas.DataFrame(rows)


def pairs_frame(one: Measurement) -> "pandas.DataFrame":
    """Return a row for each pair: left, right, genuine, score, threshold, accepted, …"""
    require_extras(["measure"], "Measurement.to_frame")
    import pandas

    scores = one.scores
    names = {"left": scores.left, "right": scores.right} if scores.has_names else {}
    columns = {"genuine": scores.genuine, "fold": scores.fold, "score": scores.score}
    decisions = {"threshold": one.threshold, "accepted": one.accepted}
    return pandas.DataFrame({**names, **columns, **decisions, "probability": one.probability})


def draw_plot(evaluation: Evaluation, name: str) -> Plot:
    """Draw one plot of a report by its name."""
    require_extras(["measure"], "Evaluation.plot")
    report = report_data(replace(evaluation, data=None), "")  # photos are not measured
    plots = {
        plot.key.removesuffix("-1"): plot
        for plot in (*shared_plots(report), *model_plots(report.models[0], 1))
    }
    if name not in plots:
        raise BadConfig(f"there is no plot {name!r} of these pairs; use one of {', '.join(plots)}")
    return plots[name]


def evaluation_html(evaluation: Evaluation) -> str:
    """Return the tables that `facepairs evaluate` prints as HTML."""
    warnings = html_table(("warning", line) for line in evaluation.warnings)
    if evaluation.comparison is not None:
        summaries = {one.name: one.summary for one in evaluation.measurements}
        tables = [summaries_table("verifier", summaries), tests_table(evaluation.comparison)]
        tables += [
            table._replace(columns=[f"{name}, {table.columns[0]}", *table.columns[1:]])
            for name, summary in summaries.items()
            for table in group_tables(summary)
        ]
        return warnings + "".join(map(_html, tables))
    summary = evaluation.summary
    rows = html_table([*source_rows(summary), *summary_rows(summary)])
    return warnings + rows + "".join(map(_html, group_tables(summary)))


def _html(table: Table) -> str:
    return html_table(([cell.text for cell in row] for row in table.rows), table.columns)
