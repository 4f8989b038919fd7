"""Draw the rows of a bench as horizontal bars, on a logarithmic scale.

facepairs bench DATA --out bench.json
python scripts/benchmarks/plot_rows.py bench.json rows.png      # or .svg, .pdf
"""

import argparse
import json
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from facepairs.bench.rows import LIMIT, STORES

FORMATS = (".png", ".svg", ".pdf")
OWN_COLOUR, OTHER_COLOUR, LIMIT_COLOUR = "#1f6fb4", "#9aa5b1", "#d9a441"


def plot_rows(path: Path, report: dict[str, Any]) -> None:
    """Draw pairs per second with the range over the rounds; rows without figures are left out."""
    rows = [row for row in report["rows"] if row["pairs_per_s"] is not None]
    rows.sort(key=lambda row: row["pairs_per_s"])
    medians, lows, highs = (
        [row[name] for row in rows]
        for name in ("pairs_per_s", "pairs_per_s_min", "pairs_per_s_max")
    )
    errors = [
        [median - low for median, low in zip(medians, lows, strict=True)],
        [high - median for median, high in zip(medians, highs, strict=True)],
    ]
    figure = Figure(figsize=(9, 1.6 + 0.36 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    axes.barh([row["name"] for row in rows], medians, color=[_colour(row["name"]) for row in rows])
    axes.errorbar(medians, range(len(rows)), xerr=errors, fmt="none", ecolor="#333", capsize=3)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    if rows:
        axes.set_xlim(0.5 * medians[0], 3 * medians[-1])
    for position, (median, high) in enumerate(zip(medians, highs, strict=True)):
        axes.text(1.06 * high, position, f"{median:,.0f}", va="center")
    _annotate(axes, report)
    figure.savefig(path, dpi=144, format=path.suffix[1:].lower())


def _colour(name: str) -> str:
    if name in STORES:
        return OWN_COLOUR
    return LIMIT_COLOUR if name == LIMIT else OTHER_COLOUR


def _annotate(axes: Any, report: dict[str, Any]) -> None:
    """Add the title, the axis label with machine and settings, and the grid."""
    settings, machine = report["settings"], report["machine"]
    axes.set_title("Pairs of faces per second, by input pipeline", loc="left", weight="bold")
    axes.set_xlabel(
        f"pairs/s, logarithmic; median and range over {settings['repeats']} rounds\n"
        f"{machine['cpu']}, {machine['cores']} cores; {settings['crop_px']} px, "
        f"batch {settings['batch_size']}, page cache {settings['page_cache']}\n"
        "blue: facepairs; grey: others; yellow: decoding only, without batches"
    )
    axes.grid(axis="x", which="major", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", type=Path, help="JSON file of `facepairs bench --out`")
    parser.add_argument("out", type=Path, help=f"picture to write: {', '.join(FORMATS)}")
    words = parser.parse_args()
    if words.out.suffix.lower() not in FORMATS:
        parser.error(f"{words.out}: use a name that ends in {', '.join(FORMATS)}")
    plot_rows(words.out, json.loads(words.report.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
