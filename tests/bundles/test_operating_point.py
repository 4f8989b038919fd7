import itertools
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny.bundles import measured_of

from facepairs.bundles.bundle import Bundle
from facepairs.bundles.error_profile import (
    Calibration,
    ErrorProfile,
    IncludedModelFigures,
    SmallFaces,
    TurnedFaces,
    gallery_point,
    operating_point,
    point_for_faces,
)
from facepairs.bundles.rates import ErrorTable, OperatingPoint, Rate
from facepairs.errors import BadBundle, BadConfig

FULL = {
    "threshold": 0.25,
    "name": "fmr-0.01",
    "max_fmr": 0.01,
}
REFUSED = {
    "threshold": None,
    "name": "fmr-0.001",
    "max_fmr": 0.001,
    "reason": "3,000 impostor pairs are too few",
}


RATES = [(rate, rate / 2, min(1.0, 2 * rate)) for rate in (1.0, 0.1, 0.01, 0.0)]
TABLE = ErrorTable(
    measured_on="forty people",
    people=40,
    genuine_pairs=300,
    impostor_pairs=3000,
    lookalike_pairs=400,
    thresholds=(-1.0, 0.1, 0.25, 0.9),
    fmr=tuple(RATES),
    lookalike_fmr=tuple((3 * rate / 4, low, high) for rate, low, high in RATES),
    fnmr=tuple(reversed(RATES)),
)


def profile_of(*rows, errors=None, default_fmr=None):
    """A profile whose balanced threshold is .5."""
    thresholds = tuple(msgspec.convert(row, OperatingPoint) for row in rows)
    return ErrorProfile(
        calibration=Calibration(1.0, -0.5),
        thresholds=thresholds,
        errors=errors,
        default_fmr=default_fmr,
    )


def test_hard_faces_are_smaller_than_a_size_or_turned_at_least_so_far():
    missed = tuple(zip(*3 * [(0.2, 0.3, 0.9, 1.0)], strict=True))  # more than of smaller faces
    small = [
        msgspec.structs.replace(TABLE, people=1),
        msgspec.structs.replace(TABLE, people=2, fnmr=missed),
    ]
    turned = [
        msgspec.structs.replace(TABLE, people=3),
        msgspec.structs.replace(TABLE, people=4, fnmr=missed),
    ]
    figures = IncludedModelFigures(
        small_faces=tuple(
            SmallFaces(below_px=px, errors=errors)
            for px, errors in zip((30, 60), small, strict=True)
        ),
        turned_faces=tuple(
            TurnedFaces(above_yaw=yaw, errors=errors)
            for yaw, errors in zip((0.25, 0.125), turned, strict=True)
        ),
        cohort_width=1,
        cohort_content=bytes(4),
    )
    profile = msgspec.structs.replace(profile_of(FULL, errors=TABLE), included=figures)
    point = operating_point(profile, threshold=0.2)

    def people(side_px: float, yaw: float) -> int | None:
        return point_for_faces(profile, point, side_px, yaw).errors.people

    assert people(60, 0.1) == TABLE.people
    assert (people(59.9, -0.1), people(30, 0.1), people(29.9, 0.1)) == (2, 2, 1)
    assert (people(60, 0.25), people(60, -0.25), people(60, 0.2)) == (3, 3, 4)


def test_without_a_promise_the_balanced_threshold_decides():
    assert operating_point(profile_of()) == OperatingPoint(0.5, "balanced")
    assert operating_point(profile_of(), threshold=0.0) == OperatingPoint(0.0, "threshold")
    assert "no measured errors" in operating_point(profile_of()).describe()
    values = msgspec.to_builtins(operating_point(profile_of()))
    assert values == {"name": "balanced", "threshold": 0.5}


def test_a_promise_decides_unless_something_else_is_asked_for():
    profile = profile_of(FULL, errors=TABLE, default_fmr=0.01)
    assert (operating_point(profile).threshold, operating_point(profile).name) == (0.25, "fmr-0.01")
    assert operating_point(profile, balanced=True).threshold == 0.5
    assert operating_point(profile, threshold=0.7).name == "threshold"
    with pytest.raises(BadConfig):
        operating_point(profile, balanced=True, max_fmr=0.01)


