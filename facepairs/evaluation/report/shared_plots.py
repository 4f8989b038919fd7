"""The plots that show all verifiers together, from the numbers alone."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from facepairs.evaluation.report.style import (
    DASHES,
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
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Numbers = Mapping[str, Any]
DET_TICKS = (0.001, 0.01, 0.05, 0.2, 0.5, 0.8)
ON_CURVES: dict[str, Any] = {
    "frameon": True,
    "facecolor": PAPER,
    "edgecolor": "none",
    "framealpha": 0.85,
}
LEADER = {"arrowstyle": "-", "color": SOFT, "linewidth": 0.7, "relpos": (0, 0.5)}
MARKED = ("Eigenfaces", "Joint Bayesian", "MDML-DCPs", "MobileFaceNet")


def shared_plots(numbers: Numbers) -> list[Plot]:
    """Draw what shows all verifiers together."""
    with house_style():
        plots = [
            Plot(
                "roc",
                "ROC curve",
                "Up and to the left is better. The dotted line is guessing."
                + (_published_note() if numbers["published"]["drawn"] else ""),
                _roc(numbers),
            ),
            Plot(
                "det",
                "DET curve",
                "The same errors on normal-deviate axes, where small rates can be told apart; down "
                "and to the left is better. The dotted line is where both rates are equal.",
                _det(numbers),
            ),
        ]
        if numbers["comparison"]:
            plots.append(
                Plot(
                    "differences",
                    "Differences between verifiers",
                    "AUC of the first less that of the second, with the middle 95 % of the "
                    "bootstrap's draws. An interval that does not touch 0 is no mere luck.",
                    _differences(numbers["comparison"]),
                )
            )
    return plots


def _published_note() -> str:
    return (
        " Diamonds are published results on LFW's View 2; only their accuracies are known, so "
        "they stand where both error rates are 1 - accuracy. Crosses are this package's baselines, "
        "as measured on View 2."
    )


def _curves(axes: "Axes", numbers: Numbers, low: float) -> None:
    """Draw every verifier's curve as false accepts against false rejects or true accepts."""
    for place, model in enumerate(numbers["models"]):
        curve = model["curve"]
        accepts = [max(rate, low) for rate in curve["fmr"]]
        other = curve["tmr"] if not low else [max(1 - rate, low) for rate in curve["tmr"]]
        axes.plot(
            [min(x, 1 - low) for x in accepts],
            [min(y, 1 - low) for y in other],
            color=SERIES[place % len(SERIES)],
            linestyle=DASHES[place % len(DASHES)],
            label=short(model["name"]),
        )
        used = model["thresholds"][0]
        axes.plot(
            [max(used["fmr"], low)],
            [max(used["fnmr"], low) if low else 1 - used["fnmr"]],
            "o",
            color=SERIES[place % len(SERIES)],
            markeredgecolor=PAPER,
            markersize=7,
            label="as decided" if place == len(numbers["models"]) - 1 else None,
        )


def _published(axes: "Axes", numbers: Numbers, det: bool) -> None:
    if not numbers["published"]["drawn"]:
        return
    rows = [row for row in numbers["published"]["rows"] if row["method"] in MARKED]
    errors = [1 - row["accuracy"] for row in rows]
    axes.plot(
        errors,
        errors if det else [row["accuracy"] for row in rows],
        "D",
        color="none",
        markeredgecolor=SOFT,
        markersize=5,
        label="published",
    )
    if not det and len(numbers["models"]) > 1:
        return  # other curves pass where the names would stand; the DET curve has them
    for place, (row, error) in enumerate(zip(rows, errors, strict=True)):
        beside = det or not place  # in the ROC's corner there is no room for the better ones
        axes.annotate(
            f"{row['method']} {row['accuracy']:.3f}",
            (error, error if det else row["accuracy"]),
            xytext=(6, -3) if beside else (0.19, 0.62 + 0.07 * place),
            textcoords="offset points" if beside else "data",
            arrowprops=None if beside else LEADER,
            color=SOFT,
            fontsize=8.5,
            zorder=1.5,
        )


def _baselines(axes: "Axes", numbers: Numbers, det: bool) -> None:
    """Mark this package's own baselines on LFW, unless they are what is measured."""
    if not numbers["published"]["drawn"]:
        return
    shown = {model["name"] for model in numbers["models"]}
    for row in numbers["published"]["baselines"]:
        if row["method"] in shown:
            continue
        rates, accepts = zip(*row["points"], strict=True)
        heights = [1 - tar for tar in accepts] if det else accepts
        axes.plot(rates, heights, "x:", color=SOFT, linewidth=1, markersize=5)
        axes.annotate(
            row["method"],
            (rates[0], heights[0]),
            xytext=(6, -3),
            textcoords="offset points",
            color=SOFT,
            fontsize=8.5,
        )


def _roc(numbers: Numbers) -> "Figure":
    figure, (axes,) = new_figure()
    axes.plot([0, 1], [0, 1], ":", color=SOFT, linewidth=1.2)
    _curves(axes, numbers, 0.0)
    _baselines(axes, numbers, det=False)
    _published(axes, numbers, det=False)
    axes.set(xlim=(-0.01, 1), ylim=(0, 1.01))
    axes.set_xlabel("false accepts (FMR)")
    axes.set_ylabel("true accepts (1 - FNMR)")
    axes.legend(loc="lower right", **ON_CURVES)
    return figure


def _det(numbers: Numbers) -> "Figure":
    from scipy.special import ndtr, ndtri

    figure, (axes,) = new_figure()
    impostors = max(1, numbers["data"]["impostor_pairs"])
    low = min(0.01, max(1e-6, 0.5 / impostors))
    axes.set_xscale("function", functions=(ndtri, ndtr))
    axes.set_yscale("function", functions=(ndtri, ndtr))
    highest = 0.9
    axes.plot([low, highest], [low, highest], ":", color=SOFT, linewidth=1.2)
    _curves(axes, numbers, low)
    _baselines(axes, numbers, det=True)
    _published(axes, numbers, det=True)
    ticks = [tick for tick in (1e-6, 1e-5, 1e-4, *DET_TICKS) if low <= tick <= highest]
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(ticks, [percent(tick) for tick in ticks])
        axis.set_minor_locator(_no_ticks())
    axes.set(xlim=(low, highest), ylim=(low, highest))
    axes.set_xlabel("false accepts (FMR)")
    axes.set_ylabel("false rejects (FNMR)")
    axes.legend(loc="upper right", **ON_CURVES)
    return figure


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def _differences(comparison: Numbers) -> "Figure":
    tests: Sequence[Numbers] = comparison["tests"]
    figure, (axes,) = new_figure(height_in=1.3 + 0.42 * len(tests))
    axes.axvline(0, color=SOFT, linestyle=":", linewidth=1.4)
    for place, test in enumerate(tests):
        gap = test["auc"]
        axes.plot(gap["interval"], [place, place], color=SERIES[0], linewidth=2.2)
        axes.plot([gap["difference"]], [place], "o", color=SERIES[0], markersize=7)
    names = [f"{short(test['first'])} -\n{short(test['second'])}" for test in tests]
    axes.set_yticks(range(len(tests)), names)
    axes.set_ylim(len(tests) - 0.5, -0.5)
    axes.set_xlabel("difference in AUC")
    return figure
