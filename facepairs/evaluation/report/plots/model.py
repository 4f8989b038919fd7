"""The plots of a single verifier."""

from typing import TYPE_CHECKING

from facepairs.evaluation.metrics.arrays import Interval
from facepairs.evaluation.metrics.operating_points import PointErrors
from facepairs.evaluation.report.data import ModelData, point_label
from facepairs.evaluation.report.plots import style
from facepairs.evaluation.report.plots.style import Plot, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def model_plots(model: ModelData, number: int) -> list[Plot]:
    """Draw the plots of one verifier, `number` from 1; plots without data are left out."""
    with style.plot_style():
        plots = [_histogram(model)]
        if model.reliability is not None:
            plots.append(_reliability(model))
        if len(model.summary.true_folds) > 1:
            plots.append(_folds(model))
        if model.quality:
            plots.append(_quality(model))
    return [plot._replace(key=f"{plot.key}-{number}") for plot in plots]


def _histogram(model: ModelData) -> Plot:
    figure, axes = new_figure(height_in=style.HEIGHT_IN + 0.2)
    data = model.histogram
    for label, shares, colour, dash in (
        ("different people", data.impostor, style.IMPOSTOR, "--"),
        ("same person", data.genuine, style.GENUINE, "-"),
    ):
        axes.stairs(shares, data.edges, fill=True, color=colour, alpha=0.28)
        axes.stairs(shares, data.edges, color=colour, linestyle=dash, linewidth=1.6, label=label)
    axes.set_xlim(data.edges[0], data.edges[-1])
    tallest = float(max(data.genuine.max(), data.impostor.max()))
    shown = [one for one in model.points if one in (model.points[0], model.default_point)]
    marks = [(*ends, point) for point in shown if (ends := model.threshold_range(point))]
    marks.sort(key=lambda mark: mark[:2])
    top = 1.04 + 0.28 * len(marks)
    axes.set_ylim(0, tallest * top)
    for row, (low, high, point) in enumerate(marks):
        _draw_threshold(axes, point, low, high, tallest * (top - 0.28 * row))
    axes.set_xlabel("score: higher is more alike")
    axes.set_ylabel("share of the pairs")
    axes.yaxis.set_major_formatter(style.percent_tick)
    figure.legend(loc="outside upper center", ncols=2)
    caption = "Pairs by score. A dashed line is a threshold: pairs at or above it are accepted."
    if any(low < high for low, high, _ in marks):
        caption += " Two of one name: the lowest and the highest of the folds' thresholds."
    return Plot("scores", "Scores and errors", caption, figure)


def _draw_threshold(axes: "Axes", point: PointErrors, low: float, high: float, top: float) -> None:
    """Draw the thresholds of a point up to `top`, and both error rates where there is room."""
    left, right = axes.get_xlim()
    on_right = high - left < 0.6 * (right - left)
    at, side, gap = (high, "left", 5) if on_right else (low, "right", -5)
    axes.vlines([low, high], 0, top, **style.DASHED)
    fmr, fnmr = style.short_percent(point.fmr), style.short_percent(point.fnmr)
    lines = (
        (point_label(point), style.INK, "bold"),
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


def _reliability(model: ModelData) -> Plot:
    figure, axes = new_figure()
    bins = model.reliability
    assert bins is not None
    x, y, sizes = bins.probability, bins.genuine_share, 18 + 60 * bins.weight / bins.weight.max()
    axes.plot([0, 1], [0, 1], **style.DOTTED)
    axes.plot(x, y, color=style.SERIES[0], linewidth=1.4)
    axes.scatter(x, y, s=sizes, color=style.SERIES[0], edgecolors=style.PAPER, zorder=3)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axes.set_xlabel("probability of the same person, at equal priors")
    axes.set_ylabel("share of genuine pairs")
    axes.text(
        0.03, 0.95, f"calibration error (ECE) {bins.ece:.4f}", transform=axes.transAxes, va="top"
    )
    weights = "Genuine pairs and strangers count equally"
    if model.weighs_lookalikes:
        weights += ", and half of the strangers' weight is that of look-alikes"
    caption = (
        "Of the pairs with a probability, the share that shows one person; on the dotted line both "
        f"are equal. {weights}. Probability: {model.probability_source}."
    )
    return Plot("reliability", "Reliability of the probability", caption, figure)


def _folds(model: ModelData) -> Plot:
    folds = model.summary.true_folds
    figure, axes = new_figure()
    places = range(len(folds))
    accepts = [fold.false_accepts / fold.pairs for fold in folds]
    rejects = [fold.false_rejects / fold.pairs for fold in folds]
    errors = [1 - fold.accuracy for fold in folds]
    axes.bar(places, rejects, color=style.GENUINE, width=0.7, label="genuine pairs missed")
    bars = axes.bar(places, accepts, 0.7, rejects, color=style.IMPOSTOR, label="strangers accepted")
    for bar in bars:
        bar.set(hatch="///", edgecolor=style.PAPER, linewidth=0)
    axes.axhline(sum(errors) / len(errors), **style.DASHED)
    top = max(errors) or 0.01
    every = max(1, len(folds) // 12)
    for place, (fold, height) in enumerate(zip(folds, errors, strict=True)):
        if len(folds) <= 12:
            text, above = f"{100 * fold.accuracy:.1f}", height + 0.03 * top
            axes.text(place, above, text, ha="center", fontsize=8.5, bbox=style.BEHIND_TEXT)
    axes.set_ylim(0, 1.32 * top)
    axes.set_xticks(places[::every], [str(fold.fold) for fold in folds[::every]])
    axes.grid(visible=False, axis="x")
    axes.yaxis.set_major_formatter(style.percent_tick)
    axes.set_xlabel("fold")
    axes.set_ylabel("pairs decided wrongly")
    axes.legend(loc="upper right", ncols=2)
    caption = (
        "Share of each fold's pairs decided wrongly, by kind of error; the number is its accuracy "
        "in percent. Dashed: the mean."
    )
    return Plot("folds", "Errors by fold", caption, figure)


def _quality(model: ModelData) -> Plot:
    rows = model.quality
    assert rows
    measures = {row.measure for row in rows}
    figure, axes = new_figure(height_in=1.2 + 0.27 * (len(rows) + len(measures)))
    place, places, labels = -1.0, [], []
    for before, row in zip([rows[0], *rows], rows, strict=False):
        place += 1 if row.measure == before.measure else 1.6
        places.append(place)
        labels.append(f"{row.label} {row.measure}" if row.third == 1 else row.label)
        _draw_rate(axes, place - 0.16, row.fnmr, row.fnmr_interval, style.GENUINE, "o")
        _draw_rate(axes, place + 0.16, row.fmr, row.fmr_interval, style.IMPOSTOR, "s")
    axes.set_yticks(places, labels)
    axes.set_ylim(place + 0.7, -0.7)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(style.percent_tick)
    axes.plot([], [], "o-", color=style.GENUINE, label="genuine pairs missed")
    axes.plot([], [], "s-", color=style.IMPOSTOR, label="strangers accepted")
    figure.legend(loc="outside upper center", ncols=2)
    axes.set_xlabel("error rate")
    caption = "Pairs in thirds by their worse photo, with 95 % intervals."
    return Plot("quality", "Errors by image quality", caption, figure)


def _draw_rate(
    axes: "Axes", place: float, rate: float, interval: Interval, colour: str, mark: str
) -> None:
    axes.hlines(place, *interval, color=colour, linewidth=1.6)
    axes.plot([rate], [place], mark, color=colour, markersize=5)
