"""Drift: the test against a slow version of itself, its level, and photos that change."""

import csv
import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from golden import assert_golden
from PIL import Image
from processes.command_line import in_process
from scipy.stats import f as fisher_f
from tiny.bundles import tiny_bundle

from facepairs.bundles.error_profile import operating_point
from facepairs.bundles.rates import SampleFigures
from facepairs.cli.shared.output import percent
from facepairs.errors import BadBundle, BadData, BadImage, NotEnough
from facepairs.evaluation.calibrate import calibrate
from facepairs.evaluation.drift import change_of_scores, drift, one_of_each, sample_figures
from facepairs.photos.face_sample import FaceSample
from facepairs.photos.frame import TEMPLATE, Face
from facepairs.photos.hints import Hint
from facepairs.verification.verifier import Verifier


def draw_scores(random, people, shift=0.0):
    """Return scores of all pairs of people, some of whom are more like others than some."""
    left, right = np.triu_indices(people, 1)
    own = random.normal(size=people)
    return own[left] + own[right] + random.normal(size=len(left)) + shift, left, right


def known_of(score, people):
    quantiles = tuple(np.quantile(score, (0.1, 0.5, 0.9)).tolist())
    return SampleFigures(people=people, scores=quantiles, sides_px=None, hints={})


def test_the_chance_is_that_of_hotellings_test_over_people():
    random = np.random.default_rng(0)
    known = known_of(draw_scores(random, 40)[0], 40)
    people = 15
    score, left, right = draw_scores(random, people)
    rows = []  # by hand, one person and one pair at a time
    gaps = []
    for share, limit in zip((0.1, 0.5, 0.9), known.scores, strict=True):
        rate = np.mean([one < limit for one in score])
        gaps.append(rate - share)
        rows.append(
            [
                sum(
                    ((one < limit) - rate) / len(score)
                    for one, a, b in zip(score, left, right, strict=True)
                    if person in (a, b)
                )
                for person in range(people)
            ]
        )
    covariance = np.array(
        [[people / (people - 1) * np.dot(one, other) for other in rows] for one in rows]
    )
    for (i, p), (j, q) in itertools.product(enumerate((0.1, 0.5, 0.9)), repeat=2):
        covariance[i, j] += (min(p, q) - p * q) / len(score)
    squared = np.array(gaps) @ np.linalg.inv(covariance * (1 + people / 40)) @ np.array(gaps)
    chance = fisher_f.sf(squared * (people - 3) / (3 * (people - 1)), 3, people - 3)
    found = change_of_scores(score, (left, right), known)
    assert found.chance == pytest.approx(chance)
    assert found.calibration == list(known.scores)
    np.testing.assert_allclose(found.here, np.quantile(score, (0.1, 0.5, 0.9)))


def test_chance_keeps_its_level_and_a_shift_is_seen():
    random = np.random.default_rng(1)

    def chances(shift):
        found = []
        for _ in range(300):
            known = known_of(draw_scores(random, 60)[0], 60)
            score, left, right = draw_scores(random, 80, shift)
            found.append(change_of_scores(score, (left, right), known).chance)
        return np.array(found)

    assert 0.01 < (chances(0.0) < 0.05).mean() < 0.09
    assert (chances(2.0) < 0.05).mean() > 0.9


def test_scores_below_a_threshold_are_compared_with_such_scores():
    random = np.random.default_rng(2)
    score, left, right = draw_scores(random, 200)
    known = known_of(score, 200)
    kept = score < np.quantile(score, 0.95)
    found = change_of_scores(score[kept], (left[kept], right[kept]), known, 0.95)
    np.testing.assert_allclose(found.here, found.calibration, rtol=0.02, atol=0.02)
    assert found.chance > 0.99
    low = score < np.quantile(score, 0.6)  # 90 % lies above the threshold
    found = change_of_scores(score[low], (left[low], right[low]), known, 0.6)
    assert len(found.here) == len(found.calibration) == 2
    assert found.chance > 0.9


def test_one_photo_of_each_of_half_of_the_people_is_drawn():
    random = np.random.default_rng(3)
    centre = random.normal(size=(30, 64))
    person = np.repeat(np.arange(30), 5)
    rows = (centre[person] + 0.2 * random.normal(size=(150, 64))).astype(np.float32)
    places = one_of_each(rows, 0.7)
    assert len(set(person[places].tolist())) == len(places) == 15


