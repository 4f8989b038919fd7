"""Do studies of the size that `facepairs plan` says show the rate as often as it promises?

    nice -n 10 python scripts/studies/planned.py --draws 400

People are drawn from the population of `drawn_population.py`, each with the same number of photos.
A study shows a rate where the upper end of its interval is not above it. Of studies with errors,
the true rate is half of the claimed one, and four of five should show it. Of studies that are large
enough without an error, the true rate is the claimed one: at most one in 40 may show it.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from drawn_population import draw_pairs, draw_photos, score_pairs, truth

from facepairs.evaluation.metrics.intervals import PeopleOfPairs
from facepairs.evaluation.planning import ShownRate, StudySize, plan

FIRST = 0  # the verifier that errs as often as the included model
CLAIMS = (
    ("fmr", 0.01, 4), ("fmr", 0.001, 2), ("fmr", 0.001, 4), ("fmr", 0.001, 8),
    ("fnmr", 0.2, 4), ("fnmr", 0.05, 2), ("fnmr", 0.05, 4), ("fnmr", 0.05, 8),
)  # fmt: skip


def threshold_at(rate: str, value: float) -> float:
    """Return the threshold at which the population has a rate."""
    if rate == "fmr":
        return truth().threshold(FIRST, value)
    genuine = truth().genuine[FIRST]
    return float(genuine[round(value * len(genuine))])


def shown(need: ShownRate, size: StudySize, photos: int, true: float, draws: int) -> float:
    """Return the share of studies of a size that show the rate."""
    cut, count = threshold_at(need.rate, true), 0
    for seed in range(draws):
        random = np.random.default_rng([seed, size.people, photos])
        people = draw_photos(random, size.people, photos)
        impostors = size.pairs if need.rate == "fmr" else 1
        pairs = draw_pairs(random, people.person, impostors)
        score = score_pairs(people.first, pairs.left, pairs.right)
        sides = people.person[pairs.left], people.person[pairs.right]
        members = pairs.genuine == (need.rate == "fnmr")
        errors = score < cut if need.rate == "fnmr" else score >= cut
        interval = PeopleOfPairs(sides, len(score)).interval(members, errors)
        count += interval[1] <= need.claimed
    return count / draws


def rows(draws: int) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| to be shown | photos | people | show it | people without errors | show it wrongly |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for rate, claimed, photos in CLAIMS:
        (need,) = plan(**{rate: claimed}, photos=photos).rates
        half = shown(need, need.with_errors, photos, need.true_rate, draws)
        wrong = shown(need, need.without_errors, photos, claimed, draws)
        yield (
            f"| {rate.upper()} {100 * claimed:g} % | {photos} | {need.with_errors.people:,} | "
            f"{half:.2f} | {need.without_errors.people:,} | {wrong:.3f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--draws", type=int, default=400)
    for line in rows(parser.parse_args().draws):
        print(line, flush=True)


if __name__ == "__main__":
    main()
