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
from facepairs.support.extras import require_extras, require_pandas
from facepairs.support.html import html_table

if TYPE_CHECKING:
    import pandas


def figures_frame(evaluation: Evaluation) -> "pandas.DataFrame":
    """Return a row for each verifier: its name, every plain figure, and tar_at_far_0.01, …"""
    require_pandas("Evaluation.to_frame")
    import pandas

    rows = []
    for one in evaluation.measurements:
        figures = to_plain(one.summary)
        tars = {f"tar_at_far_{far}": tar["tar"] for far, tar in figures["tar_at_far"].items()}
        plain = {k: x for k, x in figures.items() if not isinstance(x, list | dict)}
        rows.append({"verifier": one.name, **plain, **tars})
    return pandas.DataFrame(rows)


def pairs_frame(one: Measurement) -> "pandas.DataFrame":
    """Return a row for each pair: left, right, genuine, score, threshold, accepted, …"""
    require_pandas("Measurement.to_frame")
    import pandas

    scores = one.scores
    names = {"left": scores.left, "right": scores.right} if scores.has_names else {}
    columns = {"genuine": scores.genuine, "fold": scores.fold, "score": scores.score}
    decisions = {"threshold": one.threshold, "accepted": one.accepted}
    return pandas.DataFrame({**names, **columns, **decisions, "probability": one.probability})


def draw_plot(evaluation: Evaluation, name: str) -> Plot:
    """Draw one plot of a report by its name."""
    require_extras(["report"], "Evaluation.plot")
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
        return warnings + "".join(map(_html, tables))
    summary = evaluation.summary
    rows = html_table([*source_rows(summary), *summary_rows(summary)])
    return warnings + rows + "".join(map(_html, group_tables(summary)))


def _html(table: Table) -> str:
    return html_table(([cell.text for cell in row] for row in table.rows), table.columns)
