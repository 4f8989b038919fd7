"""The plots that show all verifiers together."""

from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from facepairs.evaluation.metrics.arrays import Floats
from facepairs.evaluation.report.data import ReportData, point_label
from facepairs.evaluation.report.plots import style
from facepairs.evaluation.report.plots.style import Plot, new_figure, shorten_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DET_TICKS = (1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8)
MARKS = ("o", "D", "s", "^", "v", "P")  # by operating point
LEGEND: dict[str, Any] = {
    "frameon": True,
    "facecolor": style.PAPER,
    "edgecolor": "none",
    "framealpha": 0.85,
}


def shared_plots(report: ReportData) -> list[Plot]:
    """Draw the plots that show all verifiers together."""
    with style.plot_style():
        return [_roc(report), _det(report)]


def _draw_curves(axes: "Axes", report: ReportData, low: float) -> None:
    """Draw every verifier's curve: true accepts, or false rejects where rates are cut at `low`."""

    def height(fnmr: Any) -> Any:
        return fnmr.clip(low, 1 - low) if low else 1 - fnmr

    for place, model in enumerate(report.models):
        line = style.series(place)
        fmr, fnmr = model.curve.fmr, 1 - model.curve.tmr
        axes.plot(fmr.clip(low, 1 - low), height(fnmr), label=shorten_name(model.name), **line)
    _draw_points(axes, report, low)


def _draw_points(axes: "Axes", report: ReportData, low: float) -> None:
    """Mark every verifier's operating points; a mark has the same meaning for all of them."""
    labels = dict.fromkeys(point_label(point) for model in report.models for point in model.points)
    marks = dict(zip(labels, MARKS, strict=False))
    for place, model in enumerate(report.models):
        colour = style.series(place)["color"]
        for point in model.points:
            mark = marks.get(point_label(point))
            if mark is not None:
                x, y = max(point.fmr, low), max(point.fnmr, low) if low else 1 - point.fnmr
                look = {"color": colour, "edgecolors": style.PAPER, "marker": mark}
                axes.scatter(x, y, s=58, zorder=3, clip_on=False, **look)
    for label, mark in marks.items():
        axes.plot([], [], mark, color=style.INK, markersize=6, label=label)


def _roc(report: ReportData) -> Plot:
    figure, axes = new_figure()
    axes.plot([0, 1], [0, 1], **style.DOTTED)
    _draw_curves(axes, report, 0.0)
    axes.set(xlim=(-0.01, 1), ylim=(0, 1.01))
    axes.set_xlabel("strangers accepted (FMR)")
    axes.set_ylabel("genuine pairs accepted (1 - FNMR)")
    axes.xaxis.set_major_formatter(style.percent_tick)
    axes.yaxis.set_major_formatter(style.percent_tick)
    axes.legend(loc="lower right", **LEGEND)
    caption = (
        "What every threshold does to both kinds of pairs; marks are the operating points. Up and "
        "to the left is better. The dotted line is guessing."
    )
    return Plot("roc", "ROC curve", caption, figure)


def _deviate(share: npt.ArrayLike) -> Floats:
    """Return the normal quantiles of shares."""
    inside = np.clip(share, 1e-12, 1 - 1e-12)
    deviates: Floats = np.vectorize(NormalDist().inv_cdf, otypes=[np.float64])(inside)
    return deviates


def _share(deviate: npt.ArrayLike) -> Floats:
    """Return the shares of the normal distribution below its quantiles."""
    shares: Floats = np.vectorize(NormalDist().cdf, otypes=[np.float64])(deviate)
    return shares


def _det(report: ReportData) -> Plot:
    from matplotlib.ticker import NullLocator

    figure, axes = new_figure()
    low, high = min(0.01, max(1e-6, 0.5 / report.data.impostor_pairs)), 0.9
    axes.set_xscale("function", functions=(_deviate, _share))
    axes.set_yscale("function", functions=(_deviate, _share))
    axes.plot([low, high], [low, high], **style.DOTTED)
    _draw_curves(axes, report, low)
    ticks = [tick for tick in DET_TICKS if low <= tick <= high]
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(ticks, [style.percent(tick) for tick in ticks])
        axis.set_minor_locator(NullLocator())
    axes.set(xlim=(low, high), ylim=(low, high))
    axes.set_xlabel("strangers accepted (FMR)")
    axes.set_ylabel("genuine pairs missed (FNMR)")
    axes.legend(loc="upper right", **LEGEND)
    caption = (
        "The same errors on axes that spread out small rates. Down and to the left is better. On "
        "the dotted line both rates are equal."
    )
    return Plot("det", "DET curve", caption, figure)
