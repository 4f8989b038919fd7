"""Cross-validation: folds are independent, no bundle knows its test people, and runs resume."""

import gc
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from drawn.view2 import FOLDS, write_lists

from facepairs.bundles.bundle import Bundle
from facepairs.data.index import FaceIndex
from facepairs.errors import BadConfig, BadRun
from facepairs.evaluation.measurement import measure_view2
from facepairs.evaluation.metrics.summary import summarise
from facepairs.evaluation.scores import read_scores, write_scores
from facepairs.evaluation.serialize import to_plain
from facepairs.evaluation.sources.find import ScoreSource
from facepairs.faces.inspection import inspect_photos
from facepairs.support.checksum import file_sha256
from facepairs.training.training import Training
from facepairs.training.view2 import crossval as view2
from facepairs.training.view2.fold_record import RECORD, SCORES, read_fold
from facepairs.training.view2.folds import check_unknown, read_view2
from facepairs.training.view2.methods import make_plan
from facepairs.training.view2.results import write_results
from facepairs.verification.provenance import read_provenance
from facepairs.verification.verifier import Verifier

pytestmark = pytest.mark.usefixtures("few_draws", "few_validation_pairs")

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


def silent(label):
    return lambda done, total: None


@pytest.fixture(scope="module")
def view(many_faces, tmp_path_factory):
    lists = tmp_path_factory.mktemp("lists")
    write_lists(many_faces, lists)
    return read_view2(FaceIndex.scan(many_faces), lists)


def crossval(view, made, out, **options):
    return view2.crossval(view, inspect_photos(view.index, "landmarks"), made, out, **options)


def plan(tmp_path, methods=METHOD, folds="1-2", text=SETTINGS):
    file = tmp_path / "view2.toml"
    file.write_text(text)
    return make_plan(methods, folds, None, file)


@pytest.fixture(scope="module")
def done(view, tmp_path_factory):
    """Two folds, and the folder they are in."""
    folder = tmp_path_factory.mktemp("crossval")
    out = folder / "run"
    return crossval(view, plan(folder, METHOD), out), out


def test_a_finished_fold_has_a_run_folder_scores_and_a_record(view, done):
    _, out = done
    for fold in (1, 2):
        folder = out / METHOD / f"fold-0{fold}"
        assert {"bundle", "config.toml", "checkpoints", "scores.csv", "fold.json"} <= {
            path.name for path in folder.iterdir()
        }
        record = json.loads((folder / "fold.json").read_text())
        bundle = Bundle.open(folder / "bundle")
        assert record["threshold"] == bundle.threshold
        assert record["identities_digest"] == bundle.identity_counts.digest
        split = view.split(fold, plan(folder.parent.parent.parent).configs[METHOD])
        assert record["people"] == {
            "training": len(split.training),
            "calibration": len(split.calibration),
            "validation": len(split.validation),
        }
        assert record["images"]["training"] == 3 * len(split.training)
        assert {"accuracy", "auc", "minutes", "epochs", "seed", "versions", "machine"} <= set(
            record
        )
        scores = read_scores(folder / "scores.csv")
        pairs = view.pairs_of(fold)
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


def test_the_calibration_error_is_that_of_evaluate_where_look_alikes_are_known(done, tmp_path):
    out = tmp_path / "run"
    shutil.copytree(done[1], out)
    for fold in (1, 2):
        scores, record = (out / METHOD / f"fold-0{fold}" / name for name in (SCORES, RECORD))
        table = read_scores(scores)
        cluster = (np.arange(len(table)) % 5 == 1).astype(np.int16)
        write_scores(scores, replace(table, cluster=cluster), read_provenance(scores))
        values = json.loads(record.read_text())
        values["calibration"]["lookalikes"] = True
        record.write_text(json.dumps({**values, "scores_sha256": file_sha256(scores)}))
    before = json.loads((out / "result.json").read_text())
    result = write_results(out, FOLDS, before["data"]).methods[METHOD]
    measured = measure_view2(ScoreSource("view2", str(out / METHOD), METHOD)).summary
    assert result.ece == measured.ece != before["methods"][METHOD]["ece"]


