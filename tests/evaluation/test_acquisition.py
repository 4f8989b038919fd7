"""Failures to acquire and generalised rates, against loops over photos and pairs."""

from dataclasses import replace

import numpy as np
import pytest
from by_hand import slow_interval
from tiny.scores import invented

from facepairs.bundles.rates import OperatingPoint
from facepairs.evaluation.evaluate import evaluate
from facepairs.evaluation.scores import ScoredPairs, failed_pairs, read_scores, write_scores
from facepairs.verification.provenance import Provenance

CUT = 1.0


def with_failures() -> ScoredPairs:
    """Return pairs of 20 people of which those with some photos could not be scored."""
    whole = invented(2000, folds=0)
    names = sorted({*whole.left, *whole.right})
    kinds = ("no_face", "no_face", "unreadable")
    failures = {name: kinds[place % 3] for place, name in enumerate(names[3::17])}
    bad = np.array([bool({*pair} & failures.keys()) for pair in zip(*whole.sides, strict=True)])
    rows = zip(*whole.sides, whole.genuine.tolist(), whole.fold.tolist(), strict=True)
    failed = failed_pairs([row for row, is_bad in zip(rows, bad, strict=True) if is_bad])
    origin = Provenance(
        model="mine", pairs="drawn", operating_point=OperatingPoint(CUT, "x"), failures=failures
    )
    scored = whole.without_photos(set(failures))
    return replace(scored, failed=failed, origin=origin)


@pytest.fixture(scope="module")
def pairs() -> ScoredPairs:
    return with_failures()


def test_a_scores_file_keeps_the_failures(pairs, tmp_path):
    write_scores(tmp_path / "s.csv", pairs)
    after = read_scores(tmp_path / "s.csv")
    assert after.failures == pairs.failures
    assert (len(after), len(after.failed), after.unscored) == (len(pairs), len(pairs.failed), 0)
    for name in ("left", "right"):
        assert list(getattr(after.attempted, name)) == list(getattr(pairs.attempted, name))
    for name in ("genuine", "fold", "score"):
        assert (getattr(after.attempted, name) == getattr(pairs.attempted, name)).all()
    assert after.attempted.score[len(pairs) :].max() == -np.inf


def test_failures_to_acquire_are_counted_by_photo(pairs, tmp_path):
    write_scores(tmp_path / "s.csv", pairs)
    groups = tmp_path / "groups.csv"
    rows = [f"Person_{number:02},{'ab'[number % 2]}\n" for number in range(20)]
    groups.write_text("person,group\n" + "".join(rows))
    measured = evaluate(tmp_path / "s.csv", groups=groups)
    summary = measured.summary
    found = summary.acquisition
    every = sorted({*pairs.attempted.left, *pairs.attempted.right})
    facts = {row[0].text: row[1].text for row in measured.tables()[0].rows}
    used = len({*pairs.left, *pairs.right})
    assert facts["On whom"] == f"20 people, {len(every)} photos, {used} used"
    assert found.fta.count == sum(name in pairs.failures for name in every) == len(pairs.failures)
    assert found.fta.of == len(every)
    kinds = list(pairs.failures.values())
    assert found.reasons == {kind: kinds.count(kind) for kind in ("no_face", "unreadable")}
    person = np.array([int(name[7:9]) for name in every])
    failed = np.array([name in pairs.failures for name in every])
    rate, interval = slow_interval((person, person), np.ones(len(every), bool), failed)
    assert found.fta.value == rate
    assert found.fta.interval == pytest.approx(interval, abs=1e-9)
    for name, parity in (("a", 0), ("b", 1)):
        rate, interval = slow_interval((person, person), person % 2 == parity, failed)
        assert summary.groups[name].fta.value == rate
        assert summary.groups[name].fta.interval == pytest.approx(interval, abs=1e-9)


def test_generalised_rates_count_failures_as_rejections(pairs, tmp_path):
    write_scores(tmp_path / "s.csv", pairs)
    errors = evaluate(tmp_path / "s.csv").summary.default_point.errors
    every = pairs.attempted
    sides = tuple(np.array([int(name[7:9]) for name in side]) for side in every.sides)
    accepted = []
    for left, right, score in zip(*every.sides, every.score.tolist(), strict=True):
        accepted.append(score >= CUT and not {left, right} & pairs.failures.keys())
    accepted = np.array(accepted)
    for rate, members, wrong in (
        (errors.gfmr, ~every.genuine, accepted),
        (errors.gfnmr, every.genuine, ~accepted),
    ):
        value, interval = slow_interval(sides, members, wrong)
        assert (rate.value, rate.of) == (value, int(members.sum()))
        assert rate.interval == pytest.approx(interval, abs=1e-9)
    assert errors.gfmr.value < errors.fmr.value
    assert errors.gfnmr.value > errors.fnmr.value


def test_without_failures_there_are_no_generalised_rates(tmp_path):
    scores = invented(400, folds=0)
    write_scores(tmp_path / "s.csv", scores)
    summary = evaluate(tmp_path / "s.csv").summary
    assert summary.acquisition is None
    assert summary.point.errors.gfmr is None
    known = replace(scores, origin=Provenance(model="m", pairs="drawn", failures={}))
    write_scores(tmp_path / "s.csv", known)
    summary = evaluate(tmp_path / "s.csv").summary
    assert (summary.acquisition.fta.count, summary.acquisition.reasons) == (0, {})
    assert summary.acquisition.fta.interval == (0, pytest.approx(1 - 0.025 ** (1 / 20)))
    assert summary.point.errors.gfnmr is None
