"""Curves, photos and sources of a report: against what one can count by hand."""

import json

import numpy as np
import pytest
from drawn.scenes import Place, canvas, paste
from figures import figures_of
from PIL import Image
from tiny.scores import draw_photos, invented, photo, write_method

from facepairs.errors import BadConfig, BadData
from facepairs.evaluation.evaluate import evaluate
from facepairs.evaluation.measurement import measure_scores
from facepairs.evaluation.page.page import find_photo, photo_url
from facepairs.evaluation.scores import ScoredPairs, match_pairs, write_scores
from facepairs.evaluation.sources import find_sources
from facepairs.support.results import to_plain


def test_a_picture_shows_the_face_wherever_it_is(faces, tmp_path):
    scene = tmp_path / "scene.png"
    paste(canvas(640, 480), next(faces.glob("*/*.jpg")), Place(250, 200, 375)).save(scene)
    assert photo_url(scene, True) is not None
    group = paste(canvas(760, 440), next(faces.glob("*/*.jpg")), Place(190, 210, 260))
    paste(group, next(faces.glob("*/*.jpg")), Place(560, 210, 300)).save(scene)
    assert photo_url(scene, True, 1) not in (None, photo_url(scene, True, 0))
    canvas(64, 48).save(scene)
    assert photo_url(scene, True) is None
    assert photo_url(scene, False) is not None


@pytest.mark.parametrize("folds", [0, 4])
def test_decisions_of_a_measurement_have_the_errors_of_its_summary(tmp_path, folds):
    scores = invented(folds=folds)
    write_scores(tmp_path / "scores.csv", scores)
    measured = measure_scores(tmp_path / "scores.csv")
    summary, accepted = measured.summary, scores.score >= measured.decided.by_pair
    expected = figures_of(scores.genuine, scores.score, None, scores.fold)
    assert summary.point.errors.fmr.value == expected.point.errors.fmr.value
    assert summary.point.errors.fnmr.value == expected.point.errors.fnmr.value
    assert (accepted & ~scores.genuine).mean() * 2 == pytest.approx(summary.point.errors.fmr.value)
    assert (~accepted & scores.genuine).mean() * 2 == pytest.approx(summary.point.errors.fnmr.value)


def test_words_are_split_into_sources_and_photo_folder(tmp_path):
    run = tmp_path / "run"
    one, other = (write_method(run / name, invented()) for name in ("fisher", "pixels"))
    scores, data = tmp_path / "scores.csv", tmp_path / "photos"
    write_scores(scores, invented())
    data.mkdir()
    (tmp_path / "result.json").write_text('{"val_auc": 0.9}')  # of a training run
    with pytest.raises(BadConfig):
        find_sources([str(tmp_path)])
    found, folder = find_sources([str(run), str(data)])
    assert found == [(str(one), "fisher"), (str(other), "pixels")]
    assert folder == data
    assert find_sources([str(one)]) == ([(str(one), "fisher")], None)
    file = str(scores), tmp_path.name
    assert find_sources([str(scores)]) == ([file], None)
    assert find_sources([str(scores), str(data)]) == ([file], data)
    found, folder = find_sources(["default", "a/bundle", "b/bundle", str(data)])
    assert [name for _, name in found] == ["default", "a", "b"]
    found, _ = find_sources(["a/x/bundle", "b/x/bundle", str(data)])
    assert [name for _, name in found] == ["a/x/bundle", "b/x/bundle"]
    for words in ([], ["default"], [str(data)]):
        with pytest.raises(BadConfig):
            find_sources(words)
    with pytest.raises(BadData):
        find_sources([str(scores), str(tmp_path / "nowhere")])
    with pytest.raises(BadConfig) as refused:
        evaluate(["default", "default", str(data)], scores_out=tmp_path / "new.csv")
    assert refused.value.arguments == ("out",)


def test_pairs_are_matched_by_their_photos():
    first = invented(40)
    order = np.random.default_rng(0).permutation(40)
    swapped = ScoredPairs(
        [first.right[k] for k in order],
        [first.left[k] for k in order],
        *(part[order] for part in (first.genuine, first.fold, first.score)),
    )
    lined = match_pairs(first, swapped, ("a", "b"))
    np.testing.assert_array_equal(swapped.score[lined], first.score)
    with pytest.raises(BadData):
        match_pairs(first, invented(38), ("a", "b"))
    nameless = ScoredPairs([""] * 40, [""] * 40, first.genuine, first.fold, first.score)
    assert match_pairs(nameless, nameless, ("a", "b")).tolist() == list(range(40))
    three = (np.ones(3, bool), np.zeros(3, np.int16), np.arange(3.0))
    twice = ScoredPairs(["a", "b", "a"], ["b", "a", "c"], *three)
    assert match_pairs(twice, twice, ("a", "b")).tolist() == [0, 1, 2]
    turned = ScoredPairs(first.left, first.right, ~first.genuine, first.fold, first.score)
    with pytest.raises(BadData):
        match_pairs(first, turned, ("a", "b"))


def test_view2_uses_the_thresholds_of_result_json(tmp_path):
    scores = invented()
    folder = write_method(tmp_path / "fisher", scores)
    found = measure_scores(folder, "fisher")
    np.testing.assert_allclose(found.decided.by_pair, 0.9 + 0.1 * scores.fold)
    right = (scores.score >= found.decided.by_pair) == scores.genuine
    assert found.summary.accuracy.value == pytest.approx(right.mean())
    low, high = found.summary.accuracy.interval
    assert low < found.summary.accuracy.value < high
    assert 0 < found.summary.ece < 0.2
    json.dumps(to_plain(found.summary), allow_nan=False)
    for damaged in (b'{"folds": [', b'"folds" \xff', b"[" * 100_000, b'["folds"]'):
        (folder / "result.json").write_bytes(damaged)
        with pytest.raises(BadData, match=r"result\.json: "):
            measure_scores(folder, "fisher")
    (folder / "result.json").write_text('{"folds": [{"fold": 1}]}')
    with pytest.raises(BadData, match=r"result.json: folds\[0\]: "):
        measure_scores(folder, "fisher")


@pytest.mark.parametrize("name", ["../secret.png", "/etc/hostname", "Person_00/../../secret.png"])
def test_names_that_lead_out_of_the_folder_are_missing(tmp_path, name):
    root = draw_photos(tmp_path / "photos")
    Image.new("RGB", (9, 9)).save(tmp_path / "secret.png")
    assert find_photo(root, photo(0, 1)) == root / photo(0, 1)
    assert find_photo(root, 3000 * "x") is find_photo(root, "a\0b") is None
    assert find_photo(root, name) is None