def test_every_threshold_has_its_measured_errors():
    profile = profile_of(FULL, errors=TABLE)
    point = operating_point(profile, max_fmr=0.01)
    assert point.errors == TABLE.at(0.25)
    assert point.describe() == (
        "1 in 100 strangers would pass, 1 in 130 of those who look alike (at most 1 in 50); "
        "1 in 10 genuine pairs would be missed (forty people)"
    )
    errors = msgspec.json.decode(msgspec.json.encode(point))["errors"]
    assert errors["fmr"] == {"value": 0.01, "interval": [0.005, 0.02], "of": 3000}
    assert (errors["fnmr"]["value"], errors["measured_on"]) == (0.1, "forty people")
    assert operating_point(profile, threshold=-9.0).errors.fmr.value == 1
    assert operating_point(profile, threshold=9.0).errors.fnmr.value == 1


def test_between_two_thresholds_rates_and_their_intervals_are_interpolated():
    third = TABLE.at(0.15)  # a third of the way from 0.1 to 0.25
    assert (third.fmr.value, third.fmr.of) == (pytest.approx(0.07), 3000)
    assert third.fmr.interval == pytest.approx((0.035, 0.14))
    assert third.lookalike_fmr.value == pytest.approx(0.0525)
    assert third.fnmr.value == pytest.approx(0.04)
    assert third.fnmr.interval == pytest.approx((0.02, 0.08))
    last = TABLE.at(0.575)  # half of the way from 0.25 to 0.9
    assert (last.fmr.value, last.fnmr.value) == pytest.approx((0.005, 0.55))
    for number, threshold in enumerate(TABLE.thresholds):
        assert TABLE.at(threshold).fmr.value == RATES[number][0]
    assert (TABLE.at(-2).fmr.value, TABLE.at(2).fmr.value) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("people", "words"), [(37, "37 people"), (1, "1 person"), (None, "people")]
)
def test_errors_on_your_own_people_follow_those_of_the_model(people, words):
    own = msgspec.structs.replace(TABLE, people=people, measured_on="yours").at(0.1)
    point = OperatingPoint(0.1, errors=TABLE.at(0.1), own_errors=own)
    count = len(TABLE.at(0.1).lines())
    assert point.lines()[:count] == TABLE.at(0.1).lines()
    assert point.lines()[count].startswith(f"on your {words}: 1 in 10 strangers would pass")
    assert "yours" not in point.describe()


@given(st.floats(-2, 2))
def test_no_threshold_has_a_rate_beside_its_interval_or_its_neighbours(threshold):
    errors, later = TABLE.at(threshold), TABLE.at(threshold + 1e-4)
    for name in ("fmr", "lookalike_fmr", "fnmr"):
        rate, other = getattr(errors, name), getattr(later, name)
        assert rate.interval[0] <= rate.value <= rate.interval[1]
        assert (other.value - rate.value) * (1 if name == "fnmr" else -1) >= 0
        assert abs(other.value - rate.value) < 2e-3  # no jumps
        for row, after in itertools.pairwise(
            zip(TABLE.thresholds, getattr(TABLE, name), strict=True)
        ):
            if row[0] <= threshold <= after[0]:
                assert min(row[1][0], after[1][0]) <= rate.value <= max(row[1][0], after[1][0])


def test_a_gallery_allows_one_false_match_or_the_strictest_that_is_known():
    profile = profile_of(FULL, errors=TABLE)
    point = operating_point(profile, threshold=0.15)
    assert gallery_point(profile, point, 5) is point
    assert gallery_point(profile, point, 100).threshold == 0.25
    assert gallery_point(profile, point, 100).errors.fmr.value * 100 <= 1
    assert gallery_point(profile, point, 10**6).threshold == 0.9
    assert gallery_point(profile_of(FULL), point, 10**6) is point
    strict = operating_point(profile, max_fmr=0.01)
    assert gallery_point(profile, strict, 100) is strict  # it is the threshold for one of 100
    some_pass = msgspec.structs.replace(TABLE, fmr=(*RATES[:-1], (0.005, 0.0, 0.01)))
    assert some_pass.threshold_for(0.0) == 0.9
    assert TABLE.threshold_for(0.05) == 0.25  # at .1 it is .1, from .05 on


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        ((0.0622, 0.05, 0.07), "1 in 16"),
        ((0.364, 0.3, 0.4), "36 in 100"),
        ((0.00185, 0.001, 0.002), "1 in 540"),
        ((0.0, 0.0, 0.0012), "fewer than 1 in 830"),
        ((1.0, 0.9, 1.0), "100 in 100"),
        ((0.001, 0.0, 0.01), "1 in 1,000 (at most 1 in 100)"),
        ((0.1706, 0.15, 0.19), "1 in 6"),
        ((0.1834, 0.17, 0.2), "1 in 5"),  # 5.45: not 5.5, and then 6
        ((0.134, 0.12, 0.15), "1 in 7"),
        ((0.0995, 0.09, 0.11), "1 in 10"),
        ((0.105, 0.09, 0.12), "1 in 10"),
        ((0.19, 0.01, 0.9), "1 in 5 (at most 90 in 100)"),
        ((0.0, 0.0, 0.3), "fewer than 30 in 100"),
        ((0.0, 0.0, 0.0), "none"),
        ((0.2, 0.1, 0.5), "20 in 100"),
        ((0.01, 0.0, 0.025), "1 in 100 (at most 1 in 40)"),
    ],
)
def test_rates_are_said_in_words(rate, words):
    assert Rate(rate[0], rate[1:]).one_in() == words


