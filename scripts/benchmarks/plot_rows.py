"""Draw the rows of a bench as dots on a logarithmic scale.

facepairs bench DATA --out bench.json
python scripts/benchmarks/plot_rows.py bench.json rows.png      # or .svg, .pdf
"""

import argparse
import json
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from facepairs.bench.rows import LIMIT, STORES, UNALIGNED

FORMATS = (".png", ".svg", ".pdf")
KINDS = {  # colour and meaning
    "own": ("#1f6fb4", "facepairs"),
    "other": ("#7b8794", "others"),
    "limit": ("#b87f0a", "decoding only, without batches"),
}


def plot_rows(path: Path, report: dict[str, Any]) -> None:
    """Draw pairs per second with the range over the rounds; rows without figures are left out.

    A logarithmic axis has no zero that a bar could start from, so rows are dots.
    """
    rows = [row for row in report["rows"] if row["pairs_per_s"] is not None]
    rows.sort(key=lambda row: row["pairs_per_s"])
    figure = Figure(figsize=(9, 1.8 + 0.36 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    kinds = [_kind(row["name"]) for row in rows]
    for place, (row, kind) in enumerate(zip(rows, kinds, strict=True)):
        colour, _ = KINDS[kind]
        median, high = row["pairs_per_s"], row["pairs_per_s_max"]
        axes.hlines(place, row["pairs_per_s_min"], high, color=colour, linewidth=2)
        axes.plot([median], [place], "o", color=colour, markersize=8)
        axes.annotate(
            f"{median:,.0f}", (high, place), (8, 0), textcoords="offset points", va="center"
        )
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    if rows:
        axes.set_xlim(0.5 * rows[0]["pairs_per_s_min"], 3 * rows[-1]["pairs_per_s_max"])
    present = [kind for kind in KINDS if kind in kinds]
    if len(present) > 1:
        for kind in present:
            axes.plot([], [], "o", color=KINDS[kind][0], label=KINDS[kind][1])
        figure.legend(loc="outside lower center", ncols=len(present), frameon=False)
    _annotate(axes, report)
    figure.savefig(path, dpi=144, format=path.suffix[1:].lower())


def _kind(name: str) -> str:
    return "own" if name in (*STORES, UNALIGNED) else "limit" if name == LIMIT else "other"


def _annotate(axes: Any, report: dict[str, Any]) -> None:
    """Add the title, the axis label with machine and settings, and the grid."""
    settings, machine = report["settings"], report["machine"]
    axes.set_title("Pairs of faces per second, by input pipeline", loc="left", weight="bold")
    axes.set_xlabel(
        f"pairs/s, logarithmic; median and range over {settings['repeats']} rounds\n"
        f"{machine['cpu']}, {machine['cores']} cores; {settings['crop_px']} px, "
        f"batch {settings['batch_size']}, page cache {settings['page_cache']}"
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
