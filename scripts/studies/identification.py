"""Known people among strangers: the included model on the ten sets of LFW's View 2.

    python scripts/studies/identification.py DATA --lists LISTS

In each set half of the people with several photos are known, by one to three photos each; they are
asked for with their other photos, and everybody else of the set is a stranger. The network has seen
nobody; its own errors, which set the thresholds of `gallery identify`, were measured on all of LFW.
Prints the mean over the ten sets, its 95 % interval (Student), and the least and the best set.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import t

from facepairs.cli.shared.output import ERROR, print_error, showing_on_stderr
from facepairs.data.index import FaceIndex
from facepairs.data.lfw.lists import read_people
from facepairs.errors import FacepairsError
from facepairs.evaluation.identification import (
    IdentificationFigures,
    identification_figures,
    split_people,
)
from facepairs.evaluation.pair_scores import embed_images
from facepairs.support.words import align_columns
from facepairs.verification.verifier import Verifier


def values(figures: IdentificationFigures) -> dict[str, float]:
    """Return the figures of a set by name; NaN where a rate is not supported."""
    rows = {f"among the first {rank}": rate.value for rank, rate in figures.cmc.items()}
    for point in figures.points:
        name = f"FPIR {point.max_fpir:g}, threshold of {point.set_by}"
        for kind, rate in (("found", point.dir), ("strangers taken", point.fpir)):
            rows[f"{name}: {kind}"] = float("nan") if rate is None else rate.value
    return rows


def measure(data: Path, lists: Path) -> None:
    """Measure the ten sets and print the table."""
    index = FaceIndex.scan(data)
    sets = read_people(lists / "people.txt", index)
    verifier = Verifier.load()
    images = np.arange(len(index))
    embeddings, _ = embed_images(verifier, index, images)
    measured, counts = [], []
    for people in sets:
        inside = np.isin(index.person_of, people)
        person = index.person_of[inside].astype(np.int64)
        figures = identification_figures(
            verifier.model.profile,
            embeddings[inside],
            person,
            split_people(person),
            verifier.scorer.compare,
        )
        measured.append(values(figures))
        counts.append((figures.known, figures.enrolled, figures.strangers))
    for place, name in enumerate(("known", "enrolled", "strangers")):
        numbers = [count[place] for count in counts]
        print(f"{name}: {min(numbers)} to {max(numbers)}")
    table = [["figure", "mean (95 %)", "sets"]]
    for name in measured[0]:
        row = np.array([one[name] for one in measured])
        mean, half = row.mean(), t.ppf(0.975, len(row) - 1) * row.std(ddof=1) / np.sqrt(len(row))
        interval = f"{mean:.4f} ({mean - half:.4f} to {mean + half:.4f})"
        table.append([name, interval, f"{row.min():.4f} to {row.max():.4f}"])
    print("\n".join(align_columns(table)))


def run(study: Callable[[Path, Path], None], description: str) -> int:
    """Run a study of LFW by its command line, and return the exit code.

    Args:
        study: Takes the folder of photos and the folder of lists.
        description: What the help says of it.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("data", type=Path, help="all of LFW: Person_Name/photo.jpg")
    parser.add_argument("--lists", type=Path, required=True, help="folder of LFW's lists")
    options = parser.parse_args()
    try:
        with showing_on_stderr():
            study(options.data, options.lists)
    except (FacepairsError, OSError) as error:
        print_error("error", str(error), False)
        return ERROR
    return 0


if __name__ == "__main__":
    sys.exit(run(measure, __doc__.splitlines()[0]))
