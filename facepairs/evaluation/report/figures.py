"""Every figure of an evaluation, and tables and figures as files. Text is legible on a phone."""

import base64
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from facepairs.bundles.rates import OperatingPoint
from facepairs.errors import BadData
from facepairs.evaluation.measurement import Measurement
from facepairs.evaluation.metrics.reliability import reliability_curve
from facepairs.evaluation.report.table import Table, percent
from facepairs.evaluation.report.tables import thresholds_of
from facepairs.support.atomic import atomic_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


BINS = 50  # of a histogram
HIGH = 0.9  # end of the DET curve's axes
DET_TICKS = (1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8)
INK, SOFT, LINE, PAPER = "#17212b", "#566472", "#d3dae1", "#fefefe"
SERIES = ("#0b62a8", "#c2410c", "#00795a", "#a2397d", "#7a6100", "#5b4bb7")  # contrast 3 or more
GENUINE, IMPOSTOR = SERIES[0], SERIES[1]
DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 1)))
WIDTH_IN, HEIGHT_IN = 5.0, 3.9  # 360 points: on a phone a point is about a pixel
PNG_DPI = 200
LONGEST_NAME = 22
DOTTED: dict[str, Any] = {"color": SOFT, "linestyle": ":", "linewidth": 1.2}

LEGEND: dict[str, Any] = {
    "frameon": True,
    "facecolor": PAPER,
    "edgecolor": "none",
    "framealpha": 0.85,
}
SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",  # text, of a font of the reader's machine
    "svg.hashsalt": "facepairs",
    "text.parse_math": False,  # a dollar sign in a name must not start a formula
    "font.family": ["DejaVu Sans", "sans-serif"],
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

    def png(self) -> bytes:
        """Return the figure as PNG on white, for documents that take no SVG."""
        with plot_style():
            out = BytesIO()
            self.figure.savefig(
                out, format="png", dpi=PNG_DPI, facecolor=PAPER, metadata={"Software": None}
            )
        return out.getvalue()

    def _repr_svg_(self) -> str:
        """Return the figure as SVG, for notebooks; equal figures give equal text."""
        with plot_style():
            out = BytesIO()
            self.figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
        return out.getvalue().decode("utf-8")

    def data_url(self) -> str:
        """Return the address of an image that a page shows."""
        data = base64.b64encode(self._repr_svg_().encode()).decode("ascii")
        return f"data:image/svg+xml;base64,{data}"


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


def evaluation_figures(found: Sequence[Measurement]) -> list[Figure]:
    """Draw the figures that have data: of all verifiers together, then of each."""
    with plot_style():
        figures = [_roc(found), _det(found)]
        for place, one in enumerate(found, 1):
            figures.append(_histogram(one, place))
            if one.probability is not None:
                figures.append(_reliability(one, place))
            if any(factor.discarded for factor in one.summary.factors):
                figures.append(_discarded(one, place))
            if len(one.summary.groups) > 1:
                figures.append(_between_groups(one, place))
    return figures


def _draw_curves(axes: "Axes", found: Sequence[Measurement], low: float) -> None:
    """Draw every verifier's curve, and a dot where it decides.

    The curve is of true accepts, or of false rejects where rates are cut at `low`.
    """
    from sklearn.metrics import roc_curve

    for place, one in enumerate(found):
        line, name = series(place), shorten_name(one.summary.about.name)
        fmr, tmr, _ = roc_curve(one.pairs.genuine, one.pairs.score, drop_intermediate=False)
        height = (1 - tmr).clip(low, 1 - low) if low else tmr
        axes.plot(fmr.clip(low, 1 - low), height, label=name, **line)
        x, y = np.clip(error_values(one.summary.default_point), low, HIGH if low else 1)
        look: dict[str, Any] = {"color": line["color"], "edgecolors": PAPER, "s": 58}
        axes.scatter(x, y if low else 1 - y, zorder=3, clip_on=False, **look)


def error_values(point: OperatingPoint) -> tuple[float, float]:
    """Return FMR and FNMR of a point, which were measured."""
    errors = point.errors
    assert errors.fmr is not None
    assert errors.fnmr is not None
    return errors.fmr.value, errors.fnmr.value


