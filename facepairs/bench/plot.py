"""The bench's rows as horizontal bars, on a logarithmic scale."""

from pathlib import Path
from typing import Any

from facepairs.bench.rows import LIMIT, STORES
from facepairs.errors import BadConfig
from facepairs.support.atomic import temporary_beside

FORMATS = (".png", ".svg", ".pdf")
OWN, OTHER, BOUND = "#1f6fb4", "#9aa5b1", "#d9a441"


def check_plot(path: Path) -> None:
    """Raise BadConfig where no plot could be written, before anything is measured."""
    if path.suffix.lower() not in FORMATS:
        raise BadConfig(f"--plot {path}: use a name that ends in {', '.join(FORMATS)}")


def write_plot(path: Path, report: dict[str, Any]) -> None:
    """Draw pairs/s with the range over the rounds; rows without figures are left out."""
    from matplotlib.figure import Figure

    rows = [row for row in report["rows"] if row["pairs_per_s"] is not None]
    rows.sort(key=lambda row: row["pairs_per_s"])
    figure = Figure(figsize=(9, 1.6 + 0.36 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    middle = [row["pairs_per_s"] for row in rows]
    spread = [
        [row["pairs_per_s"] - row["pairs_per_s_min"] for row in rows],
        [row["pairs_per_s_max"] - row["pairs_per_s"] for row in rows],
    ]
    axes.barh([row["name"] for row in rows], middle, color=[_colour(row) for row in rows])
    axes.errorbar(middle, range(len(rows)), xerr=spread, fmt="none", ecolor="#333", capsize=3)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    if rows:
        axes.set_xlim(0.5 * middle[0], 3 * middle[-1])
    for place, row in enumerate(rows):
        axes.text(1.06 * row["pairs_per_s_max"], place, f"{row['pairs_per_s']:,.0f}", va="center")
    _explain(axes, report)
    with temporary_beside(path) as temporary:
        figure.savefig(temporary, dpi=144, format=path.suffix[1:].lower())


def _colour(row: dict[str, Any]) -> str:
    return OWN if row["name"] in STORES else BOUND if row["name"] == LIMIT else OTHER


def _explain(axes: Any, report: dict[str, Any]) -> None:
    settings, machine = report["settings"], report["machine"]
    axes.set_title("Pairs of faces a second, by input pipeline", loc="left", weight="bold")
    axes.set_xlabel(
        f"pairs/s, logarithmic; median and range of rounds: {settings['repeats']}\n"
        f"{machine['cpu']}, {machine['cores']} cores; {settings['crop_px']} px, "
        f"batch {settings['batch_size']}, page cache {settings['page_cache']}\n"
        "blue: facepairs; grey: others; yellow: decoding alone, without batches"
    )
    axes.grid(axis="x", which="major", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
