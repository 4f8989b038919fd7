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

from facepairs.bundles.bundle import Bundle
from facepairs.data.index import FaceIndex
from facepairs.errors import BadConfig, BadRun
from facepairs.evaluation.measurement import measure_scores
from facepairs.evaluation.scores import read_scores, write_scores
from facepairs.evaluation.sources.find import ScoreSource
from facepairs.faces.inspection import inspect_photos
from facepairs.training.options import TrainOptions
from facepairs.training.run_folder import Run
from facepairs.training.training import Training
from facepairs.training.view2 import crossval as view2
from facepairs.training.view2.crossval import SCORES, read_fold
from facepairs.training.view2.plan import make_plan
from facepairs.training.view2.protocol import check_unknown, read_view2
from facepairs.verification.provenance import provenance_path, read_provenance
from facepairs.verification.verifier import Verifier

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_draws", "few_validation_pairs")]

METHOD = "siamese-conv"
SETTINGS = f"""
[{METHOD}]
image_size = 64
epochs = 2
pairs_per_epoch = 64
batch_size = 16
calibration_share = 0.4
validation_share = 0.3
"""


SILENT = TrainOptions()


@pytest.fixture(scope="module")
def view(many_faces, tmp_path_factory):
    lists = tmp_path_factory.mktemp("lists")
    write_lists(many_faces, lists)
    return read_view2(FaceIndex.scan(many_faces), lists)


def crossval(view, made, out):
    return view2.run_folds(view, inspect_photos(view.index, "landmarks"), made, out)


def plan(tmp_path, methods=METHOD, folds="1-2", text=SETTINGS):
    file = tmp_path / "view2.toml"
    file.write_text(text)
    return make_plan(methods, folds, file)


@pytest.fixture(scope="module")
def done(view, tmp_path_factory):
    """Two folds, and the folder they are in."""
    folder = tmp_path_factory.mktemp("crossval")
    out = folder / "run"
    return crossval(view, plan(folder, METHOD), out), out


def test_a_finished_fold_has_a_run_folder_and_scores(view, done):
    _, out = done
    for fold in (1, 2):
        folder = out / METHOD / f"fold-0{fold}"
        assert {"bundle", "config.toml", "checkpoints", "result.json", "scores.csv"} <= {
            path.name for path in folder.iterdir()
        }
        finished, bundle = read_fold(folder, fold), Bundle.open(folder / "bundle")
        training = finished.training
        assert training.threshold == bundle.threshold
        assert training.calibration.scale == bundle.calibration.scale
        split = view.split(fold, plan(folder.parent.parent.parent).configs[METHOD])
        assert training.people == {name: len(part) for name, part in vars(split).items()}
        scores, pairs = finished.scores, view.pairs_of(fold)
        assert set(scores.fold.tolist()) == {fold}
        assert np.array_equal(scores.genuine, pairs.genuine)
        assert list(scores.left) == [view.index.name(int(i)) for i in pairs.left]
        provenance = read_provenance(folder / "scores.csv")
        assert provenance.protocol == "view2"
        assert provenance.identities == bundle.identities
    assert read_provenance(out / METHOD / "scores.csv").pairs == "LFW View 2"


def test_a_finished_fold_leaves_no_images_or_state_in_memory(view, done):
    import keras

    keras.utils.clear_session()
    gc.collect()
    held = [o for o in gc.get_objects() if type(o).__name__ == "EagerTensor" and o.ndim == 4]
    assert not [tensor.shape for tensor in held if tensor.shape[0] == len(view.index)]
    assert not [o for o in gc.get_objects() if type(o) is Training]


def test_scores_equal_those_of_verify(view, done):
    folder = done[1] / METHOD / "fold-02"
    scores = read_scores(folder / "scores.csv")
    verifier = Verifier.load(folder / "bundle")
    root = view.index.root
    for i in (0, len(scores) - 1):
        verdict = verifier.verify(root / scores.left[i], root / scores.right[i])
        assert verdict.score == pytest.approx(scores.score[i], abs=1e-5)


