"""Where a method of `facepairs crossval` errs: by light, sharpness, colour and size of photos.

    python scripts/failures.py DATA RUN/siamese [--out failures.md]

Each pair is decided at its own fold's threshold. A pair counts by its worse photo: the darker, the
blurrier, the grayer, the smaller one of the two, as the network sees them. Groups are thirds of all
pairs. Prints Markdown: errors with 95 % intervals. `facepairs evaluate RUN/siamese DATA --report
report.html` draws the same.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from facepairs.cli.output import ERROR, print_error, ticker
from facepairs.errors import FacepairsError
from facepairs.evaluation.measured import measure_view2
from facepairs.evaluation.metrics import fmr_fnmr
from facepairs.evaluation.photos import Photos
from facepairs.evaluation.quality import errors_by_quality, photo_qualities, worse_of_pairs
from facepairs.evaluation.sources import Source
from facepairs.support.atomic import atomic_file


def row(label: str, rates: Any) -> str:
    """Give one line of the table, of an `ErrorRates` as a dict or a row of `errors_by_quality`."""
    cells = [
        f"{rates[key]:.3f} ({rates[f'{key}_interval'][0]:.3f} to {rates[f'{key}_interval'][1]:.3f})"
        for key in ("fmr", "fnmr")
    ]
    return (
        f"| {label} | {rates['genuine_pairs'] + rates['impostor_pairs']:,} | {' | '.join(cells)} |"
    )


def report(data: Path, run: Path) -> str:
    """Give the Markdown."""
    measured = measure_view2(Source("view2", str(run), run.name))
    scores = measured.scores
    photos = Photos.below(data, scores)
    paths = photos.paths() if photos else {}
    found = photo_qualities(paths, measured.framing, ticker("looking at photos"))
    worse = worse_of_pairs(scores.left, scores.right, found)
    rates = fmr_fnmr(scores.genuine, measured.accepted.astype(np.float64), 1.0)
    names = ("fmr", "fmr_interval", "fnmr", "fnmr_interval", "genuine_pairs", "impostor_pairs")
    lines = ["| photos | pairs | false accepts (FMR) | false rejects (FNMR) |", "| --- " * 4 + "|"]
    lines.append(row("all", {name: getattr(rates, name) for name in names}))
    lines += [
        row(f"{part['measure']} ({part['unit']}): {part['label']} third", part)
        for part in errors_by_quality(scores.genuine, measured.accepted, worse)
    ]
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