@pytest.mark.parametrize(
    ("thresholds", "given"),
    [
        ([FULL], {"threshold": 0.1, "max_fmr": 0.01}),
        ([FULL], {"threshold": math.nan}),
        ([FULL], {"threshold": -math.inf}),
        ([FULL, REFUSED], {"max_fmr": 0.05}),
        ([FULL, REFUSED], {"max_fmr": 0.001}),
        ([FULL], {"max_fmr": math.nan}),
    ],
)
def test_thresholds_that_cannot_be_chosen_are_refused(thresholds, given):
    with pytest.raises(BadConfig) as caught:
        operating_point(profile_of(*thresholds), **given)
    assert set(given) <= set(caught.value.arguments)
    assert (REFUSED["reason"] in str(caught.value)) == (given == {"max_fmr": 0.001})


@pytest.mark.parametrize("thresholds", [[], [REFUSED]])
def test_a_model_without_thresholds_asks_for_one(thresholds):
    with pytest.raises(BadConfig) as caught:
        operating_point(profile_of(*thresholds), max_fmr=0.001)
    assert caught.value.arguments == ("threshold",)


@pytest.mark.parametrize(
    "change",
    [
        {"thresholds": (0.0, 0.5, 0.4, 1.0)},
        {"thresholds": (0.0, 0.5, 0.5, 1.0)},
        {"fmr": TABLE.fmr[:3]},
        {"lookalike_fmr": TABLE.fmr[:1]},
    ],
)
def test_errors_that_do_not_fit_together_are_refused(change):
    with pytest.raises(BadBundle):
        ErrorTable(**{**msgspec.structs.asdict(TABLE), **change})


def test_the_packaged_model_promises_one_in_a_hundred_look_alikes():
    point = operating_point(Bundle.open(None).profile)
    assert (point.max_fmr, point.among) == (0.01, "look-alikes")
    assert point.errors.lookalike_fmr.value == pytest.approx(0.01, abs=0.0005)
    assert point.errors.fmr.value < 0.003
    assert point.errors.fnmr.value < 0.5
    assert point.errors.measured_on == "press photos of LFW, people unseen in training"


def test_errors_are_those_of_faces_as_small_as_the_smaller_one():
    profile = Bundle.open(None).profile
    point = operating_point(profile)
    below = [row.below_px for row in profile.included.small_faces]
    assert below == [36, 60]
    sides = (120.0, 60.0, 59.9, 36.0, 35.9)
    large, same, small, still, smallest = (point_for_faces(profile, point, px, 0) for px in sides)
    assert large == same == point
    assert small == still
    missed = [one.errors.fnmr.value for one in (large, small, smallest)]
    assert missed == sorted(set(missed))
    assert {one.threshold for one in (large, small, smallest)} == {point.threshold}
    assert point_for_faces(measured_of(), point, 20.0, 0) == point


def test_errors_are_those_of_faces_turned_as_far_as_the_more_turned_one():
    profile = Bundle.open(None).profile
    point = operating_point(profile)
    assert [row.above_yaw for row in profile.included.turned_faces] == [0.36, 0.24]
    yaws = (0.0, -0.239, 0.24, -0.359, 0.36, -0.9)
    front, nearly, turned, same, most, still = (
        point_for_faces(profile, point, 120.0, yaw) for yaw in yaws
    )
    assert front == nearly == point
    assert turned == same
    assert most == still
    missed = [one.errors.fnmr.value for one in (front, turned, most)]
    assert missed == sorted(set(missed))
    assert "nose" in most.errors.measured_on
    # of a face that is small and turned, what misses more
    both = point_for_faces(profile, point, 59.9, 0.3).errors
    tables = (profile.included.small_faces[1], profile.included.turned_faces[1])
    small, turned = (row.errors.at(point.threshold) for row in tables)
    assert both == max(small, turned, key=lambda one: one.fnmr.value)