def test_no_bundle_knows_people_of_its_fold(view, done):
    for fold in (1, 2):
        bundle = Bundle.open(done[1] / METHOD / f"fold-0{fold}" / "bundle")
        everyone = list(view.index.people)
        known = set(np.flatnonzero(bundle.knows(everyone)).tolist())
        assert known == set(range(len(everyone))) - set(view.people_of(fold).tolist())


def test_the_calibration_error_is_that_of_evaluate_where_look_alikes_are_known(
    view, done, tmp_path
):
    out = tmp_path / "run"
    shutil.copytree(done[1], out)
    for fold in (1, 2):
        scores = out / METHOD / f"fold-0{fold}" / SCORES
        table, origin = read_scores(scores), read_provenance(scores)
        cluster = (np.arange(len(table)) % 5 == 1).astype(np.int16)
        seen = msgspec.structs.replace(origin.calibration, lookalikes=True)
        origin = msgspec.structs.replace(origin, calibration=seen)
        write_scores(scores, replace(table, cluster=cluster), origin)
    before = done[0].methods[METHOD].ece
    result = crossval(view, plan(tmp_path), out).methods[METHOD]
    measured = measure_scores(ScoreSource("view2", str(out / METHOD), METHOD)).summary
    assert result.ece == measured.ece != before


def test_the_result_can_be_computed_from_scores_and_thresholds(done):
    report, out = done
    assert list(report.methods) == [METHOD]
    figures = report.methods[METHOD]
    result = json.loads((out / METHOD / "result.json").read_text())
    scores = read_scores(out / METHOD / "scores.csv")
    thresholds = {row["fold"]: row["threshold"] for row in result["folds"]}
    again = figures_of(scores.genuine, scores.score, thresholds, scores.fold)
    assert (figures.accuracy, figures.eer) == (again.accuracy, again.eer)
    assert figures.auc.value == again.auc.value
    assert 0 <= figures.ece <= 1
    assert figures.category == "label-free outside data"
    assert (len(result["folds"]), result["folds_in_all"]) == (2, FOLDS)
    assert all(row["people"]["training"] > 0 for row in result["folds"])


def test_finished_folds_are_not_trained_again(view, done, tmp_path, monkeypatch):
    out = tmp_path / "run"
    shutil.copytree(done[1], out)

    def never(*arguments, **options):
        raise AssertionError("trained again")

    with monkeypatch.context() as patch:
        patch.setattr("facepairs.training.train_people.train_people", never)
        report = crossval(view, plan(tmp_path, METHOD), out)
    assert report.methods == done[0].methods
    first, second = (out / METHOD / f"fold-0{fold}" for fold in (1, 2))
    provenance_path(first / "scores.csv").unlink()
    (second / "scores.csv").write_text("genuine,score\n1,2\n")
    assert read_fold(first, 1) is None
    assert read_fold(second, 2) is None
    shutil.copy(done[1] / METHOD / "fold-02" / "scores.csv", second)
    again = crossval(view, plan(tmp_path), out).methods[METHOD]
    before = done[0].methods[METHOD]
    assert again.accuracy == before.accuracy
    assert again.auc == before.auc


def test_scores_of_another_fold_or_without_their_origin_are_ignored(done, tmp_path):
    folder = tmp_path / "fold-01"
    shutil.copytree(done[1] / METHOD / "fold-01", folder)
    assert read_fold(folder, 1) is not None
    assert read_fold(folder, 2) is None
    beside = provenance_path(folder / "scores.csv")
    origin = json.loads(beside.read_text())
    for change in ({"balanced_threshold": None}, {"calibration": {}}, {"schema": 2}):
        beside.write_text(json.dumps(origin | change))
        assert read_fold(folder, 1) is None
    beside.write_text(json.dumps(origin))
    (folder / "result.json").unlink()
    assert read_fold(folder, 1) is None


