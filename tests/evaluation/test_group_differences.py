"""Errors between groups and their differences, against loops over pairs."""

import math
import re
from itertools import combinations

import numpy as np
import pytest
from by_hand import slow_interval

from facepairs.bundles.rates import Errors, Rate
from facepairs.data.groups import read_groups
from facepairs.errors import BadData
from facepairs.evaluation.error_rates import is_small
from facepairs.evaluation.evaluate import evaluate
from facepairs.evaluation.group_errors import BetweenGroups, measure_groups
from facepairs.evaluation.page.page import render_page
from facepairs.evaluation.scores import ScoredPairs, write_scores

GROUPS = {"a": range(12), "b": range(12, 24), "c": range(24, 36), "d": range(34, 38)}
SHARES = {"a": 0.02, "b": 0.3, "c": 0.05, "d": 0.5}


def drawn_pairs(people: int = 38, of_each: int = 6, strangers: int = 12_000) -> ScoredPairs:
    """Return pairs of people in groups; strangers within group b are accepted most often."""
    random = np.random.Generator(np.random.Philox(5))
    rows = [(who, who, True) for who in range(people) for _ in range(of_each)]
    while len(rows) < strangers:
        one, other = random.integers(0, people, 2).tolist()
        if one != other:
            rows.append((one, other, False))
    left, right, genuine = map(np.array, zip(*rows, strict=True))
    group = np.array(["abccccc"[min(who // 12, 3)] for who in range(people)])
    chance = np.where(group[left] == group[right], [SHARES[name] for name in group[left]], 0.01)
    accepted = random.random(len(rows)) < np.where(genuine, 0.8, chance)
    names = [[f"P{who}/{number}.jpg" for number, who in enumerate(side)] for side in (left, right)]
    fold = np.zeros(len(rows), np.int16)
    return ScoredPairs(*names, genuine, fold, accepted.astype(float))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    root = tmp_path_factory.mktemp("groups")
    rows = [f"P{who},{name}\n" for name, people in GROUPS.items() for who in people]
    (root / "groups.csv").write_text("person,group\n" + "".join(rows))
    return root, drawn_pairs()


def numbers(side):
    return np.array([int(name[1:].partition("/")[0]) for name in side])


def test_the_errors_between_groups_are_those_of_strangers_one_of_either(world):
    root, pairs = world
    accepted = pairs.score >= 0.5
    within, found = measure_groups(read_groups(root / "groups.csv"), pairs, accepted)
    sides = tuple(map(numbers, pairs.sides))
    assert [set(pair.groups) for pair in found.between] == list(map(set, combinations("abcd", 2)))
    for pair in found.between:
        one, other = (GROUPS[name] for name in pair.groups)
        members = np.array(
            [
                not same and ((a in one and b in other) or (a in other and b in one))
                for a, b, same in zip(*sides, pairs.genuine, strict=True)
            ]
        )
        rate, interval = slow_interval(sides, members, accepted)
        assert (pair.fmr.value, pair.fmr.of) == (rate, int(members.sum()))
        assert pair.fmr.interval == pytest.approx(interval, abs=1e-8)
        assert pair.people == len({*sides[0][members], *sides[1][members]})
        assert not pair.is_small
    assert next(iter(within)) == "b"


def slow_log_ratio(rates, weights):
    """Return a weighted sum of logarithms of rates and its ends, one rate after the other."""
    value = below = above = 0.0
    for (rate, (low, high)), weight in zip(rates, weights, strict=True):
        value += weight * math.log(rate)
        ends = [(weight * math.log(end / rate)) ** 2 for end in (low, high)]
        below, above = below + ends[weight < 0], above + ends[weight > 0]
    return value, value - math.sqrt(below), value + math.sqrt(above)


def test_differentials_are_ratios_of_rates_with_intervals_that_hold_together(world):
    root, pairs = world
    accepted = pairs.score >= 0.5
    _, found = measure_groups(read_groups(root / "groups.csv"), pairs, accepted)
    sides = tuple(map(numbers, pairs.sides))
    for kind, differential in (("fmr", found.fmr), ("fnmr", found.fnmr)):
        rates = {}
        for name in "abc":  # d has four people
            both = zip(*sides, strict=True)
            inside = np.array([a in GROUPS[name] and b in GROUPS[name] for a, b in both])
            members = inside & (pairs.genuine == (kind == "fnmr"))
            wrong = accepted if kind == "fmr" else ~accepted
            rates[name] = slow_interval(sides, members, wrong, 1 - 0.025 / 3)
        order = sorted(rates, key=lambda name: -rates[name][0])
        assert differential.comparisons == 3
        worst = differential.worst_to_best
        assert (worst.larger, worst.smaller) == (order[0], order[-1])
        ordered = [rates[name] for name in order]
        two = {}
        for i, j in combinations(range(3), 2):
            weights = [(k == i) - (k == j) for k in range(3)]
            two[order[i], order[j]] = slow_log_ratio(ordered, weights)
        assert worst.value == pytest.approx(ordered[0][0] / ordered[-1][0])
        low = max(1, math.exp(max(low for _, low, _ in two.values())))
        high = math.exp(max(max(high, -low) for _, low, high in two.values()))
        assert worst.interval == pytest.approx((low, high), rel=1e-6)
        means = [slow_log_ratio(ordered, [(k == i) - 1 / 3 for k in range(3)]) for i in range(3)]
        mean = differential.worst_to_geometric_mean
        geometric = math.prod(rate for rate, _ in ordered) ** (1 / 3)
        assert mean.value == pytest.approx(ordered[0][0] / geometric)
        low, high = (max(row[end] for row in means) for end in (1, 2))
        assert mean.interval == pytest.approx((max(1, math.exp(low)), math.exp(high)), rel=1e-6)
        beyond = {(it.larger, it.smaller): it for it in differential.larger_than_chance}
        assert set(beyond) == {names for names, (_, low, _) in two.items() if low > 0}
        for names, ratio in beyond.items():
            wanted = [math.exp(value) for value in two[names]]
            assert [ratio.value, *ratio.interval] == pytest.approx(wanted, rel=1e-6)
    assert {it.larger for it in found.fmr.larger_than_chance} == {"b"}
    assert found.fnmr.larger_than_chance == []  # genuine pairs are drawn alike


def test_a_group_without_errors_bounds_the_ratio_from_below_only(world):
    root, pairs = world
    sides = tuple(map(numbers, pairs.sides))
    inside = np.isin(sides[0], GROUPS["a"]) & np.isin(sides[1], GROUPS["a"])
    accepted = (pairs.score >= 0.5) & (~inside | pairs.genuine)
    within, found = measure_groups(read_groups(root / "groups.csv"), pairs, accepted)
    ratio = found.fmr.worst_to_best
    assert (ratio.smaller, ratio.value, ratio.interval[1]) == ("a", None, None)
    assert 1 < ratio.interval[0] < within["b"].fmr.value / within["a"].fmr.interval[1]
    nobody = measure_groups(read_groups(root / "groups.csv"), pairs, np.zeros(len(pairs), bool))[1]
    assert nobody.fmr is None
    assert nobody.fnmr.worst_to_best.value == 1
    assert nobody.fnmr.larger_than_chance == []


def test_the_report_has_the_matrix_and_says_where_pairs_are_too_few(world, tmp_path):
    root, pairs = world
    write_scores(tmp_path / "s.csv", pairs)
    found = evaluate(tmp_path / "s.csv", groups=root / "groups.csv")
    tables = {table.key: table for table in found.tables()}
    matrix = {row[0].text: [cell.text for cell in row[1:]] for row in tables["between-1"].rows}
    order = list(matrix)
    assert order == list(found.summary.groups)
    assert matrix["d"][order.index("d")] == "too few"
    assert matrix["a"][order.index("b")] == matrix["b"][order.index("a")] != "too few"
    assert [row[0].text for row in tables["ratios-1"].rows] == ["FMR", "FNMR"]
    assert "groups-1" in found.figures()
    html = render_page(found, "")
    assert all(f'id="table-{key}-1"' in html for key in ("groups", "between", "ratios"))
    json = found.result.to_json()["models"][0]["group_differences"]
    assert json["fmr"]["worst_to_best"]["larger"] == "b"


def test_a_group_is_large_from_ten_people_20_genuine_and_100_impostor_pairs_on():
    def rate(of):
        return Rate(0.5, (0, 1), of=of)

    def errors(people, genuine, impostor):
        return Errors(fmr=rate(impostor), fnmr=rate(genuine), people=people)

    assert not is_small(errors(10, 20, 100))
    for few in ((9, 20, 100), (10, 19, 100), (10, 20, 99)):
        assert is_small(errors(*few))
    assert is_small(Errors(fmr=rate(100), fnmr=rate(20)))
    between = [
        BetweenGroups(groups=("a", "b"), fmr=rate(of), people=n)
        for n, of in ((10, 100), (9, 100), (10, 99))
    ]
    assert [one.is_small for one in between] == [False, True, True]
    assert BetweenGroups(groups=("a", "b"), fmr=None, people=10).is_small


def test_groups_need_names_of_people(world, tmp_path):
    root, pairs = world
    rows = zip(pairs.genuine, pairs.score, strict=True)
    text = "".join(f"{int(same)},{score}\n" for same, score in rows)
    (tmp_path / "s.csv").write_text("genuine,score\n" + text)
    with pytest.raises(BadData, match=re.escape(str(root / "groups.csv"))):
        evaluate(tmp_path / "s.csv", groups=root / "groups.csv")
