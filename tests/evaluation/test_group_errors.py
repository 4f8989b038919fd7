"""Errors of groups and their agreement with people: by definition, and against scikit-learn."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny.bundles import error_table

from facepairs.evaluation.grouping import (
    Cells,
    _figures,
    agreement,
    measure_grouping,
)
from facepairs.evaluation.pair_scores import FaceHeap
from facepairs.grouping.linkage import average_linkage

labels = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=40)


@given(labels)
def test_pairs_are_counted_by_person(rows):
    cells = Cells.of(*np.array(rows).T)
    faces = np.repeat(np.stack([cells.person, cells.group]), cells.count.astype(int), axis=1).T
    wanted = np.zeros((4, cells.people))
    for (a, at), (b, other) in combinations(faces.tolist(), 2):
        kinds = [a == b, a == b and at == other, a != b, a != b and at == other]
        for person in {a, b}:
            wanted[:, person] += kinds
    np.testing.assert_allclose(cells.pairs, wanted)


@given(labels)
def test_figures_without_a_person_are_those_of_the_others(rows):
    person, group = np.array(rows).T
    for name, (_, without) in _figures(Cells.of(person, group)).items():
        for number, one in enumerate(np.unique(person)):
            others = person != one
            if others.any():
                wanted = _figures(Cells.of(person[others], group[others]))[name][0]
                assert without[number] == pytest.approx(float(wanted), abs=1e-9, nan_ok=True)


def test_strangers_who_are_joined_are_counted_at_every_cut():
    random = np.random.default_rng(0)
    centres = random.normal(size=(30, 16))
    person = np.repeat(np.arange(30), 4)
    rows = (centres[person] + random.normal(0, 0.2, (120, 16))).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    found = measure_grouping([FaceHeap(rows, person)], error_table())
    shares = list(found.linked)
    assert found.people_pairs == 30 * 29 // 2
    assert found.cuts[-1] == pytest.approx(0.5)
    assert shares == sorted(shares)
    groups = [
        average_linkage(rows, found.cuts[-1]).labels(cut) for cut in (found.cuts[0], found.cuts[-1])
    ]
    for at, label in zip((0, -1), groups, strict=True):
        mixed = sum(len(set(person[label == group])) > 1 for group in range(label.max() + 1))
        pairs = label.max() * (label.max() + 1) / 2
        assert found.mixed[at] == pytest.approx(min(1, mixed / max(1, pairs)), abs=1e-9)
        strangers = person[:, None] != person
        together = (label[:, None] == label)[strangers].mean()
        assert shares[at] == pytest.approx(together, rel=1e-3)
    assert found.mixed[-1] > 0
    assert shares[0] == 0 < shares[-1]


def test_nothing_wrong_in_groups_has_the_exact_bound_of_unequal_people():
    photos = np.array([40, 2, 2, 3])
    person = np.repeat(np.arange(4), photos)
    found = agreement(person, person).figures
    pairs = photos * (photos - 1) / 2
    for name, sizes in (("pair_recall", pairs), ("b3_precision", photos)):
        worth = sizes.sum() ** 2 / (sizes**2).sum()
        assert found[name].interval == (pytest.approx(0.025 ** (1 / worth)), 1)


def test_one_person_of_hundreds_does_not_make_every_interval_useless():
    photos = np.append(530, np.tile([1, 2, 3, 4, 5], 200))
    person = np.repeat(np.arange(len(photos)), photos)
    group = person.copy()
    ends = np.cumsum(photos)
    group[ends[5:400:5] - 1] = group[ends[6:401:5] - 1]  # one of five faces, to a person of one
    found = agreement(person, group).figures
    assert found["pair_f1"].value < found["pair_f1"].interval[1] == 1  # it has no upper end
    ends = {
        "pair_precision": (0.90178, 1),
        "pair_recall": (0.89922, 1),
        "b3_precision": (0.96087, 0.98854),
    }
    for name, wanted in ends.items():
        assert found[name].interval == pytest.approx(wanted, abs=1e-4)
    # Hardly a pair is wrong, so the lower end is nearly that of no error among as many people.
    pairs = np.minimum(photos, 40) * (np.minimum(photos, 40) - 1)
    bound = 0.025 ** ((pairs**2).sum() / pairs.sum() ** 2)
    assert bound - 1e-3 < found["pair_precision"].interval[0] < bound
    alone = agreement(person[:530], group[:530] + np.arange(530) // 529).figures["pair_recall"]
    assert alone.interval == (pytest.approx(0.025, abs=1e-3), 1)  # nothing is known of others


@given(labels)
def test_agrees_with_scikit_learn_and_the_definitions(rows):
    from sklearn.metrics import v_measure_score
    from sklearn.metrics.cluster import pair_confusion_matrix

    person, group = np.array(rows).T
    found = agreement(person, group).figures
    (_, mixed), (missed, joined) = pair_confusion_matrix(person, group) / 2
    for name, part, whole in (
        ("pair_precision", joined, joined + mixed),
        ("pair_recall", joined, joined + missed),
    ):
        rate = found[name]
        assert (rate is None) == (whole == 0)
        assert rate is None or rate.value == pytest.approx(part / whole)
    assert found["v_measure"].value == pytest.approx(v_measure_score(person, group))
    precision = [np.mean(person[group == group[i]] == person[i]) for i in range(len(rows))]
    assert found["b3_precision"].value == pytest.approx(np.mean(precision))
    assert all(
        rate.interval[0] <= rate.value <= rate.interval[1] for rate in found.values() if rate
    )