def test_what_photos_look_like_is_that_of_the_first_usable_one_of_each_person(tmp_path):
    random = np.random.default_rng(4)
    verifier = Verifier.load(tiny_bundle(tmp_path / "b", "embedding").folder)
    rows = random.normal(size=(40, 24)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    faces = [
        FaceSample(
            f"P{number // 2:02}/{number}.jpg",
            error=BadImage("x") if number in (0, 6, 7) else None,
            face=Face(TEMPLATE * (1 + number / 20), 0.9),
            hints=(Hint("dark", ""),) * (number % 4 == 0) + (Hint("small", ""),) * (number > 30),
            embedding=rows[number],
        )
        for number in range(40)
    ]
    first = [1, *range(2, 6, 2), *range(8, 40, 2)]
    found = sample_figures(verifier, faces)
    left, right = np.triu_indices(19, 1)
    score = (rows[first][left] * rows[first][right]).sum(axis=1)
    assert found.people == 19
    assert found.scores == pytest.approx(np.quantile(score, (0.1, 0.5, 0.9)), abs=1e-6)
    sides = np.quantile([114 * (1 + number / 20) for number in first], (0.1, 0.5, 0.9))
    assert found.sides_px == pytest.approx(sides, abs=1e-6)
    dark, small = (
        sum(test) / 19 for test in zip(*((n % 4 == 0, n > 30) for n in first), strict=True)
    )
    assert found.hints == {"dark": dark, "small": small}
    assert sample_figures(verifier, faces[:26]).people == 12
    assert sample_figures(verifier, faces[:22]).people == 10
    assert sample_figures(verifier, faces[:20]) is None
    whole = [replace(face, face=None, hints=()) for face in faces]
    assert (sample_figures(verifier, whole).sides_px, sample_figures(verifier, whole).hints) == (
        None,
        {},
    )
    many = [replace(faces[1], name=f"P{number}/1.jpg") for number in range(1_005)]
    assert sample_figures(verifier, many).people == 1_000
    assert sample_figures(Verifier.load(tiny_bundle(tmp_path / "p").folder), faces) is None


@pytest.fixture(scope="module")
def calibrated(faces, tmp_path_factory):
    out = tmp_path_factory.mktemp("calibrated") / "mine"
    calibrate("default", faces, out)
    return out


def test_the_calibrations_own_photos_have_not_changed(calibrated, faces):
    found = drift(calibrated, faces)
    assert not found.changed
    assert found.people >= 10
    assert {change.what for change in found.changes} >= {"scores", "face sizes"}
    for change in found.changes:  # of one photo of half of the people
        if not change.what.startswith("hint"):
            assert change.here == pytest.approx(change.calibration, rel=0.15)
    assert found.pairs == found.people * (found.people - 1) // 2
    assert found.chance == min(1, len(found.changes) * min(one.chance for one in found.changes))
    assert found.advice == []
    done = in_process("drift", calibrated, faces)
    assert "no difference beyond chance" in done.stdout
    for change in found.changes:
        form = {"scores": "{:.4f}", "face sizes": "{:.0f}"}.get(change.what)
        there, here = (
            " / ".join(map(form.format, values)) if form else percent(values[0])
            for values in (change.calibration, change.here)
        )
        assert f"{there} there, {here} here: chance {percent(change.chance)}\n" in done.stdout


def test_smaller_and_darker_faces_are_seen(calibrated, faces, tmp_path):
    for photo in faces.glob("*/*.jpg"):
        (tmp_path / photo.parent.name).mkdir(exist_ok=True)
        with Image.open(photo) as image:
            dark = image.resize((80, 80)).point(lambda value: value // 5)
        dark.save(tmp_path / photo.parent.name / photo.name, quality=95)
    found = json.loads(in_process("drift", calibrated, tmp_path, "--json", check=1).stdout)
    assert found["changed"]
    sizes = next(change for change in found["changes"] if change["what"] == "face sizes")
    assert sizes["chance"] < 0.001
    assert sizes["here"][1] < sizes["calibration"][1]
    assert [line.partition(":")[0] for line in found["advice"][1:]] == [
        "faces differ in size", "photos have other weaknesses"
    ]  # fmt: skip
    assert_golden(Path(__file__).parent / "golden" / "drift.json", found["changes"], rel=0.02)


def test_scores_of_random_pairs_are_compared_without_labels(calibrated, faces, tmp_path):
    photos = [sorted(person.glob("*.jpg"))[0] for person in sorted(faces.iterdir())]
    verifier = Verifier.load(calibrated)
    rows = verifier.embed(photos)
    left, right = np.triu_indices(len(photos), 1)
    score = verifier.compare(rows[left], rows[right])

    def write(path, values):
        with path.open("w", newline="") as handle:
            writer = csv.writer(handle)
            writer.writerow(["left", "right", "score"])
            for one, other, value in zip(left, right, values, strict=True):
                writer.writerow([photos[one], photos[other], value])
            writer.writerow([photos[0], photos[1], ""])
        return path

    found = drift(calibrated, write(tmp_path / "same.csv", score))
    assert not found.changed
    table = verifier.model.profile.errors
    threshold = operating_point(verifier.model.profile).threshold
    kept = score < threshold
    sides, share = (left[kept], right[kept]), 1 - table.at(threshold).fmr.value
    expected = change_of_scores(score[kept].astype(np.float64), sides, table.sample, share)
    assert (found.people, found.pairs) == (len(photos), kept.sum())
    assert (found.chance, *found.changes[0].here) == pytest.approx(
        (expected.chance, *expected.here), rel=1e-5
    )
    low = write(tmp_path / "lower.csv", score - 4 * score.std())
    assert drift(calibrated, low).changed
    few = tmp_path / "few.csv"
    few.write_text("left,right,score\na,b,0.5\n")
    with pytest.raises(NotEnough):
        drift(calibrated, few)
    few.write_text("left,right,score\na,b,x\n")
    with pytest.raises(BadData, match="line 2"):
        drift(calibrated, few)


def test_what_cannot_be_compared_is_refused(tmp_path, few_faces, calibrated):
    with pytest.raises(BadBundle, match="calibrate"):
        drift(tiny_bundle(tmp_path / "bundle").folder, few_faces)
    with pytest.raises(NotEnough):
        drift(calibrated, few_faces)
    with pytest.raises(BadData):
        drift(calibrated, tmp_path / "nowhere")
