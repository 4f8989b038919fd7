"""The plots of a single verifier."""

from facepairs.evaluation.report.data import ModelData
from facepairs.evaluation.report.plots import style
from facepairs.evaluation.report.plots.style import Plot, new_figure


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
    figure, axes = new_figure()
    data = model.histogram
    for label, shares, colour, dash in (
        ("impostor", data.impostor, style.IMPOSTOR, "--"),
        ("genuine", data.genuine, style.GENUINE, "-"),
    ):
        axes.stairs(shares, data.edges, fill=True, color=colour, alpha=0.28)
        axes.stairs(shares, data.edges, color=colour, linestyle=dash, linewidth=1.6, label=label)
    used = model.thresholds[0]
    for value in {used.threshold, used.threshold_high}:
        assert value is not None  # it decided
        axes.axvline(value, **style.DASHED)
    axes.set_xlabel("score: higher is more alike")
    axes.set_ylabel("share of the class")
    axes.yaxis.set_major_formatter(_percent_tick)
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper right")
    caption = (
        "Share of each class's pairs by score; errors are made where the two overlap. Dashed: the "
        "threshold, or the lowest and highest of several."
    )
    return Plot("scores", "Scores", caption, figure)


def _percent_tick(value: float, _: object) -> str:
    return style.percent(round(value, 6))


def _reliability(model: ModelData) -> Plot:
    figure, axes = new_figure()
    bins = model.reliability
    assert bins is not None
    x, y, sizes = bins.probability, bins.genuine_share, 18 + 60 * bins.weight / bins.weight.max()
    axes.plot([0, 1], [0, 1], **style.DOTTED)
    axes.plot(x, y, color=style.SERIES[0], linewidth=1.4)
    axes.scatter(x, y, s=sizes, color=style.SERIES[0], edgecolors=style.PAPER, zorder=3)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axes.set_xlabel("predicted probability of being genuine")
    axes.set_ylabel("observed share that is genuine")
    axes.text(0.03, 0.95, f"ECE {bins.ece:.4f}", transform=axes.transAxes, va="top")
    caption = (
        "Predicted probability of being genuine, and the share of pairs that are. On the dotted "
        "line both are equal. Classes count equally."
    )
    return Plot("reliability", "Reliability of the probability", caption, figure)


def _folds(model: ModelData) -> Plot:
    folds = model.summary.true_folds
    figure, axes = new_figure()
    places = range(len(folds))
    accepts = [fold.false_accepts / fold.pairs for fold in folds]
    rejects = [fold.false_rejects / fold.pairs for fold in folds]
    errors = [1 - fold.accuracy for fold in folds]
    axes.bar(places, rejects, color=style.GENUINE, width=0.7, label="false rejects")
    bars = axes.bar(places, accepts, 0.7, rejects, color=style.IMPOSTOR, label="false accepts")
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
    axes.yaxis.set_major_formatter(_percent_tick)
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
        for value, bounds, colour, mark, shift in (
            (row.fnmr, row.fnmr_interval, style.GENUINE, "o", -0.16),
            (row.fmr, row.fmr_interval, style.IMPOSTOR, "s", 0.16),
        ):
            axes.hlines(place + shift, *bounds, color=colour, linewidth=1.6)
            axes.plot([value], [place + shift], mark, color=colour, markersize=5)
    axes.set_yticks(places, labels)
    axes.set_ylim(place + 0.7, -0.7)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(_percent_tick)
    axes.plot([], [], "o-", color=style.GENUINE, label="false rejects (FNMR)")
    axes.plot([], [], "s-", color=style.IMPOSTOR, label="false accepts (FMR)")
    figure.legend(loc="outside upper center", ncols=2)
    axes.set_xlabel("error rate")
    caption = "Pairs in thirds by their worse photo, with 95 % intervals."
    return Plot("quality", "Errors by image quality", caption, figure)
