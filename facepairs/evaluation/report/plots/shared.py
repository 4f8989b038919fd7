"""The plots that show all verifiers together."""

from typing import TYPE_CHECKING, Any

from facepairs.evaluation.metrics.comparison import Comparison
from facepairs.evaluation.report.data import ReportData
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
        plots = [_roc(report), _det(report)]
        if report.comparison is not None:
            plots.append(_differences(report.comparison))
    return plots


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
    labels = dict.fromkeys(point.label for model in report.models for point in model.points)
    marks = dict(zip(labels, MARKS, strict=False))
    for place, model in enumerate(report.models):
        colour = style.series(place)["color"]
        for point in model.points:
            if point.label in marks:
                x, y = (
                    max(point.fmr.rate, low),
                    max(point.fnmr.rate, low) if low else 1 - point.fnmr.rate,
                )
                look = {"color": colour, "edgecolors": style.PAPER, "marker": marks[point.label]}
                axes.scatter(x, y, s=58, zorder=3, **look)
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


def _det(report: ReportData) -> Plot:
    from matplotlib.ticker import NullLocator
    from scipy.special import ndtr, ndtri

    figure, axes = new_figure()
    low, high = min(0.01, max(1e-6, 0.5 / report.data.impostor_pairs)), 0.9
    axes.set_xscale("function", functions=(ndtri, ndtr))
    axes.set_yscale("function", functions=(ndtri, ndtr))
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


def _differences(comparison: Comparison) -> Plot:
    tests = comparison.tests
    figure, axes = new_figure(height_in=1.3 + 0.42 * len(tests))
    axes.axvline(0, color=style.SOFT, linestyle=":", linewidth=1.4)
    for place, test in enumerate(tests):
        axes.plot(test.auc.interval, [place, place], color=style.SERIES[0], linewidth=2.2)
        axes.plot([test.auc.difference], [place], "o", color=style.SERIES[0], markersize=7)
    names = [f"{shorten_name(test.first)} -\n{shorten_name(test.second)}" for test in tests]
    axes.set_yticks(range(len(tests)), names)
    axes.set_ylim(len(tests) - 0.5, -0.5)
    axes.set_xlabel("difference in AUC")
    caption = (
        "AUC of the first less that of the second, with its 95 % interval. Where the interval "
        "contains 0, the verifiers may be equally good."
    )
    return Plot("differences", "Differences between verifiers", caption, figure)
