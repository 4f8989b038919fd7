"""How often does `facepairs drift` see a change, where there is none and where there is one?

    nice -n 10 python scripts/studies/drift.py --draws 400

People are drawn from the population of `drawn_population.py`, with as many photos as LFW's people
have; for the calibration their names are known, later they are not. The share of draws whose chance
is below .05 should be .05 without a change. With one, photos have more noise, as those of a poorer
camera, or people are more alike, as those of one region and age.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from drawn_population import draw_photos, truth

from facepairs.bundles.rates import SAMPLE_SHARES, SampleFigures
from facepairs.evaluation.drift import GROUPING_FMR, change_of_scores, one_of_each

SIZES = ((30, 30), (60, 60), (60, 300), (300, 60), (300, 300))


def scores_of(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    left, right = np.triu_indices(len(rows), 1)
    return (rows @ rows.T)[left, right].astype(np.float64), left, right


def chance_of(random: np.random.Generator, there: int, here: int, change: float) -> float:
    """Return the chance that the test gives to one draw."""
    before = draw_photos(random, there)
    first = np.unique(before.person, return_index=True)[1]
    known = SampleFigures(
        people=there,
        scores=tuple(np.quantile(scores_of(before.first[first])[0], SAMPLE_SHARES).tolist()),
        sides_px=None,
        hints={},
    )
    now = draw_photos(random, here)
    rows = now.first
    if change:  # people are closer to their mean
        mean = rows.mean(axis=0)
        rows = mean + (1 - change) * (rows - mean)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    chosen = one_of_each(rows, truth().threshold(0, GROUPING_FMR))
    score, left, right = scores_of(rows[chosen])
    return change_of_scores(score, (left, right), known).chance


def table(draws: int) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| people there | here | no change: below .05 | below .01 | 10 % closer: below .01 |"
    yield "| --- | --- | --- | --- | --- |"
    for there, here in SIZES:
        found = []
        for change in (0.0, 0.1):
            seeds = ([seed, there, here] for seed in range(draws))
            found.append(
                [chance_of(np.random.default_rng(seed), there, here, change) for seed in seeds]
            )
        none, closer = map(np.array, found)
        yield (
            f"| {there:,} | {here:,} | {(none < 0.05).mean():.3f} | {(none < 0.01).mean():.3f} | "
            f"{(closer < 0.01).mean():.2f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--draws", type=int, default=400)
    for line in table(parser.parse_args().draws):
        print(line, flush=True)


if __name__ == "__main__":
    main()