def test_a_split_that_leaks_people_is_refused_before_scoring(view, tmp_path):
    config = plan(tmp_path).configs[METHOD]
    split = view.split(1, config)
    leaking = replace(
        split,
        training=np.union1d(split.training, split.test[:1]),
        calibration=np.union1d(split.calibration, split.test[1:2]),
    )
    folder, photos = tmp_path / METHOD / "fold-01", inspect_photos(view.index, "landmarks")
    with pytest.raises(BadRun, match=r"on 2 of the 12 people of fold 1 \("):
        view2.run_fold(view, photos, 1, leaking, config, folder, SILENT)
    assert not (folder / "scores.csv").exists()


def test_people_who_are_only_in_the_pairs_are_checked_too(view, done):
    bundle = Bundle.open(done[1] / METHOD / "fold-01" / "bundle")
    check_unknown(bundle, view.index, view.people_of(1), 1)
    with pytest.raises(BadRun, match="on 12 of the 12 people of fold 2"):
        check_unknown(bundle, view.index, view.people_of(2), 2)


def test_a_checkpoint_from_another_fold_is_refused(view, done, tmp_path):
    out = tmp_path / "run"
    shutil.copytree(done[1], out)
    shutil.rmtree(out / METHOD / "fold-02")
    shutil.move(out / METHOD / "fold-01", out / METHOD / "fold-02")
    with pytest.raises(BadRun, match="made for other people or images"):
        crossval(view, plan(tmp_path, METHOD, "2"), out)


def test_the_best_epoch_of_a_fold_is_chosen_by_people_who_neither_calibrate_nor_test(
    view, done, tmp_path
):
    fold = done[1] / METHOD / "fold-01"
    run = Run.read(fold)
    rows = json.loads((fold / "history.json").read_text())
    assert run.epoch == max(rows, key=lambda row: (row["val_auc"], -row["epoch"]))["epoch"]
    config = plan(tmp_path, METHOD, "1").configs[METHOD]
    without = view.split(1, config.replace(validation_share=0.0))
    people, bundle = run.people, Bundle.open(fold / "bundle")
    assert people["calibration"] == len(without.calibration)
    assert people["training"] + people["validation"] == len(without.training)
    assert people["validation"] > 0
    everyone = np.array(view.index.people)
    assert bundle.trained_on(everyone[without.training]).all()  # all influence the weights
    assert np.flatnonzero(bundle.knows(everyone)).tolist() == sorted(
        [*without.training, *without.calibration]
    )
    assert not bundle.trained_on(everyone[without.calibration]).any()


def test_the_article_sampler_trains_another_network(view, tmp_path):
    bundles = []
    for method in ("difference", "difference-article"):
        text, out = SETTINGS.replace(METHOD, method), tmp_path / method
        crossval(view, plan(tmp_path, method, "1", text), out)
        bundles.append(Bundle.open(out / method / "fold-01" / "bundle"))
    ours, theirs = bundles
    assert theirs.identities == ours.identities  # the same people …
    assert theirs.threshold != ours.threshold  # … in other pairs


def test_changed_settings_images_and_unusable_folders_are_refused(view, done, many_faces, tmp_path):
    out = tmp_path / "run"
    shutil.copytree(done[1], out)
    with pytest.raises(BadRun) as refused:
        view2.crossval(many_faces, tmp_path, out, plan(tmp_path))
    assert "resume" in refused.value.arguments
    with pytest.raises(BadRun, match="calibration_share"):
        other = plan(
            tmp_path, text=SETTINGS.replace("calibration_share = 0.4", "calibration_share = 0.3")
        )
        crossval(view, other, out)
    with pytest.raises(BadConfig, match="folds 1 to 4"):
        crossval(view, plan(tmp_path, folds="9"), tmp_path / "none")
    write_lists(many_faces, tmp_path / "lists")
    pairs = tmp_path / "lists" / "pairs.txt"
    lines = pairs.read_text(encoding="utf-8").splitlines()
    lines[1], lines[2] = lines[2], lines[1]
    pairs.write_text("\n".join(lines) + "\n", encoding="utf-8")
    changed = read_view2(view.index, tmp_path / "lists")
    with pytest.raises(BadRun, match=r"pairs\.txt"):
        crossval(changed, plan(tmp_path, METHOD), out)
