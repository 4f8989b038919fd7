"""Cross-validation: folds are independent, no bundle knows its test people, and runs resume."""

import gc
import json
import shutil
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from drawn.view2 import FOLDS, write_lists
from figures import figures_of

import facepairs
from facepairs.bundles.model import open_model
from facepairs.config import TrainConfig
from facepairs.data.index import FaceIndex
from facepairs.errors import BadConfig, BadRun
from facepairs.evaluation.lookalikes import LookAlikes
from facepairs.evaluation.measurement import measure_scores
from facepairs.evaluation.scores import read_scores, write_scores
from facepairs.photos.photo_table import photo_records, plan_crops
from facepairs.training.inputs.data import TrainingData
from facepairs.training.run_folder import Run
from facepairs.training.view2 import crossval as view2
from facepairs.training.view2.crossval import SCORES, read_fold
from facepairs.training.view2.protocol import check_unknown, read_view2
from facepairs.verification.provenance import provenance_path, read_provenance
from facepairs.verification.verifier import Verifier

pytestmark = pytest.mark.usefixtures("few_validation_pairs", "tiny_networks")

CONFIG = TrainConfig(
    model="siamese",
    epochs=2,
    pairs_per_epoch=64,
    batch_size=16,
    calibration_share=0.4,
    validation_share=0.3,
    test_share=0.0,
    tensorboard_images=False,
)


@pytest.fixture(scope="module")
def lists(many_faces, tmp_path_factory):
    write_lists(many_faces, folder := tmp_path_factory.mktemp("lists"))
    return folder


@pytest.fixture(scope="module")
def view(many_faces, lists):
    return read_view2(FaceIndex.scan(many_faces), lists)


def crops_of(view, recipe):
    return plan_crops(list(photo_records(view.index, "landmarks")), recipe.crop_spec, "landmarks")


def crossval(view, out, config=CONFIG, folds=(1, 2)):
    settings = config.resolve()
    return view2.run_folds(view, crops_of(view, settings.recipe), settings, out, folds)


@pytest.fixture(scope="module")
def done(view, tiny_networks, few_validation_pairs, tmp_path_factory):
    """Two folds, and the folder they are in."""
    out = tmp_path_factory.mktemp("crossval") / "run"
    return crossval(view, out).summary, out


@pytest.fixture
def copied(done, tmp_path):
    """A copy of that folder, to change."""
    return shutil.copytree(done[1], tmp_path / "run")


def test_a_finished_fold_has_a_run_folder_and_the_scores_of_verify(view, done):
    out, root = done[1], view.index.root
    for fold in (1, 2):
        folder = out / f"fold-0{fold}"
        scores, model = read_fold(folder, fold), open_model(folder / "bundle")
        assert scores.origin.calibration.threshold == model.profile.balanced_threshold
        assert scores.origin.calibration.scale == model.profile.calibration.scale
        split = view.split(fold, CONFIG.resolve())
        assert Run.read(folder).people == {name: len(part) for name, part in vars(split).items()}
        pairs = view.pairs_of(fold)
        assert set(scores.fold.tolist()) == {fold}
        assert np.array_equal(scores.genuine, pairs.genuine)
        assert list(scores.left) == [view.index.name(int(i)) for i in pairs.left]
        verdict = Verifier(model).verify(root / scores.left[-1], root / scores.right[-1])
        assert verdict.score == pytest.approx(scores.score[-1], abs=1e-5)
        provenance = read_provenance(folder / SCORES)
        assert (provenance.protocol, provenance.identities) == ("view2", model.origin.identities)
    assert read_provenance(out / SCORES).pairs == "LFW View 2"


@pytest.mark.slow
def test_a_finished_fold_leaves_no_images_or_state_in_memory(view, done):
    import keras

    keras.utils.clear_session()
    gc.collect()
    held = [o for o in gc.get_objects() if type(o).__name__ == "EagerTensor" and o.ndim == 4]
    assert not [tensor.shape for tensor in held if tensor.shape[0] == len(view.index)]
    assert not [o for o in gc.get_objects() if type(o) is TrainingData]


def test_no_bundle_knows_people_of_its_fold_or_calibrates_on_who_chose_its_epoch(view, done):
    everyone = np.array(view.index.people)
    for fold in (1, 2):
        folder = done[1] / f"fold-0{fold}"
        model, run = open_model(folder / "bundle"), Run.read(folder)
        check_unknown(model, view.index, view.people_of(fold), fold)
        known = set(np.flatnonzero(model.origin.identities.knows(everyone)).tolist())
        assert known == set(range(len(everyone))) - set(view.people_of(fold).tolist())
        assert (
            run.epoch == max(run.history, key=lambda row: (row["val_auc"], -row["epoch"]))["epoch"]
        )
        split = view.split(fold, CONFIG.resolve())
        assert len(split.validation) > 0
        assert model.origin.identities.trained_with(
            everyone[split.fitted]
        ).all()  # all influence the weights
        assert not model.origin.identities.trained_with(everyone[split.calibration]).any()
    with pytest.raises(BadRun):
        check_unknown(model, view.index, view.people_of(1), 1)


