"""The plots that show all verifiers together."""

from typing import TYPE_CHECKING, Any

from facepairs.evaluation.metrics.comparison import Comparison
from facepairs.evaluation.report.data import ReportData
from facepairs.evaluation.report.plots import style
from facepairs.evaluation.report.plots.style import Plot, new_figure, shorten_name
from facepairs.evaluation.report.published import BASELINES, PUBLISHED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DET_TICKS = (1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8)
LEGEND: dict[str, Any] = {
    "frameon": True,
    "facecolor": style.PAPER,
    "edgecolor": "none",
    "framealpha": 0.85,
}
NOTE: dict[str, Any] = {
    "color": style.SOFT,
    "fontsize": 8.5,
    "textcoords": "offset points",
    "xytext": (6, -3),
}
LEADER = {"arrowstyle": "-", "color": style.SOFT, "linewidth": 0.7, "relpos": (0, 0.5)}
MARKED = ("Eigenfaces", "Joint Bayesian", "MDML-DCPs", "MobileFaceNet")
PUBLISHED_NOTE = (
    " Diamonds are published results on LFW's View 2; only their accuracies are known, so both "
    "error rates are drawn as 1 - accuracy. Crosses are this package's baselines on View 2."
)


def shared_plots(report: ReportData) -> list[Plot]:
    """Draw the plots that show all verifiers together."""
    with style.plot_style():
        plots = [_roc(report), _det(report)]
        if report.comparison is not None:
            plots.append(_differences(report.comparison))
    return plots


def _draw_curves(axes: "Axes", report: ReportData, low: float) -> None:
    """Draw every verifier's curve: true accepts, or false rejects where rates are cut at `low`."""

    def heights(true_accepts: Any) -> Any:
        return (1 - true_accepts).clip(low, 1 - low) if low else true_accepts

    for place, model in enumerate(report.models):
        line, name = style.series(place), shorten_name(model.name)
        fmr, summary = model.curve.fmr, model.summary
        axes.plot(fmr.clip(low, 1 - low), heights(model.curve.tmr), label=name, **line)
        point = max(summary.fmr, low), max(summary.fnmr, low) if low else 1 - summary.fnmr
        label = "decision" if place == len(report.models) - 1 else ""
        axes.scatter(
            *point, s=49, color=line["color"], edgecolors=style.PAPER, label=label, zorder=3
        )


def _draw_published(axes: "Axes", report: ReportData, det: bool) -> None:
    if not report.is_lfw:
        return
    rows = [row for row in PUBLISHED if row.method in MARKED]
    errors = [1 - row.accuracy for row in rows]
    heights = errors if det else [row.accuracy for row in rows]
    axes.scatter(
        errors, heights, s=25, c="none", marker="D", edgecolors=style.SOFT, label="published"
    )
    if not det and len(report.models) > 1:
        return  # the names would lie on other curves; the DET curve has them
    for place, (row, x, y) in enumerate(zip(rows, errors, heights, strict=True)):
        text = f"{row.method} {row.accuracy:.3f}"
        note = NOTE
        if place and not det:  # no room beside these in the corner of the ROC plot
            apart = (0.19, 0.62 + 0.07 * place)
            note = {**NOTE, "xytext": apart, "textcoords": "data", "arrowprops": LEADER}
        axes.annotate(text, (x, y), zorder=1.5, **note)


def _draw_baselines(axes: "Axes", report: ReportData, det: bool) -> None:
    """Draw this package's own baselines on LFW, except for those that are measured here."""
    measured = {model.name for model in report.models}
    for row in BASELINES if report.is_lfw else ():
        if row.method not in measured:
            rates, accepts = zip(*row.points, strict=True)
            heights = [1 - tar for tar in accepts] if det else accepts
            axes.plot(rates, heights, "x:", color=style.SOFT, linewidth=1, markersize=5)
            axes.annotate(row.method, (rates[0], heights[0]), **NOTE)


def _roc(report: ReportData) -> Plot:
    figure, axes = new_figure()
    axes.plot([0, 1], [0, 1], **style.DOTTED)
    _draw_curves(axes, report, 0.0)
    _draw_baselines(axes, report, det=False)
    _draw_published(axes, report, det=False)
    axes.set(xlim=(-0.01, 1), ylim=(0, 1.01))
    axes.set_xlabel("false accepts (FMR)")
    axes.set_ylabel("true accepts (1 - FNMR)")
    axes.legend(loc="lower right", **LEGEND)
    caption = "Up and to the left is better. The dotted line is guessing."
    if report.is_lfw:
        caption += PUBLISHED_NOTE
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
    _draw_baselines(axes, report, det=True)
    _draw_published(axes, report, det=True)
    ticks = [tick for tick in DET_TICKS if low <= tick <= high]
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(ticks, [style.percent(tick) for tick in ticks])
        axis.set_minor_locator(NullLocator())
    axes.set(xlim=(low, high), ylim=(low, high))
    axes.set_xlabel("false accepts (FMR)")
    axes.set_ylabel("false rejects (FNMR)")
    axes.legend(loc="upper right", **LEGEND)
    caption = (
        "The same errors on normal-deviate axes, which spread out small rates; down and to the "
        "left is better. On the dotted line both rates are equal."
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
        "AUC of the first less that of the second, with the middle 95 % of the bootstrap draws. "
        "An interval that does not contain 0 is significant at 5 %."
    )
    return Plot("differences", "Differences between verifiers", caption, figure)
