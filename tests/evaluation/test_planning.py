"""Plans of studies: against the exact bounds, and against the intervals that a study prints."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facepairs.errors import BadConfig, NotEnough
from facepairs.evaluation.metrics.intervals import PeopleOfPairs, clopper_pearson
from facepairs.evaluation.planning import Study, plan, shown_rates


def test_without_errors_the_exact_bound_of_independent_trials_counts():
    fmr, fnmr = plan(fmr=0.001, fnmr=0.05).rates
    people = fmr.without_errors.people
    assert clopper_pearson(0, math.comb(people, 2))[1] <= 0.001
    assert clopper_pearson(0, math.comb(people - 1, 2))[1] > 0.001
    assert (people, fmr.without_errors.photos) == (87, 348)
    assert fnmr.without_errors.people == math.ceil(math.log(0.025) / math.log(0.95)) == 72
    assert fnmr.without_errors.pairs == 72 * 6


@pytest.mark.parametrize(("rate", "people"), [("fmr", 87), ("fnmr", 72)])
def test_a_study_of_that_size_prints_such_an_interval(rate, people):
    """Of drawn pairs without an error, the interval ends where the plan says."""
    person = np.repeat(np.arange(people), 4)
    left, right = np.triu_indices(len(person), 1)
    sides = person[left], person[right]
    members = (sides[0] == sides[1]) == (rate == "fnmr")
    high = PeopleOfPairs(sides, len(left)).interval(members, np.zeros(len(left), bool))[1]
    claimed = {"fmr": 0.001, "fnmr": 0.05}[rate]
    assert 0.97 * claimed < high <= claimed


def test_with_errors_four_of_five_studies_show_it():
    for need in plan(fmr=0.01, fnmr=0.1, photos=3).rates:
        size = need.with_errors
        assert need.true_rate == need.claimed / 2
        powers = [
            Study(need.rate, people, 3).power(need.claimed, need.true_rate)
            for people in (size.people - 1, size.people)
        ]
        assert powers[0] < 0.8 <= powers[1]
        assert size.people > need.without_errors.people


@settings(max_examples=12, deadline=None)
@given(st.floats(0.002, 0.2), st.integers(2, 12))
def test_stricter_claims_need_more_people_and_more_photos_never_do(claimed, photos):
    def people(claim, each, **others):
        return [
            size.people
            for need in plan(claim, claim, each, **others).rates
            for size in (need.without_errors, need.with_errors)
        ]

    here = people(claimed, photos)
    assert all(a >= b for a, b in zip(people(claimed / 2, photos), here, strict=True))
    assert all(a <= b for a, b in zip(people(claimed, photos + 1), here, strict=True))
    assert all(a >= b for a, b in zip(people(claimed, photos, power=0.9), here, strict=True))
    assert all(a >= b for a, b in zip(people(claimed, photos, share=0.7), here, strict=True))


def test_a_study_is_as_large_as_it_was():
    fmrs = {0.0002: 1049, 0.002: 300, 0.02: 81, 0.15: 33, 0.3: 23}
    assert {fmr: plan(fmr=fmr).rates[0].with_errors.people for fmr in fmrs} == fmrs
    many_photos = {0.0002: 1019, 0.002: 300, 0.02: 76, 0.15: 31, 0.3: 21}
    found = {fmr: plan(fmr=fmr, photos=12).rates[0].with_errors.people for fmr in many_photos}
    assert found == many_photos
    assert [plan(fnmr=fnmr).rates[0].with_errors.people for fnmr in (0.01, 0.1)] == [1356, 127]


def test_the_rates_of_a_folder_are_those_that_its_size_was_planned_for():
    need = plan(fmr=0.01).rates[0]
    found = shown_rates(np.full(need.with_errors.people, 4))
    assert found.fmr == pytest.approx(0.01, rel=0.02)
    assert found.fmr_without_errors < found.fmr
    assert shown_rates(np.full(72, 4)).fnmr_without_errors == pytest.approx(0.05, rel=0.01)
    assert shown_rates(np.array([1, 1, 1])).fnmr is None
    assert shown_rates(np.array([0, 5])).fmr_without_errors is None
    one_has_most = shown_rates(np.array([500, *[2] * 71]))
    assert one_has_most.fnmr_without_errors > 0.05


@pytest.mark.parametrize(
    "given",
    [{}, {"fmr": 0.0}, {"fnmr": 1.0}, {"fmr": 0.1, "photos": 1}, {"fmr": 0.1, "power": 1.0}],
)
def test_impossible_plans_are_refused(given):
    with pytest.raises(BadConfig):
        plan(**given)


def test_a_rate_that_no_study_shows_is_refused():
    with pytest.raises(NotEnough, match="people"):
        plan(fnmr=1e-9)