def test_the_result_can_be_computed_from_scores_and_thresholds(done):
    figures, out = done
    result = json.loads((out / "result.json").read_text())
    scores = read_scores(out / SCORES)
    curves = {row["fold"]: row["calibration"] for row in result["folds"]}
    thresholds = {fold: -curve["offset"] / curve["scale"] for fold, curve in curves.items()}
    again = figures_of(scores.genuine, scores.score, thresholds, scores.fold)
    assert (figures.accuracy, figures.eer.value) == (again.accuracy, again.eer.value)
    assert figures.auc.value == again.auc.value
    assert 0 <= figures.ece <= 1
    assert figures.about.alignment == "landmarks-5"
    assert (len(result["folds"]), result["folds_in_all"]) == (2, FOLDS)


def test_the_calibration_error_is_that_of_evaluate_where_look_alikes_are_known(view, done, copied):
    for fold in (1, 2):
        scores = copied / f"fold-0{fold}" / SCORES
        table, origin = read_scores(scores), read_provenance(scores)
        alike = (np.arange(len(table)) % 5 == 1) & ~table.genuine
        seen = msgspec.structs.replace(origin.calibration, lookalikes=True)
        origin = msgspec.structs.replace(origin, calibration=seen)
        write_scores(scores, replace(table, alike=LookAlikes.of(alike), origin=origin))
    result = crossval(view, copied).summary
    measured = measure_scores(copied, "run").summary
    assert result.ece == measured.ece != done[0].ece


def test_finished_folds_are_not_trained_again(view, done, copied, monkeypatch):
    def never(*arguments, **options):
        raise AssertionError("trained again")

    with monkeypatch.context() as patch:
        patch.setattr("facepairs.training.fit.fit_people", never)
        found = crossval(view, copied).summary  # of the copy's own place
        assert msgspec.structs.replace(found, about=done[0].about) == done[0]
    first, second = (copied / f"fold-0{fold}" for fold in (1, 2))
    provenance_path(first / SCORES).unlink()
    (second / SCORES).write_text("genuine,score\n1,2\n")
    assert read_fold(first, 1) is None
    assert read_fold(second, 2) is None
    lines: list[str] = []
    with facepairs.showing(log=lines.append):
        again = crossval(view, copied, folds=(2,)).summary
    told = [line.partition(",")[0] for line in lines if line.startswith("fold")]
    people = len(view.split(2, CONFIG.resolve()).training)
    assert told == [f"fold 2: {people} people to train on", "fold 2 is finished"]
    assert [fold.name for fold in again.folds] == ["2"]
    assert again.folds[0] == done[0].folds[1]


def test_scores_of_another_fold_or_without_their_origin_are_ignored(copied):
    folder = copied / "fold-01"
    assert read_fold(folder, 1) is not None
    assert read_fold(folder, 2) is None
    beside = provenance_path(folder / SCORES)
    origin = json.loads(beside.read_text())
    for change in ({"calibration": None}, {"calibration": {}}, {"schema": 2}):
        beside.write_text(json.dumps(origin | change))
        assert read_fold(folder, 1) is None
    beside.write_text(json.dumps(origin))
    (folder / "result.json").unlink()
    assert read_fold(folder, 1) is None


def test_a_network_that_knows_people_of_a_fold_does_not_score_it(view, done, tmp_path, monkeypatch):
    known = Run.read(done[1] / "fold-01")
    monkeypatch.setattr("facepairs.training.fit.fit_people", lambda *given: known)
    folder, settings = tmp_path / "fold-02", CONFIG.resolve()
    crops, split = crops_of(view, settings.recipe), view.split(2, settings)
    with pytest.raises(BadRun):
        view2.run_fold(view, crops, 2, split, settings, folder)
    assert not (folder / SCORES).exists()


@pytest.mark.slow
def test_the_article_sampler_trains_another_network(view, tmp_path):
    models = []
    for name in ("difference", "difference-article"):
        crossval(view, tmp_path / name, CONFIG.replace(model=name, seed=1, epochs=8), (1,))
        models.append(open_model(tmp_path / name / "fold-01" / "bundle"))
    ours, theirs = models
    assert theirs.origin.identities == ours.origin.identities  # the same people …
    assert theirs.profile.balanced_threshold != ours.profile.balanced_threshold  # … in other pairs


def test_changed_settings_people_and_pairs_are_refused(view, lists, copied, many_faces, tmp_path):
    def refused(config, resume, out=copied):
        with pytest.raises((BadRun, BadConfig)) as caught:
            view2.crossval(many_faces, lists, out, config, resume=resume)
        return caught.value.arguments

    assert refused(CONFIG, resume=False) == ("resume", "out")
    assert refused(CONFIG.replace(epochs=3), resume=True) == ("epochs",)
    assert refused(CONFIG.replace(lists="lists"), False, tmp_path / "none") == ("lists",)
    assert "init" in refused(CONFIG.replace(init="default"), False, tmp_path / "none")
    pairs = view.pairs
    others = replace(view, pairs=replace(pairs, left=pairs.right, right=pairs.left))
    with pytest.raises(BadRun):
        crossval(others, copied)
    shutil.move(copied / "fold-01", copied / "fold-03")
    with pytest.raises(BadRun):
        crossval(view, copied, folds=(3,))
