"""Where a method of `facepairs crossval` errs: its errors by light, sharpness and colour of photos.

    python scripts/failures.py DATA RUN/siamese [--out failures.md]

Each pair is decided at its own fold's threshold. A pair counts by its worse photo: the darker, the
blurrier, the grayer one of the two, as the network sees them (the centre 128 of 250 pixels). Groups
are thirds of all pairs. Prints Markdown: errors with 95 % intervals.
"""

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from facepairs.atomic import atomic_file
from facepairs.cli.output import ERROR, print_error, ticker
from facepairs.errors import BadData, FacepairsError
from facepairs.evaluation.metrics import ErrorRates, fmr_fnmr
from facepairs.evaluation.scores import Scores, read_scores
from facepairs.verification.image import Framing, load_crop

FRAMING = Framing(frame_px=250, crop_px=128)
QUALITIES = {  # the lower, the worse
    "light (mean gray level)": ("darkest", "brightest"),
    "sharpness (mean gradient)": ("blurriest", "sharpest"),
    "colour (mean saturation)": ("grayest", "most colourful"),
}
Floats = npt.NDArray[np.float64]


def qualities(path: Path) -> tuple[float, float, float]:
    """Give a photo's light, sharpness and colour, all 0 … 1."""
    crop = load_crop(path, FRAMING).astype(np.float64) / 255
    gray = crop @ np.array([0.299, 0.587, 0.114])
    down, right = np.gradient(gray)
    saturation = crop.max(axis=2) - crop.min(axis=2)
    return float(gray.mean()), float(np.hypot(down, right).mean()), float(saturation.mean())


def worse_of_pairs(data: Path, scores: Scores) -> Floats:
    """Give each pair's qualities, those of the worse photo: float64[pairs, 3]."""
    names = sorted({*scores.left, *scores.right})
    tick = ticker("looking at photos")
    table = {}
    with ThreadPoolExecutor() as pool:
        found = pool.map(lambda name: qualities(data / name), names)
        for done, (name, values) in enumerate(zip(names, found, strict=True), 1):
            table[name] = values
            tick(done, len(names))
    pairs = zip(scores.left, scores.right, strict=True)
    return np.array([np.minimum(table[left], table[right]) for left, right in pairs])


def above_threshold(scores: Scores, result: Path) -> Floats:
    """Give score minus the threshold of the pair's fold; raises BadData."""
    try:
        folds = json.loads(result.read_text(encoding="utf-8"))["folds"]
        thresholds = {int(row["fold"]): float(row["threshold"]) for row in folds}
        return scores.score - np.array([thresholds[int(fold)] for fold in scores.fold])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadData(
            f"{result}: has no threshold for every fold ({error}); run crossval"
        ) from None


def row(label: str, rates: ErrorRates) -> str:
    """Give one line of the table."""
    cells = [
        f"{rate:.3f} ({low:.3f} to {high:.3f})"
        for rate, (low, high) in (
            (rates.fmr, rates.fmr_interval),
            (rates.fnmr, rates.fnmr_interval),
        )
    ]
    return f"| {label} | {rates.genuine_pairs + rates.impostor_pairs:,} | {' | '.join(cells)} |"


def report(data: Path, run: Path) -> str:
    """Give the Markdown."""
    scores = read_scores(run / "scores.csv")
    margin = above_threshold(scores, run / "result.json")
    lines = ["| photos | pairs | false accepts (FMR) | false rejects (FNMR) |", "| --- " * 4 + "|"]
    lines.append(row("all", fmr_fnmr(scores.genuine, margin, 0.0)))
    for (name, (worst, best)), value in zip(
        QUALITIES.items(), worse_of_pairs(data, scores).T, strict=True
    ):
        third = np.searchsorted(np.quantile(value, [1 / 3, 2 / 3]), value)
        for part, label in enumerate((worst, "middle", best)):
            chosen = third == part
            if len(set(scores.genuine[chosen].tolist())) < 2:
                continue  # photos that do not differ in it
            rates = fmr_fnmr(scores.genuine[chosen], margin[chosen], 0.0)
            lines.append(row(f"{name}: {label} third", rates))
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("run", type=Path, help="a method's folder of crossval")
    parser.add_argument("--out", type=Path, help="write the Markdown there")
    given = parser.parse_args()
    try:
        text = report(given.data, given.run)
        if given.out:
            with atomic_file(given.out) as handle:
                handle.write(text)
    except (FacepairsError, OSError) as error:
        print_error("error", str(error), False)
        return ERROR
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
