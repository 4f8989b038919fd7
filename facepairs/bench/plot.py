"""Draw the rows as horizontal bars, on a logarithmic scale."""

from pathlib import Path
from typing import Any

from facepairs.bench.report import Report, RowSummary
from facepairs.bench.rows import LIMIT, STORES
from facepairs.errors import BadConfig
from facepairs.support.atomic import temporary_beside

FORMATS = (".png", ".svg", ".pdf")
OWN_COLOUR, OTHER_COLOUR, LIMIT_COLOUR = "#1f6fb4", "#9aa5b1", "#d9a441"


def check_plot(path: Path) -> None:
    """Raise BadConfig for a file name of an unknown format, before anything is measured."""
    if path.suffix.lower() not in FORMATS:
        raise BadConfig(f"--plot {path}: use a name that ends in {', '.join(FORMATS)}")


def write_plot(path: Path, report: Report) -> None:
    """Draw pairs per second with the range over the rounds; rows without figures are left out."""
    from matplotlib.figure import Figure

    rows = [row for row in report.rows if row.pairs_per_s is not None]
    rows.sort(key=lambda row: row.pairs_per_s or 0.0)
    medians, lows, highs = (
        [getattr(row, name) for row in rows]
        for name in ("pairs_per_s", "pairs_per_s_min", "pairs_per_s_max")
    )
    errors = [
        [median - low for median, low in zip(medians, lows, strict=True)],
        [high - median for median, high in zip(medians, highs, strict=True)],
    ]
    figure = Figure(figsize=(9, 1.6 + 0.36 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    axes.barh([row.name for row in rows], medians, color=[_colour(row) for row in rows])
    axes.errorbar(medians, range(len(rows)), xerr=errors, fmt="none", ecolor="#333", capsize=3)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    if rows:
        axes.set_xlim(0.5 * medians[0], 3 * medians[-1])
    for position, (median, high) in enumerate(zip(medians, highs, strict=True)):
        axes.text(1.06 * high, position, f"{median:,.0f}", va="center")
    _annotate(axes, report)
    with temporary_beside(path) as temporary:
        figure.savefig(temporary, dpi=144, format=path.suffix[1:].lower())


def _colour(row: RowSummary) -> str:
    if row.name in STORES:
        return OWN_COLOUR
    return LIMIT_COLOUR if row.name == LIMIT else OTHER_COLOUR


def _annotate(axes: Any, report: Report) -> None:
    """Add the title, the axis label with machine and settings, and the grid."""
    settings, machine = report.settings, report.machine
    axes.set_title("Pairs of faces per second, by input pipeline", loc="left", weight="bold")
    axes.set_xlabel(
        f"pairs/s, logarithmic; median and range over {settings.repeats} rounds\n"
        f"{machine['cpu']}, {machine['cores']} cores; {settings.crop_px} px, "
        f"batch {settings.batch_size}, page cache {settings.page_cache}\n"
        "blue: facepairs; grey: others; yellow: decoding only, without batches"
    )
    axes.grid(axis="x", which="major", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