def test_the_result_can_be_computed_from_scores_and_thresholds(done):
    report, out = done
    results = json.loads((out / "result.json").read_text())
    assert results == to_plain(report.results)
    assert list(results["methods"]) == [METHOD]
    for method, result in results["methods"].items():
        assert json.loads((out / method / "result.json").read_text()) == result
        scores = read_scores(out / method / "scores.csv")
        thresholds = {row["fold"]: row["threshold"] for row in result["folds"]}
        again = to_plain(summarise(scores.genuine, scores.score, thresholds, scores.fold))
        for key in ("accuracy", "accuracy_standard_error", "auc", "eer", "tar_at_far", "fmr"):
            assert result[key] == again[key]
        assert 0 <= result["ece"] <= 1
        assert (result["folds_done"], result["folds_in_all"]) == (2, FOLDS)
        assert result["machines"][0]["cores"] >= 1


def test_finished_folds_are_not_trained_again(view, done, tmp_path, monkeypatch):
    out = tmp_path / "run"
    shutil.copytree(done[1], out)

    def never(*arguments, **options):
        raise AssertionError("trained again")

    with monkeypatch.context() as patch:
        patch.setattr("facepairs.training.view2.crossval.train_people", never)
        report = crossval(view, plan(tmp_path, METHOD), out, resume=True)
    assert report.results == done[0].results
    (out / METHOD / "fold-01" / "fold.json").write_text('{"schema": 1')
    (out / METHOD / "fold-02" / "scores.csv").write_text("genuine,score\n1,2\n")
    assert read_fold(out / METHOD / "fold-01", METHOD, 1) is None
    assert read_fold(out / METHOD / "fold-02", METHOD, 2) is None
    shutil.copy(done[1] / METHOD / "fold-02" / "scores.csv", out / METHOD / "fold-02")
    again = crossval(view, plan(tmp_path), out, resume=True).results.methods[METHOD]
    before = done[0].results.methods[METHOD]
    assert again.accuracy == before.accuracy
    assert again.auc == before.auc


def test_a_record_of_another_fold_or_method_is_ignored(done, tmp_path):
    folder = tmp_path / "fold-01"
    shutil.copytree(done[1] / METHOD / "fold-01", folder)
    assert read_fold(folder, METHOD, 1) is not None
    assert read_fold(folder, METHOD, 2) is None
    assert read_fold(folder, "difference", 1) is None
    record = json.loads((folder / "fold.json").read_text())
    for change in ({"threshold": "x"}, {"threshold": None}, {"calibration": {}}, {"schema": 2}):
        (folder / "fold.json").write_text(json.dumps(record | change))
        assert read_fold(folder, METHOD, 1) is None


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
        view2.run_fold(view, photos, 1, leaking, METHOD, config, folder, print, silent)
    assert not (folder / "scores.csv").exists()
    assert not (folder / "fold.json").exists()


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
        crossval(view, plan(tmp_path, METHOD, "2"), out, resume=True)


@pytest.mark.slow
def test_a_checkpoint_of_other_crops_is_refused(view, done, tmp_path):
    folder, photos = tmp_path / "fold-01", inspect_photos(view.index, "none")
    shutil.copytree(done[1] / METHOD / "fold-01", folder)
    config = plan(tmp_path, METHOD).configs[METHOD]
    unaligned, split = config.replace(align="none"), view.split(1, config)
    with pytest.raises(BadRun, match="made for other people or images"):
        view2.run_fold(view, photos, 1, split, METHOD, unaligned, folder, print, silent)
    aligned = inspect_photos(view.index, "landmarks")
    view2.run_fold(view, aligned, 1, split, METHOD, config, folder, print, silent)


