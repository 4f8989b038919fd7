"""A bundle calibrated on other people: a new calibration, the same weights."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from drawn.scenes import canvas
from golden import assert_golden
from hypothesis import given
from hypothesis import strategies as st
from tiny.bundles import cohort_of, error_table, tiny_bundle

from facepairs.bundles.bundle import MODEL, NETWORK
from facepairs.bundles.error_profile import operating_point
from facepairs.bundles.manifest import Identities, identity_hash
from facepairs.bundles.model import load_bundle
from facepairs.bundles.writer import rewrite_bundle
from facepairs.data.minimums import (
    MAX_PAIRS_PER_PERSON,
    MIN_PAIRS,
    MIN_PEOPLE,
    check_minimums,
    limit_pairs_per_person,
)
from facepairs.data.sampler import distinct_pairs
from facepairs.errors import BadBundle, BadConfig, BadData, BadImage, NotEnough
from facepairs.evaluation.calibrate import calibrate
from facepairs.evaluation.error_rates import halves
from facepairs.evaluation.fitting import calibrate as fit_calibration
from facepairs.evaluation.metrics.intervals import PeopleOfPairs
from facepairs.evaluation.protocols import choose_pairs
from facepairs.verification.verifier import Verifier


@pytest.fixture
def bundle(tmp_path):
    return tiny_bundle(tmp_path / "bundle")


def some_of(faces, folder, people, photos=4):
    folder.mkdir()
    for person in sorted(faces.iterdir())[:people]:
        (folder / person.name).mkdir()
        for photo in sorted(person.iterdir())[:photos]:
            (folder / person.name / photo.name).symlink_to(photo)
    return folder


def test_weights_stay_and_calibration_is_new(bundle, faces, tmp_path):
    result = calibrate(bundle.folder, faces, tmp_path / "out")
    told = {name: value for name, value in result.to_json().items() if name != "out"}
    assert_golden(Path(__file__).parent / "golden" / "recalibration.json", told, rel=1e-3)
    new = result.model
    new.files.check_all()
    for name in (NETWORK, MODEL):
        assert new.files.read(name) == bundle.read(name)
    assert (new.files.raw["framing"], new.files.raw["network"]) == (
        bundle.raw["framing"],
        bundle.raw["network"],
    )
    assert new.files.raw["training"] == bundle.raw["training"]
    assert (new.profile.errors.genuine_pairs, new.profile.errors.impostor_pairs) == (24 * 6, 3000)
    assert new.profile.balanced_threshold == pytest.approx(new.profile.calibration.threshold)
    assert new.profile.balanced_threshold != bundle.profile.balanced_threshold
    assert new.profile.calibration.probability(new.profile.balanced_threshold) == pytest.approx(0.5)
    assert [entry.max_fmr for entry in new.profile.thresholds] == [0.1, 0.01, 0.001]
    assert new.files.raw["calibrated"]["people"] == 24
    with pytest.raises(NotEnough):
        choose_pairs([new], faces)
    assert result.former.threshold == bundle.profile.balanced_threshold
    assert not result.kept_former
    assert new.profile.errors.measured_on == f"24 people of {faces.name}/"
    assert new.profile.errors.people == 24
    assert json.loads(json.dumps(result.to_json()))["operating_point"]["errors"]["fmr"]
    photos = sorted(next(faces.iterdir()).iterdir())
    models = load_bundle(bundle), new
    before, after = (Verifier(model).verify(photos[0], photos[1]) for model in models)
    assert after.score == before.score
    card = (new.files.folder / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "Calibrated on 24 people" in card


def test_a_cohort_stays_and_grouping_is_measured_with_it(faces, tmp_path):
    plain = tiny_bundle(tmp_path / "plain", kind="embedding")
    cohort = np.random.default_rng(0).normal(size=(4, 24)).astype(np.float32)
    with_cohort = tiny_bundle(tmp_path / "cohort", "embedding", included=cohort_of(cohort))
    assert plain.profile.cohort is None
    few = some_of(faces, tmp_path / "few", people=8)
    grouping = []
    for bundle in (plain, with_cohort):
        new = calibrate(bundle.folder, few, tmp_path / f"new-{bundle.folder.name}").model
        assert new.profile.included == bundle.profile.included
        grouping.append(new.profile.errors.grouping.linked)
    assert grouping[0] != grouping[1]


def test_with_families_intervals_are_wider_and_rates_stay(bundle, faces, tmp_path):
    names = sorted(person.name for person in faces.iterdir())
    families = tmp_path / "families.csv"
    rows = [f"{name},{number % 4}" for number, name in enumerate(names)]
    families.write_text("\n".join(["person,family", *rows]) + "\n")
    alone = calibrate(bundle.folder, faces, tmp_path / "alone").model.profile
    related = calibrate(bundle.folder, faces, tmp_path / "r", families=families).model.profile
    assert related.calibration == alone.calibration
    rates = [profile.errors.at(alone.balanced_threshold).fnmr for profile in (alone, related)]
    assert rates[0].value == pytest.approx(rates[1].value, abs=0.01)
    assert rates[1].interval[0] < rates[0].interval[0] < rates[0].interval[1]
    assert rates[0].interval[1] < rates[1].interval[1]
    families.write_text("person,family\nNobody,a\n")
    with pytest.raises(BadData, match="Nobody"):
        calibrate(bundle.folder, faces, tmp_path / "new", families=families)


def test_people_known_to_the_old_bundle_stay_known(bundle, faces, tmp_path):
    new = calibrate(bundle.folder, faces, tmp_path / "out").model
    people = [p.name for p in faces.iterdir()]
    assert new.origin.identities.knows(["Ann", "Bé", "Cyd", *people]).all()
    assert new.origin.identities.trained_with(["Ann", "Bé", "Cyd", *people]).sum() == 2
    assert len(new.origin.identities.calibration) == 1 + len(people)
    again = calibrate(new.files.folder, faces, tmp_path / "again")
    assert again.kept_former  # nothing is gained by the people who chose the thresholds
    assert again.former.errors == again.operating_point.errors
    assert again.model.origin.identities == new.origin.identities
    assert again.model.profile == new.profile


def test_pairs_per_person_are_limited():
    pairs = distinct_pairs(np.array([0, 20, 25, 27, 28]), range(4), 400, 0)
    person_of = np.repeat(range(4), [20, 5, 2, 1])
    kept = limit_pairs_per_person(pairs, person_of)
    of = person_of[kept.left[kept.genuine]]
    assert np.bincount(of, minlength=4).tolist() == [MAX_PAIRS_PER_PERSON, 10, 1, 0]
    assert (~kept.genuine).sum() == (~pairs.genuine).sum()
    of_one = pairs.where(pairs.genuine & (person_of[pairs.left] == 0))
    first = kept.where(kept.genuine & (person_of[kept.left] == 0))
    assert np.array_equal(first.left, of_one.left[:MAX_PAIRS_PER_PERSON])
    assert len(limit_pairs_per_person(pairs.where(slice(0, 0)), person_of)) == 0


def test_people_trained_on_are_left_out_and_counted(faces, tmp_path):
    names = sorted(p.name for p in faces.iterdir())
    bundle = rewrite_bundle(
        tiny_bundle(tmp_path / "start"), tmp_path / "bundle", {}, Identities.of(names[:10], [])
    )
    result = calibrate(bundle.folder, faces, tmp_path / "out")
    assert (result.people, result.people_left_out) == (14, 10)
    assert result.model.origin.identities.training == {identity_hash(name) for name in names[:10]}
    everybody = rewrite_bundle(bundle, tmp_path / "all", {}, Identities.of(names, []))
    with pytest.raises(NotEnough):
        calibrate(everybody.folder, faces, tmp_path / "none")


def test_a_former_calibration_that_is_as_good_is_kept(bundle, faces, tmp_path):
    first = calibrate(bundle.folder, faces, tmp_path / "first").model
    result = calibrate(first.files.folder, faces, tmp_path / "second")
    assert result.kept_former
    assert result.model.profile.calibration == first.profile.calibration
    assert result.model.profile.errors == first.profile.errors
    assert 0 < result.ece < 0.5  # of the one that is kept


def test_a_bundle_that_never_grouped_gets_errors_of_groups_though_it_keeps_the_others(
    faces, tmp_path, monkeypatch
):
    trained = tiny_bundle(tmp_path / "trained", kind="embedding", errors=error_table())
    assert trained.profile.errors.grouping is None
    monkeypatch.setattr("facepairs.evaluation.calibrate.is_no_better", lambda *_: True)
    made = calibrate(trained.folder, faces, tmp_path / "mine")
    assert made.kept_former
    assert made.model.profile.errors == trained.profile.errors
    grouping = made.model.profile.own_errors.grouping
    assert 0 < grouping.people_pairs <= made.people * (made.people - 1) / 2
    assert len(grouping.cuts) == len(grouping.linked) > 1


def test_figures_that_are_kept_are_not_mixed_with_new_ones(faces, tmp_path, monkeypatch):
    plain = tiny_bundle(tmp_path / "plain", kind="embedding")
    first = calibrate(plain.folder, some_of(faces, tmp_path / "few", people=12), tmp_path / "first")
    assert not first.kept_former
    monkeypatch.setattr("facepairs.evaluation.calibrate.is_no_better", lambda *_: True)
    second = calibrate(first.model.files.folder, faces, tmp_path / "second")
    assert second.kept_former
    former = first.model.profile
    own = second.model.profile.own_errors
    assert second.model.profile == msgspec.structs.replace(former, own_errors=own)
    assert (own.people, own.measured_on) == (24, f"24 people of {faces.name}/")
    assert (own.genuine_pairs, own.impostor_pairs) == (24 * 6, 24 * 23 // 2 * 16)
    # every verdict tells both, whatever threshold decides
    photos = sorted(next(faces.iterdir()).iterdir())
    for chosen in ({}, {"threshold": 0.5}, {"max_fmr": 0.1}):
        point = Verifier(second.model).verify(*photos[:2], **chosen).point
        assert point.errors == first.model.profile.errors.at(point.threshold)
        assert point.own_errors == own.at(point.threshold)
        assert point.lines()[-2].startswith("on your 24 people: ")
        assert msgspec.to_builtins(point)["own_errors"]["people"] == 24


def test_own_errors_go_with_the_thresholds_of_a_new_calibration(faces, tmp_path, monkeypatch):
    plain = tiny_bundle(tmp_path / "plain", kind="embedding")
    few = some_of(faces, tmp_path / "few", people=8)
    judge = "facepairs.evaluation.calibrate.is_no_better"
    monkeypatch.setattr(judge, lambda *_: True)
    first = calibrate(
        calibrate(plain.folder, faces, tmp_path / "a").model.files.folder, few, tmp_path / "b"
    )
    assert first.model.profile.own_errors.people == 8
    monkeypatch.setattr(judge, lambda *_: False)
    second = calibrate(first.model.files.folder, faces, tmp_path / "c")
    assert (second.model.profile.own_errors, second.model.profile.errors.people) == (None, 24)


def test_the_included_model_s_name_is_no_folder_to_write(bundle, faces):
    with pytest.raises(BadConfig) as refused:
        calibrate(bundle.folder, faces, "default")
    assert refused.value.arguments == ("out",)


@pytest.mark.parametrize(
    ("people", "photos", "message"),
    [
        (5, 4, "20 .* 6 .* 30 of 5"),
        (7, 2, "7 of 7"),
        (9, 1, "none"),
        (1, 4, "none"),
    ],
)
def test_too_few_pairs_are_refused(bundle, faces, tmp_path, people, photos, message):
    data = some_of(faces, tmp_path / "few", people, photos)
    with pytest.raises(NotEnough, match=message):
        calibrate(bundle.folder, data, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_photos_that_cannot_be_used_are_refused_or_left_out(faces, tmp_path):
    bundle = tiny_bundle(tmp_path / "bundle", alignment="landmarks-5")
    data = some_of(faces, tmp_path / "few", 7, 3)
    blank = sorted(data.iterdir())[2] / "blank.png"
    canvas(300, 300).save(blank)
    with pytest.raises(BadImage, match=r"blank\.png: no face.*skip_bad"):
        calibrate(bundle.folder, data, tmp_path / "out")
    result = calibrate(bundle.folder, data, tmp_path / "out", skip_bad=True)
    assert result.photos_left_out == 1
    assert result.genuine_pairs == 21
    assert result.model.alignment == "landmarks-5"
    lost = max(path for path in data.glob("*/*") if path.parent != blank.parent)
    kept = lost.read_bytes()
    canvas(300, 300).save(lost)
    with pytest.raises(NotEnough, match="give 19 of 7 people"):  # of 20
        calibrate(bundle.folder, data, tmp_path / "none", skip_bad=True)
    assert not (tmp_path / "none").exists()
    lost.write_bytes(kept)
    (blank.parent / blank.with_name("second.jpg").name).write_bytes(b"")
    with pytest.raises(BadImage, match=r"second\.jpg"):
        calibrate(tiny_bundle(tmp_path / "whole").folder, data, tmp_path / "out")
    with pytest.raises(BadImage):
        calibrate(bundle.folder, data, tmp_path / "out")


def test_photos_and_the_bundle_itself_are_not_replaced(bundle, faces, tmp_path):
    with pytest.raises(BadConfig):
        calibrate(bundle.folder, faces, bundle.folder)
    with pytest.raises(BadConfig):
        calibrate(bundle.folder, faces, faces / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "photo.jpg").touch()
    with pytest.raises(BadBundle):
        calibrate(bundle.folder, faces, tmp_path / "mine")


@given(st.integers(0, 30), st.integers(0, 60), st.integers(0, 60))
def test_minimums_are_checked_for_people_and_both_classes(people, genuine, impostor):
    if people >= MIN_PEOPLE and min(genuine, impostor) >= MIN_PAIRS:
        check_minimums("here", people, genuine, impostor)
    else:
        with pytest.raises(NotEnough, match=f"here: needs at least {MIN_PAIRS} "):
            check_minimums("here", people, genuine, impostor)


def test_ece_is_none_when_a_half_cannot_be_fitted():
    genuine = np.repeat([True, False], 20)
    # one half of the genuine pairs scores below the impostor pairs
    score = np.where(genuine, 2.0 * (halves(genuine) == 1), 0.9)
    fitted = fit_calibration(genuine, score, PeopleOfPairs(None, len(genuine)))
    assert fitted.calibration.ece is None
    assert fitted.balanced_threshold == pytest.approx(0.95, abs=0.5)


def test_the_former_point_is_the_one_of_the_same_name(bundle, faces, tmp_path):
    few = some_of(faces, tmp_path / "few", people=8)
    name = calibrate(bundle.folder, few, tmp_path / "few-people").operating_point.name
    other = 0.1 if name == "balanced" else None
    profile = msgspec.structs.replace(bundle.profile, default_fmr=other)
    former = rewrite_bundle(bundle, tmp_path / "former", {}, profile=profile)
    assert operating_point(former.profile).name != name
    result = calibrate(former.folder, few, tmp_path / "again")
    assert not result.kept_former
    assert (result.former.name, result.operating_point.name) == (name, name)
