"""The study on one's own people, end to end on people who do not exist."""

import json
from pathlib import Path

import numpy as np
import pytest
from drawn.view2 import write_lists
from processes.script_runner import run_script
from tiny.bundles import manifest_of, pair_network

from facepairs.bundles.bundle import MODEL, NETWORK
from facepairs.bundles.identities import Identities
from facepairs.bundles.writer import write_bundle
from facepairs.data.index import FaceIndex
from facepairs.data.synth.folder import write_synthetic_faces
from facepairs.evaluation.metrics.calibration import calibrate
from facepairs.images.crop import CropSpec
from facepairs.images.crop_plan import CropPlan

SCRIPT = "scripts/studies/own_people.py"
TINY = "epochs = 1\npairs_per_epoch = 16\nbatch_size = 8\nlearning_rate = 1e-6\n"
CALIBRATION = calibrate([True] * 20 + [False] * 20, np.linspace(1, -1, 40))
FOLD_1 = Path("siamese/fold-01/bundle")


@pytest.fixture(scope="module")
def world(many_faces, tmp_path_factory):
    """48 people in two sets, and fold 1's bundle, which was trained on some people of set 2."""
    root = tmp_path_factory.mktemp("world")
    (root / "faces").symlink_to(many_faces)
    return with_lists_and_bundle(root)


@pytest.fixture(scope="module")
def larger_world(tmp_path_factory):
    """The same with 56 people, who have four photos each."""
    root = tmp_path_factory.mktemp("larger")
    write_synthetic_faces(root / "faces", people=56, images=4, seed=4, size_px=125)
    return with_lists_and_bundle(root)


def with_lists_and_bundle(root):
    write_lists(root / "faces", root / "lists", folds=2)
    files = {NETWORK: pair_network(), MODEL: b"keras"}
    write_bundle(root / "view2" / FOLD_1, manifest_of("pair"), files, identities(root))
    (root / "tiny.toml").write_text(TINY)
    return root


def identities(root):
    people = FaceIndex.scan(root / "faces").people
    training = [people[person] for person in range(1, 21, 2)]
    return Identities.of(training, [people[person] for person in range(21, 31, 2)])


@pytest.fixture(scope="module")
def trained_view2(larger_world):
    """The same with a real network, which training can start from."""
    from facepairs.models.build import build_network
    from facepairs.training.export.trained_bundle import write_trained_bundle

    network = build_network("difference", 112, 64, augment=0.0)
    for variable in network.head.variables:  # the more two faces differ, the lower the score
        variable.assign(np.abs(np.asarray(variable)) * (-1 if "score" in variable.path else 1))
    folder = larger_world / "trained-view2"
    plan = CropPlan(CropSpec(250, network.crop_px), np.zeros(0, np.bool_))
    write_trained_bundle(
        folder / FOLD_1, network, plan, identities(larger_world), {}, lambda draft: CALIBRATION
    )
    return folder


def call(world, out, *more, view2=None):
    return run_script(
        SCRIPT, world / "faces", "--lists", world / "lists", "--view2", view2 or world / "view2",
        "--out", out, "--config", world / "tiny.toml", "--people", "6,14", *more,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_row_is_measured_on_the_same_people_or_refused(larger_world, trained_view2, tmp_path):
    out = tmp_path / "study"
    done = call(larger_world, out, view2=trained_view2)
    assert done.returncode == 0, done.stderr
    study = json.loads((out / "result.json").read_text())
    rows = {(row["method"], row["people"]): row for row in study["rows"]}
    methods = ("calibrated", "fine-tuned", "from scratch")
    assert set(rows) == {("as it is", 0), *((m, n) for m in methods for n in (6, 14))}
    for method in methods[1:]:  # 6 people are all needed to calibrate
        assert "8 people or more are needed" in rows[method, 6]["refused"]
    measured = [row for row in rows.values() if "refused" not in row]
    assert len(measured) >= 4  # 16 pairs from scratch may well teach nothing
    assert {(row["genuine_pairs"], row["impostor_pairs"]) for row in measured} == {(84, 84)}
    start, calibrated = rows["as it is", 0], rows["calibrated", 14]
    assert calibrated["auc"] == start["auc"]  # the weights stay
    assert calibrated["threshold"] != start["threshold"]
    assert rows["fine-tuned", 14]["auc"] == pytest.approx(
        start["auc"], abs=0.02
    )  # it has those weights
    assert rows["fine-tuned", 14]["minutes"] > 0
    folders = [{p.name for p in (out / f"people-{n:03}").iterdir()} for n in (6, 14)]
    assert folders[0] < folders[1]
    assert study["test_people"] == 28 - 14
    assert "| fine-tuned | 14 |" in done.stdout
    assert "refused: " in done.stdout
    again = call(larger_world, out, view2=trained_view2)
    assert again.returncode == 0, again.stderr
    assert again.stdout == done.stdout
    assert "$ facepairs" not in again.stderr
    other = call(larger_world, out, "--seed", 1, view2=trained_view2)
    assert other.returncode == 2
    assert "the study there has another seed; choose another --out" in other.stderr


def test_a_bundle_trained_on_the_people_is_refused(world, tmp_path):
    fold2 = world / "view2" / "siamese" / "fold-02"
    if not fold2.exists():
        fold2.symlink_to(world / "view2" / "siamese" / "fold-01")
    done = call(world, tmp_path / "study", "--fold", 2)
    assert done.returncode == 2
    assert "was trained or calibrated on 15 of the" in done.stderr


def test_too_few_people_are_refused(world, tmp_path):
    done = call(world, tmp_path / "study", "--people", "100")
    assert done.returncode == 2
    assert "100 people with 2 photos or more are needed, the set has 24" in done.stderr
