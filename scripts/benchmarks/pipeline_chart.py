"""Draw the published speed of input pipelines as an SVG chart for the documentation.

    python scripts/benchmarks/pipeline_chart.py

It rewrites docs/images/pipelines.svg from the tables in docs/results/speed.md. The chart's text has
the colour of the page around it, light or dark.
"""

import math
import re
import sys
from html import escape
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parents[2] / "docs"
PAGE, PICTURE = DOCS / "results" / "speed.md", DOCS / "images" / "pipelines.svg"
FIGURE = r"\|\s*([\d,]+) \(([\d,]+)\u2013([\d,]+)\)"
ROW = re.compile(rf"^\| \**`([\w-]+)`[^|]*{FIGURE}", re.MULTILINE)
CONSTANT_BATCH = re.compile(r"^\| `memory` \|[^|]*\|[^|]*\| ([\d.]+) \|", re.MULTILINE)
BATCH = 64
OWN = ("files", "memory", "tfrecord")
COLOURS = {"own": "#5c6bc0", "other": "#8a929c", "limit": "#b87f0a", "step": "#2e9e6b"}
WIDTH, LEFT, RIGHT, TOP, LINE = 520, 108, 482, 48, 27  # pixels of the chart


class Rate(NamedTuple):
    """Pairs per second of a pipeline: the median, and the range over the rounds."""

    name: str
    median: float
    low: float
    high: float

    @property
    def colour(self) -> str:
        """Our stores, the limit of decoding, and others have a colour each."""
        own = self.name.startswith(OWN)
        return COLOURS["own" if own else "limit" if self.name == "limit" else "other"]


def read_rates(page: str) -> list[Rate]:
    """Return the rows of the page's first table, the slowest first."""
    table = page.partition("## Speed of training")[0]
    rows = [
        Rate(name, *(float(figure.replace(",", "")) for figure in figures))
        for name, *figures in ROW.findall(table)
    ]
    return sorted(rows, key=lambda rate: rate.median)


def chart(page: str) -> str:
    """Return the chart as SVG: dots, because a logarithmic axis has no zero for bars."""
    rates = read_rates(page)
    constant = CONSTANT_BATCH.search(page)
    if not rates or not constant:
        sys.exit("docs/results/speed.md has no table of pipelines, or none of training")
    step = float(constant[1]) * BATCH
    bottom = TOP + LINE * len(rates)
    width, height = WIDTH + 24, bottom + 46 + 24  # a card of its own, for pages of any colour
    lines = [*_axis(rates, bottom), *_step_line(step, bottom)]
    for number, rate in enumerate(rates):
        lines += _row(rate, TOP + LINE * number + LINE // 2, left=rate.high < step)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-12 -12 {width} {height}" '
            'role="img" aria-label="Pairs per second of each input pipeline" '
            'font-family="system-ui, sans-serif" font-size="13" fill="currentColor" '
            'color="#24292f">',
            f'<rect x="-12" y="-12" width="{width}" height="{height}" rx="8" fill="#fff"/>',
            *lines,
            "</svg>\n",
        ]
    )


def _x(rate: float) -> float:
    """Return where a rate lies between 100 and 1,000,000 pairs per second."""
    return LEFT + (RIGHT - LEFT) * (math.log10(rate) - 2) / 4


def _text(x: float, y: float, text: str, anchor: str = "start", style: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{style}>{escape(text)}</text>'


def _axis(rates: list[Rate], bottom: int) -> list[str]:
    lines = []
    for power in range(2, 7):
        x = _x(10**power)
        lines.append(
            f'<path d="M{x:.0f} {TOP}V{bottom}" stroke="currentColor" stroke-opacity=".18"/>'
        )
        lines.append(_text(x, bottom + 18, f"{10**power:,}", "middle", ' opacity=".8"'))
    label = "pairs/s on LFW, logarithmic; median and range"
    return [*lines, _text((LEFT + RIGHT) / 2, bottom + 38, label, "middle", ' opacity=".8"')]


def _step_line(step: float, bottom: int) -> list[str]:
    x, colour = _x(step), COLOURS["step"]
    return [
        f'<path d="M{x:.0f} {TOP - 8}V{bottom}" stroke="{colour}" stroke-width="2" '
        'stroke-dasharray="6 4"/>',
        _text(x, 14, f"training takes {step:,.0f} pairs/s here:", "middle"),
        _text(x - 8, 33, "it starves ←", "end"),
        _text(x + 8, 33, "→ it is fed"),
    ]


def _row(rate: Rate, y: int, left: bool) -> list[str]:
    low, high = _x(rate.low), _x(rate.high)
    place = (low - 10, "end") if left else (high + 10, "start")  # not across the step's line
    return [
        _text(0, y + 4, rate.name, style=' font-weight="600"'),
        f'<path d="M{low:.1f} {y}H{high:.1f}" stroke="{rate.colour}" stroke-width="2"/>',
        f'<circle cx="{_x(rate.median):.1f}" cy="{y}" r="5" fill="{rate.colour}"/>',
        _text(place[0], y + 4, f"{rate.median:,.0f}", place[1]),
    ]


if __name__ == "__main__":
    PICTURE.write_text(chart(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