@pytest.mark.slow
def test_an_interrupted_fold_ends_at_the_same_weights(view, done, tmp_path, monkeypatch):
    """A kill after the first epoch's checkpoint, as seen by the next run."""
    made, cut = plan(tmp_path, METHOD, "1"), tmp_path / "cut"
    save = Training.save

    def save_and_die(training):
        save(training)
        raise SystemExit

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(Training, "save", save_and_die)
        crossval(view, made, cut)
    assert not (cut / METHOD / "fold-01" / "bundle").exists()
    report = crossval(view, made, cut, resume=True)
    records = [
        json.loads((out / METHOD / "fold-01" / "fold.json").read_text()) for out in (done[1], cut)
    ]
    for key in ("threshold", "accuracy", "auc", "scores_sha256", "epochs", "identities_digest"):
        assert records[0][key] == records[1][key]
    assert report.results.methods[METHOD].accuracy_standard_error is None


def test_the_best_epoch_of_a_fold_is_chosen_by_people_who_neither_calibrate_nor_test(
    view, done, tmp_path
):
    fold = done[1] / METHOD / "fold-01"
    record = json.loads((fold / "fold.json").read_text())
    rows = json.loads((fold / "history.json").read_text())
    assert record["epoch"] == max(rows, key=lambda row: (row["val_auc"], -row["epoch"]))["epoch"]
    config = plan(tmp_path, METHOD, "1").configs[METHOD]
    without = view.split(1, config.replace(validation_share=0.0))
    people, bundle = record["people"], Bundle.open(fold / "bundle")
    assert people["calibration"] == len(without.calibration)
    assert people["training"] + people["validation"] == len(without.training)
    assert people["validation"] > 0
    everyone = np.array(view.index.people)
    assert bundle.trained_on(everyone[without.training]).all()  # all influence the weights
    assert np.flatnonzero(bundle.knows(everyone)).tolist() == sorted(
        [*without.training, *without.calibration]
    )
    assert not bundle.trained_on(everyone[without.calibration]).any()


@pytest.mark.slow
def test_the_article_sampler_trains_another_network(view, tmp_path):
    folds = {}
    for method in ("difference", "difference-article"):
        text, out = SETTINGS.replace(METHOD, method), tmp_path / method
        report = crossval(view, plan(tmp_path, method, "1", text), out)
        (folds[method],) = report.results.methods[method].folds
    ours, theirs = folds.values()
    assert theirs.identities_digest == ours.identities_digest  # the same people …
    assert theirs.threshold != ours.threshold  # … in other pairs


def test_changed_settings_images_and_unusable_folders_are_refused(view, done, many_faces, tmp_path):
    out = tmp_path / "run"
    shutil.copytree(done[1], out)
    with pytest.raises(BadRun, match="--resume"):
        crossval(view, plan(tmp_path), out)
    with pytest.raises(BadRun, match=r"calibration_share was 0\.4 and is 0\.3"):
        other = plan(
            tmp_path, text=SETTINGS.replace("calibration_share = 0.4", "calibration_share = 0.3")
        )
        crossval(view, other, out, resume=True)
    with pytest.raises(BadRun, match="nothing to resume"):
        crossval(view, plan(tmp_path), tmp_path / "none", resume=True)
    with pytest.raises(BadConfig, match="lies in the folder of faces"):
        crossval(view, plan(tmp_path), many_faces / "run")
    with pytest.raises(BadConfig, match="folds 1 to 4"):
        crossval(view, plan(tmp_path, folds="9"), tmp_path / "none")
    write_lists(many_faces, tmp_path / "lists")
    pairs = tmp_path / "lists" / "pairs.txt"
    lines = pairs.read_text(encoding="utf-8").splitlines()
    lines[1], lines[2] = lines[2], lines[1]
    pairs.write_text("\n".join(lines) + "\n", encoding="utf-8")
    changed = read_view2(view.index, tmp_path / "lists")
    with pytest.raises(BadRun, match=r"pairs\.txt have changed"):
        crossval(changed, plan(tmp_path, METHOD), out, resume=True)
