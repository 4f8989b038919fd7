"""Style of the figures: colours that a page can replace, text that is legible on a phone."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

# Each colour has a contrast of 3 or more on white; a page replaces it by its own variable.
COLOURS = {
    "#17212b": "var(--ink)",
    "#566472": "var(--soft)",
    "#d3dae1": "var(--line)",
    "#fefefe": "var(--paper)",
    "#0b62a8": "var(--s1)",
    "#c2410c": "var(--s2)",
    "#00795a": "var(--s3)",
    "#a2397d": "var(--s4)",
    "#7a6100": "var(--s5)",
    "#5b4bb7": "var(--s6)",
}
INK, SOFT, LINE, PAPER, *SERIES = COLOURS
GENUINE, IMPOSTOR = SERIES[0], SERIES[1]
DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 1)))
WIDTH_IN, HEIGHT_IN = 5.0, 3.9  # 360 points: on a phone a point is about a pixel
LONGEST_NAME = 22
DASHED: dict[str, Any] = {"color": INK, "linestyle": (0, (4, 3)), "linewidth": 1.1}
DOTTED: dict[str, Any] = {"color": SOFT, "linestyle": ":", "linewidth": 1.2}
BEHIND_TEXT = {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.75, "pad": 0.8}

SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",  # real text: searchable, read by screen readers, in the page's font
    "svg.hashsalt": "facepairs",
    "text.parse_math": False,  # a dollar sign in a name must not start a formula
    "font.family": ["DejaVu Sans"],
    "font.size": 9.2,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "lines.linewidth": 1.9,
    "figure.facecolor": "none",
}


class Figure(NamedTuple):
    """A figure, its title, and a sentence on how to read it; `key` names files and elements."""

    key: str
    title: str
    caption: str
    figure: "Drawing"

    def _repr_svg_(self) -> str:
        """Return what a notebook shows."""
        return svg(self.figure)


@contextmanager
def plot_style() -> Iterator[None]:
    """Apply the style, without warnings about names in scripts that the font lacks."""
    import matplotlib as mpl

    with mpl.rc_context(cast(Any, SETTINGS)), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def new_figure(height_in: float = HEIGHT_IN) -> "tuple[Drawing, Axes]":
    """Return a new figure and its axes."""
    from matplotlib.figure import Figure as Drawing

    figure = Drawing(figsize=(WIDTH_IN, height_in), layout="constrained")
    return figure, figure.subplots()


def svg(figure: "Drawing") -> str:
    """Return a figure as the text of an SVG file; equal figures give equal text."""
    with plot_style():
        out = BytesIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue().decode("utf-8")


def inline_svg(figure: "Drawing", key: str, label: str) -> str:
    """Return a figure as an `<svg>` element for a page, in the page's colours and font.

    Args:
        figure: The figure.
        key: Prefix of all ids, so that several figures can share a page.
        label: Alternative text, already escaped.
    """
    text = svg(figure)
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"\bid=\"", f'id="{key}-', text)
    text = re.sub(r"url\(#", f"url(#{key}-", text)
    text = re.sub(r"xlink:href=\"#", f'href="#{key}-', text)
    for colour, variable in COLOURS.items():
        text = text.replace(colour, variable)
    text = text.replace("'DejaVu Sans'", "inherit")
    view_box = re.search(r'viewBox="([^"]+)"', text)
    assert view_box is not None  # matplotlib writes one
    head = f'<svg viewBox="{view_box.group(1)}" role="img" aria-label="{label}">'
    return head + text[text.index(">") + 1 :].strip()


def series(place: int) -> dict[str, Any]:
    """Return colour and dashes of the line at a place, from 0."""
    return {"color": SERIES[place % len(SERIES)], "linestyle": DASHES[place % len(DASHES)]}


def shorten_name(name: str) -> str:
    """Return a name, cut to the space in a plot; a leading "_" would hide it."""
    cut = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    return f"\u200a{cut}" if cut.startswith("_") else cut


def percent_tick(value: float, _: object) -> str:
    """Return a share in percent; matplotlib calls this with a tick's value and place."""
    return f"{round(100 * value, 4):g} %"
