"""The plots that belong to one verifier, each from its numbers alone."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from facepairs.evaluation.report.style import (
    BEHIND_TEXT,
    DASHES,
    GENUINE,
    IMPOSTOR,
    INK,
    PAPER,
    SERIES,
    SOFT,
    Plot,
    house_style,
    new_figure,
    percent,
    short,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Numbers = Mapping[str, Any]


def model_plots(model: Numbers, number: int) -> list[Plot]:
    """Draw what belongs to one verifier, `number` from 1; plots without numbers are left out."""
    drawn: list[tuple[str, str, str, Callable[[Numbers], Figure], bool]] = [
        (
            "scores",
            "Scores",
            "Share of each class's pairs by score; where the two overlap, errors are made. "
            "Dashed: the threshold, or the lowest and highest of several.",
            _histogram,
            True,
        ),
        (
            "reliability",
            "Reliability of the probability",
            "Pairs said to be genuine with some probability, and how many of them are. On the "
            "dotted line a probability can be taken at its word. Classes count equally.",
            _reliability,
            model["reliability"]["bins"] is not None,
        ),
        (
            "folds",
            "Errors by fold",
            "Share of each fold's pairs decided wrongly, and how; the number is its accuracy in "
            "percent. Dashed: the mean.",
            _folds,
            len(model["folds"]) > 1,
        ),
        (
            "quality",
            "Errors by image quality",
            "Pairs in thirds by their worse photo, with 95 % intervals.",
            _quality,
            bool(model["quality"]),
        ),
        (
            "training",
            "Training",
            "Above the loss on pairs trained on, below the AUC on people set aside; one line a "
            "run.",
            _training,
            any("loss" in row for rows in model["history"].values() for row in rows),
        ),
    ]
    with house_style():
        return [
            Plot(f"{key}-{number}", title, caption, draw(model))
            for key, title, caption, draw, there in drawn
            if there
        ]


def _histogram(model: Numbers) -> "Figure":
    figure, (axes,) = new_figure()
    data = model["histogram"]
    for key, colour, dash in (("impostor", IMPOSTOR, "--"), ("genuine", GENUINE, "-")):
        axes.stairs(data[key], data["edges"], fill=True, color=colour, alpha=0.28)
        axes.stairs(
            data[key], data["edges"], color=colour, linestyle=dash, linewidth=1.6, label=key
        )
    used = model["thresholds"][0]
    for value in {used["threshold"], used["threshold_high"]}:
        axes.axvline(value, color=INK, linestyle=(0, (4, 3)), linewidth=1.1)
    axes.set_xlabel("score: higher is more alike")
    axes.set_ylabel("share of the class")
    axes.yaxis.set_major_formatter(lambda value, _: percent(round(value, 6)))
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper right")
    return figure


def _reliability(model: Numbers) -> "Figure":
    figure, (axes,) = new_figure()
    bins = model["reliability"]["bins"]
    axes.plot([0, 1], [0, 1], ":", color=SOFT, linewidth=1.2)
    axes.plot(bins["probability"], bins["genuine_share"], color=SERIES[0], linewidth=1.4)
    most = max(bins["weight"])
    sizes = [18 + 60 * weight / most for weight in bins["weight"]]
    axes.scatter(
        bins["probability"],
        bins["genuine_share"],
        s=sizes,
        color=SERIES[0],
        edgecolors=PAPER,
        zorder=3,
    )
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axes.set_xlabel("said: probability of being genuine")
    axes.set_ylabel("seen: share that is genuine")
    ece = model["reliability"]["ece"]
    axes.text(0.03, 0.95, f"ECE {ece:.4f}", transform=axes.transAxes, va="top")
    return figure


def _folds(model: Numbers) -> "Figure":
    rows = model["folds"]
    figure, (axes,) = new_figure()
    places = range(len(rows))
    accepts = [row["false_accepts"] / row["pairs"] for row in rows]
    rejects = [row["false_rejects"] / row["pairs"] for row in rows]
    both = [a + b for a, b in zip(accepts, rejects, strict=True)]
    axes.bar(places, rejects, color=GENUINE, width=0.7, label="false rejects")
    axes.bar(
        places,
        accepts,
        bottom=rejects,
        color=IMPOSTOR,
        width=0.7,
        hatch="///",
        edgecolor=PAPER,
        linewidth=0,
        label="false accepts",
    )
    mean = sum(both) / len(both)
    axes.axhline(mean, color=INK, linestyle=(0, (4, 3)), linewidth=1.1)
    top = max(both) or 0.01
    for place, (row, height) in enumerate(zip(rows, both, strict=True)):
        if len(rows) <= 12:
            axes.text(
                place,
                height + 0.03 * top,
                f"{100 * row['accuracy']:.1f}",
                ha="center",
                fontsize=8.5,
                bbox=BEHIND_TEXT,
            )
    axes.set_ylim(0, 1.32 * top)
    axes.set_xticks(list(places)[:: max(1, len(rows) // 12)])
    axes.set_xticklabels([str(row["fold"]) for row in rows][:: max(1, len(rows) // 12)])
    axes.grid(visible=False, axis="x")
    axes.yaxis.set_major_formatter(lambda value, _: percent(round(value, 6)))
    axes.set_xlabel("fold")
    axes.set_ylabel("pairs decided wrongly")
    axes.legend(loc="upper right", ncols=2)
    return figure


def _quality(model: Numbers) -> "Figure":
    rows = model["quality"]
    measures = list(dict.fromkeys(row["measure"] for row in rows))
    figure, (axes,) = new_figure(height_in=1.2 + 0.27 * (len(rows) + len(measures)))
    labels, place, places = [], 0.0, []
    for measure in measures:
        for row in (row for row in rows if row["measure"] == measure):
            labels.append(f"{row['label']} {row['measure'] if row['third'] == 1 else ''}".strip())
            places.append(place)
            for key, colour, mark, shift in (
                ("fnmr", GENUINE, "o", -0.16),
                ("fmr", IMPOSTOR, "s", 0.16),
            ):
                low, high = row[f"{key}_interval"]
                axes.plot([low, high], [place + shift] * 2, color=colour, linewidth=1.6)
                axes.plot([row[key]], [place + shift], mark, color=colour, markersize=5)
            place += 1
        place += 0.6
    axes.set_yticks(places, labels)
    axes.set_ylim(place - 0.3, -0.7)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(lambda value, _: percent(round(value, 6)))
    axes.plot([], [], "o-", color=GENUINE, label="false rejects (FNMR)")
    axes.plot([], [], "s-", color=IMPOSTOR, label="false accepts (FMR)")
    figure.legend(loc="outside upper center", ncols=2)
    axes.set_xlabel("error rate")
    return figure


def _training(model: Numbers) -> "Figure":
    runs = model["history"]
    figure, (loss, area) = new_figure(2, 4.6)
    for place, (name, rows) in enumerate(runs.items()):
        for axes, key in ((loss, "loss"), (area, "val_auc")):
            points = [(row["epoch"], row[key]) for row in rows if key in row]
            axes.plot(
                [x for x, _ in points],
                [y for _, y in points],
                color=SERIES[place % len(SERIES)],
                linestyle=DASHES[(place // len(SERIES)) % len(DASHES)],
                linewidth=1.5,
                marker="o" if len(points) < 3 else "",
                label=short(name),
            )
    loss.set_ylabel("loss")
    area.set_ylabel("AUC, people set aside")
    area.set_xlabel("epoch")
    area.xaxis.set_major_locator(_whole_numbers())
    if len(runs) > 1:
        figure.legend(*loss.get_legend_handles_labels(), loc="outside upper center", ncols=5)
    return figure


def _whole_numbers() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(integer=True)
