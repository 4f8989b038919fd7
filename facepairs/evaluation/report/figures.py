"""Every figure of an evaluation: page and notebook show them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from facepairs.bundles.rates import OperatingPoint
from facepairs.evaluation.measurement import Measurement
from facepairs.evaluation.metrics.curves import roc, score_histogram
from facepairs.evaluation.metrics.reliability import reliability_curve
from facepairs.evaluation.report import style
from facepairs.evaluation.report.style import Figure, new_figure
from facepairs.evaluation.report.table import percent
from facepairs.evaluation.report.verifier_tables import threshold_range
from facepairs.evaluation.summary import wrong_pairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HIGH = 0.9  # end of the DET curve's axes
DET_TICKS = (1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8)
MARKS = ("o", "D", "s", "^", "v", "P")  # by operating point
LEGEND: dict[str, Any] = {
    "frameon": True,
    "facecolor": style.PAPER,
    "edgecolor": "none",
    "framealpha": 0.85,
}


def evaluation_figures(found: Sequence[Measurement]) -> list[Figure]:
    """Draw the figures that have data: of all verifiers together, then of each."""
    with style.plot_style():
        figures = [_roc(found), _det(found)]
        for place, one in enumerate(found, 1):
            figures.append(_histogram(one, place))
            if one.probability is not None:
                figures.append(_reliability(one, place))
            if len(one.summary.true_folds) > 1:
                figures.append(_folds(one, place))
    return figures


def _draw_curves(axes: "Axes", found: Sequence[Measurement], low: float) -> None:
    """Draw every verifier's curve: true accepts, or false rejects where rates are cut at `low`."""

    def height(fnmr: Any) -> Any:
        return fnmr.clip(low, 1 - low) if low else 1 - fnmr

    for place, one in enumerate(found):
        line, name = style.series(place), style.shorten_name(one.name)
        curve = roc(one.scores.genuine, one.scores.score)
        axes.plot(curve.fmr.clip(low, 1 - low), height(1 - curve.tmr), label=name, **line)
    _draw_points(axes, found, low)


def _draw_points(axes: "Axes", found: Sequence[Measurement], low: float) -> None:
    """Mark every verifier's operating points; a mark has the same meaning for all of them."""
    labels = dict.fromkeys(point.label for one in found for point in one.summary.operating_points)
    marks = dict(zip(labels, MARKS, strict=False))
    for place, one in enumerate(found):
        look: dict[str, Any] = {"color": style.series(place)["color"], "edgecolors": style.PAPER}
        for point in one.summary.operating_points:
            if mark := marks.get(point.label):
                fmr, fnmr = np.clip(error_values(point), low, HIGH if low else 1)
                axes.scatter(
                    fmr,
                    fnmr if low else 1 - fnmr,
                    s=58,
                    zorder=3,
                    clip_on=False,
                    marker=mark,
                    **look,
                )
    for label, mark in marks.items():
        axes.plot([], [], mark, color=style.INK, markersize=6, label=label)


def error_values(point: OperatingPoint) -> tuple[float, float]:
    """Return FMR and FNMR of a point, which were measured."""
    errors = point.errors
    assert errors.fmr is not None
    assert errors.fnmr is not None
    return errors.fmr.value, errors.fnmr.value