def _roc(found: Sequence[Measurement]) -> Figure:
    figure, axes = new_figure()
    axes.plot([0, 1], [0, 1], **DOTTED)
    _draw_curves(axes, found, 0.0)
    axes.set(xlim=(-0.01, 1), xlabel="strangers accepted (FMR)")
    axes.set(ylim=(0, 1.01), ylabel="genuine pairs accepted (1 - FNMR)")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(percent_tick)
    axes.legend(loc="lower right", **LEGEND)
    caption = (
        "What every threshold does to both kinds of pairs; a dot is where the verifier decides. Up "
        "and to the left is better. The dotted line is guessing."
    )
    return Figure("roc", "ROC curve", caption, figure)


def _det(found: Sequence[Measurement]) -> Figure:
    from matplotlib.ticker import NullLocator
    from scipy.special import ndtr, ndtri

    def deviate(shares: Any) -> Any:
        return ndtri(np.clip(shares, 1e-12, 1 - 1e-12))

    figure, axes = new_figure()
    low, high = min(0.01, max(1e-6, 0.5 / found[0].summary.impostor_pairs)), HIGH
    axes.set_xscale("function", functions=(deviate, ndtr))
    axes.set_yscale("function", functions=(deviate, ndtr))
    axes.plot([low, high], [low, high], **DOTTED)
    _draw_curves(axes, found, low)
    ticks = [tick for tick in DET_TICKS if low <= tick <= high]
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(ticks, [f"{100 * tick:g} %" for tick in ticks])
        axis.set_minor_locator(NullLocator())
    axes.set(xlim=(low, high), xlabel="strangers accepted (FMR)")
    axes.set(ylim=(low, high), ylabel="genuine pairs missed (FNMR)")
    axes.legend(loc="upper right", **LEGEND)
    caption = (
        "The same errors on axes that spread out small rates. Down and to the left is better. On "
        "the dotted line both rates are equal."
    )
    return Figure("det", "DET curve", caption, figure)


def _histogram(one: Measurement, place: int) -> Figure:
    figure, axes = new_figure(height_in=HEIGHT_IN + 0.5)
    genuine, score = one.pairs.genuine, one.pairs.score
    edges = np.histogram_bin_edges(score, BINS)
    tallest = 0.0
    for label, members, colour, dash in (
        ("different people", ~genuine, IMPOSTOR, "--"),
        ("same person", genuine, GENUINE, "-"),
    ):
        shares = np.histogram(score[members], edges)[0] / members.sum()
        axes.stairs(shares, edges, fill=True, color=colour, alpha=0.28)
        axes.stairs(shares, edges, color=colour, linestyle=dash, linewidth=1.6, label=label)
        tallest = max(tallest, float(shares.max()))
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(0, 1.04 * tallest)
    summary, points = one.summary, one.summary.operating_points
    shown = [point for point in points if point in (points[0], summary.default_point)]
    for point, line in zip(shown, DASHES[1:], strict=False):
        fmr, fnmr = (percent(rate).text for rate in error_values(point))
        text = f"{point.label}: {fmr} pass, {fnmr} missed"
        for at in thresholds_of(summary, point):
            axes.axvline(at, color=INK, linestyle=line, linewidth=1.1, label=text)
            text = ""
    axes.set(xlabel="score: higher is more alike", ylabel="share of the pairs")
    axes.yaxis.set_major_formatter(percent_tick)
    figure.legend(loc="outside upper left")
    caption = (
        "Pairs by score. A black line is a threshold, at which strangers pass and genuine pairs "
        "are missed; two of one kind are the lowest and the highest of the folds' thresholds."
    )
    return Figure(f"scores-{place}", "Scores and errors", caption, figure)


def _reliability(one: Measurement, place: int) -> Figure:
    figure, axes = new_figure()
    assert one.probability is not None
    bins = reliability_curve(one.pairs.genuine, one.probability, one.lookalike)
    x, y, sizes = bins.probability, bins.genuine_share, 18 + 60 * bins.weight / bins.weight.max()
    axes.plot([0, 1], [0, 1], **DOTTED)
    axes.plot(x, y, color=SERIES[0], linewidth=1.4)
    axes.scatter(x, y, s=sizes, color=SERIES[0], edgecolors=PAPER, zorder=3)
    axes.set(xlim=(-0.02, 1.02), xlabel="probability of the same person, at equal priors")
    axes.set(ylim=(-0.02, 1.02), ylabel="share of genuine pairs")
    axes.text(
        0.03, 0.95, f"calibration error (ECE) {bins.ece:.4f}", transform=axes.transAxes, va="top"
    )
    weights = "Genuine pairs and strangers count equally"
    if one.lookalike is not None:
        weights += ", and half of the strangers' weight is that of look-alikes"
    refitted = "fitted here, for each part of the pairs on the other parts"
    source = refitted if one.refitted else "the verifier's own"
    caption = (
        "Of the pairs with a probability, the share that shows one person; on the dotted line both "
        f"are equal. {weights}. Probability: {source}."
    )
    return Figure(f"reliability-{place}", "Reliability of the probability", caption, figure)


def _discarded(one: Measurement, place: int) -> Figure:
    """Draw the FNMR against the share of genuine pairs left out, for each factor."""
    figure, axes = new_figure(height_in=HEIGHT_IN + 0.7)
    factors = [factor for factor in one.summary.factors if factor.discarded]
    for at, factor in enumerate(factors):
        rows = [(row.share, row.errors.fnmr) for row in factor.discarded if row.errors.fnmr]
        shares = [share for share, _ in rows]
        low, high = zip(*(rate.interval for _, rate in rows), strict=True)
        line = series(at)
        axes.plot(shares, [rate.value for _, rate in rows], label=shorten_name(factor.name), **line)
        axes.fill_between(shares, low, high, color=line["color"], alpha=0.12, linewidth=0)
    axes.set(xlabel="genuine pairs left out, worst first", ylabel="genuine pairs missed (FNMR)")
    axes.set_ylim(bottom=0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(percent_tick)
    figure.legend(loc="outside upper left")
    caption = (
        "How many genuine pairs are missed without the pairs of the worst photos, by each number; "
        "areas are 95 % intervals. A line that falls means that the number tells of quality."
    )
    return Figure(f"discarded-{place}", "Errors without the worst photos", caption, figure)


def _between_groups(one: Measurement, place: int) -> Figure:
    """Draw the FMR within groups and between them; cells of too few pairs have no colour."""
    from matplotlib.colors import LogNorm

    names, rates = list(one.summary.groups), one.summary.fmr_by_groups
    figure, axes = new_figure(height_in=HEIGHT_IN + 0.5)
    matrix, texts = np.full((len(names), len(names)), np.nan), {}
    for groups, rate in rates.items():
        x, y = sorted(map(names.index, groups))
        texts[y, x] = "too few" if rate is None else percent(rate.value).text
        matrix[y, x] = np.nan if rate is None else max(rate.value, 0.5 / (rate.of or 1))
    low, high = (np.nanmin(matrix), np.nanmax(matrix)) if np.isfinite(matrix).any() else (0.5, 1)
    norm = LogNorm(low / 2, 2 * high)
    axes.imshow(matrix, cmap="Blues", norm=norm)
    for (y, x), text in texts.items():
        dark = np.isfinite(matrix[y, x]) and norm(matrix[y, x]) > 0.6
        axes.text(x, y, text, ha="center", va="center", color=PAPER if dark else INK, fontsize=8.5)
    labels = [shorten_name(name) for name in names]
    axes.set_xticks(range(len(names)), labels, rotation=45, ha="right")
    axes.set_yticks(range(len(names)), labels)
    axes.grid(visible=False)
    caption = (
        "Strangers accepted (FMR), both of one group on the diagonal, one of either group beside "
        "it, at the threshold of verify. Darker is worse; the colours follow the logarithm."
    )
    return Figure(f"groups-{place}", "FMR within and between groups", caption, figure)


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


def write_tables(tables: Iterable[Table], folder: Path) -> None:
    """Write each table as KEY.csv and KEY.tex into a folder, which is made if it is missing.

    Raises:
        BadData: A file cannot be written.
    """
    for table in tables:
        _write(folder / f"{table.key}.csv", table.to_csv().encode())
        _write(folder / f"{table.key}.tex", table.to_latex().encode())


def write_figures(figures: Iterable[Figure], folder: Path) -> None:
    """Write each figure as KEY.svg and KEY.png; folder and errors are those of `write_tables`."""
    for figure in figures:
        _write(folder / f"{figure.key}.svg", figure._repr_svg_().encode())
        _write(folder / f"{figure.key}.png", figure.png())


def check_folder(folder: Path) -> None:
    """Raise BadData where files cannot be written into a folder because it is a file."""
    if folder.exists() and not folder.is_dir():
        raise BadData(f"{folder}: not a folder; choose another place")


def _write(path: Path, content: bytes) -> None:
    with atomic_file(path, "wb") as handle:
        handle.write(content)