def _roc(found: Sequence[Measurement]) -> Figure:
    figure, axes = new_figure()
    axes.plot([0, 1], [0, 1], **style.DOTTED)
    _draw_curves(axes, found, 0.0)
    axes.set(xlim=(-0.01, 1), xlabel="strangers accepted (FMR)")
    axes.set(ylim=(0, 1.01), ylabel="genuine pairs accepted (1 - FNMR)")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(style.percent_tick)
    axes.legend(loc="lower right", **LEGEND)
    caption = (
        "What every threshold does to both kinds of pairs; marks are the operating points. Up and "
        "to the left is better. The dotted line is guessing."
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
    axes.plot([low, high], [low, high], **style.DOTTED)
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
    figure, axes = new_figure(height_in=style.HEIGHT_IN + 0.2)
    data = score_histogram(one.scores.genuine, one.scores.score)
    for label, shares, colour, dash in (
        ("different people", data.impostor, style.IMPOSTOR, "--"),
        ("same person", data.genuine, style.GENUINE, "-"),
    ):
        axes.stairs(shares, data.edges, fill=True, color=colour, alpha=0.28)
        axes.stairs(shares, data.edges, color=colour, linestyle=dash, linewidth=1.6, label=label)
    axes.set_xlim(data.edges[0], data.edges[-1])
    tallest = float(max(data.genuine.max(), data.impostor.max()))
    summary, points = one.summary, one.summary.operating_points
    shown = [point for point in points if point in (points[0], summary.default_point)]
    marks = [(*ends, point) for point in shown if (ends := threshold_range(summary, point))]
    marks.sort(key=lambda mark: mark[:2])
    top = 1.04 + 0.28 * len(marks)
    axes.set_ylim(0, tallest * top)
    for row, (low, high, point) in enumerate(marks):
        _draw_threshold(axes, point, low, high, tallest * (top - 0.28 * row))
    axes.set(xlabel="score: higher is more alike", ylabel="share of the pairs")
    axes.yaxis.set_major_formatter(style.percent_tick)
    figure.legend(loc="outside upper center", ncols=2)
    caption = "Pairs by score. A dashed line is a threshold: pairs at or above it are accepted."
    if any(low < high for low, high, _ in marks):
        caption += " Two of one name: the lowest and the highest of the folds' thresholds."
    return Figure(f"scores-{place}", "Scores and errors", caption, figure)


def _draw_threshold(
    axes: "Axes", point: OperatingPoint, low: float, high: float, top: float
) -> None:
    """Draw the thresholds of a point up to `top`, and both error rates where there is room."""
    left, right = axes.get_xlim()
    on_right = high - left < 0.6 * (right - left)
    at, side, gap = (high, "left", 5) if on_right else (low, "right", -5)
    axes.vlines([low, high], 0, top, **style.DASHED)
    fmr, fnmr = (percent(rate).text for rate in error_values(point))
    lines = (
        (point.label, style.INK, "bold"),
        (f"{fmr} of strangers pass", style.IMPOSTOR, "normal"),
        (f"{fnmr} of genuine missed", style.GENUINE, "normal"),
    )
    for line, (text, colour, weight) in enumerate(lines):
        axes.annotate(
            text,
            (at, top),
            xytext=(gap, -2 - 11.5 * line),
            textcoords="offset points",
            ha=side,
            va="top",
            fontsize=8.8,
            color=colour,
            fontweight=weight,
            bbox=style.BEHIND_TEXT,
        )


def _reliability(one: Measurement, place: int) -> Figure:
    figure, axes = new_figure()
    assert one.probability is not None
    bins = reliability_curve(one.scores.genuine, one.probability, one.lookalike)
    x, y, sizes = bins.probability, bins.genuine_share, 18 + 60 * bins.weight / bins.weight.max()
    axes.plot([0, 1], [0, 1], **style.DOTTED)
    axes.plot(x, y, color=style.SERIES[0], linewidth=1.4)
    axes.scatter(x, y, s=sizes, color=style.SERIES[0], edgecolors=style.PAPER, zorder=3)
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


def _folds(one: Measurement, place: int) -> Figure:
    folds = one.summary.true_folds
    figure, axes = new_figure()
    places = range(len(folds))
    counts = [wrong_pairs(fold) for fold in folds]
    accepts, rejects = ([count[kind] / count[2] for count in counts] for kind in (0, 1))
    errors = [accepted + rejected for accepted, rejected in zip(accepts, rejects, strict=True)]
    axes.bar(places, rejects, color=style.GENUINE, width=0.7, label="genuine pairs missed")
    bars = axes.bar(places, accepts, 0.7, rejects, color=style.IMPOSTOR, label="strangers accepted")
    for bar in bars:
        bar.set(hatch="///", edgecolor=style.PAPER, linewidth=0)
    axes.axhline(sum(errors) / len(errors), **style.DASHED)
    top = max(errors) or 0.01
    every = max(1, len(folds) // 12)
    for at, height in enumerate(errors if len(folds) <= 12 else []):
        text, above = f"{100 * (1 - height):.1f}", height + 0.03 * top
        axes.text(at, above, text, ha="center", fontsize=8.5, bbox=style.BEHIND_TEXT)
    axes.set_ylim(0, 1.32 * top)
    axes.set_xticks(places[::every], [fold.name for fold in folds[::every]])
    axes.grid(visible=False, axis="x")
    axes.yaxis.set_major_formatter(style.percent_tick)
    axes.set(xlabel="fold", ylabel="pairs decided wrongly")
    axes.legend(loc="upper right", ncols=2)
    caption = (
        "Share of each fold's pairs decided wrongly, by kind of error; the number is its accuracy "
        "in percent. Dashed: the mean."
    )
    return Figure(f"folds-{place}", "Errors by fold", caption, figure)
