"""View 2: its sets and pairs, and who is trained on and tested on in a fold."""

import re

import numpy as np
import pytest
from drawn.view2 import FOLDS, write_lists
from tiny.bundles import tiny_bundle

from facepairs.bundles.manifest import Identities
from facepairs.bundles.model import load_bundle
from facepairs.bundles.writer import rewrite_bundle
from facepairs.config import TrainConfig
from facepairs.data.index import FaceIndex
from facepairs.errors import BadConfig, BadData, BadRun
from facepairs.training.view2.protocol import check_unknown, prepare_view2, read_view2


@pytest.fixture(scope="module")
def lists(many_faces, tmp_path_factory):
    folder = tmp_path_factory.mktemp("view2") / "lists"
    write_lists(many_faces, folder)
    return folder


@pytest.fixture(scope="module")
def view(many_faces, lists):
    return prepare_view2(many_faces, lists, (), TrainConfig(model="fisher").resolve())[0]


def test_the_sets_partition_the_people(view):
    everyone = np.concatenate(view.sets)
    assert sum(len(view.pairs_of(fold)) for fold in range(1, FOLDS + 1)) == len(view.pairs)
    assert len(view.sets) == FOLDS
    assert sorted(everyone) == list(range(len(view.index.people)))
    assert view.select_folds(()) == (1, 2, 3, 4)
    assert view.select_folds((2, 3)) == (2, 3)
    assert view.select_folds((1, 4)) == (1, 4)
    for fold in (0, 5):
        with pytest.raises(BadConfig):
            view.select_folds((4, fold))


@pytest.mark.parametrize("fold", range(1, FOLDS + 1))
def test_nobody_is_both_trained_on_and_tested_on_in_a_fold(view, fold):
    split = view.split(fold, TrainConfig(test_share=0.0).resolve())
    parts = [set(part.tolist()) for part in vars(split).values()]
    assert sum(map(len, parts)) == len(set.union(*parts)) == len(view.index.people)
    assert parts[2] == set(view.sets[fold - 1].tolist())
    shown = view.index.person_of[view.pairs_of(fold).images()]
    assert set(shown.tolist()) <= parts[2]
    assert parts[1]


@pytest.mark.parametrize(
    ("known", "listed"), [(3, "3 of the 12 .*{}, {}, {}[)]"), (4, "4 of .*{}, {}, {}, …[)]")]
)
def test_of_people_whom_a_model_knows_three_are_named(view, tmp_path, known, listed):
    names = [view.index.people[int(person)] for person in view.people_of(2)]
    bundle = rewrite_bundle(
        tiny_bundle(tmp_path / "start"), tmp_path / "b", {}, Identities.of(names[:known], [])
    )
    with pytest.raises(BadRun, match=listed.format(*names)):
        check_unknown(load_bundle(bundle), view.index, view.people_of(2), 2)


def replace_text(path, before, after):
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1), encoding="utf-8")


def test_people_in_two_sets_and_pairs_of_another_set_are_refused(many_faces, tmp_path):
    index = FaceIndex.scan(many_faces)
    write_lists(many_faces, tmp_path)
    lines = (tmp_path / "people.txt").read_text(encoding="utf-8").splitlines()
    first, other = (line.split("\t")[0] for line in (lines[2], lines[-1]))
    replace_text(tmp_path / "people.txt", lines[2], lines[-1])
    with pytest.raises(BadData):
        read_view2(index, tmp_path)
    write_lists(many_faces, tmp_path)
    replace_text(tmp_path / "pairs.txt", f"{first}\t1\t2", f"{other}\t1\t2")
    with pytest.raises(BadData):
        read_view2(index, tmp_path)


def test_lists_have_two_folds_at_least(many_faces, tmp_path):
    write_lists(many_faces, tmp_path / "two", folds=2)
    assert read_view2(FaceIndex.scan(many_faces), tmp_path / "two").select_folds(()) == (1, 2)
    write_lists(many_faces, tmp_path, folds=1)
    with pytest.raises(BadData):
        read_view2(FaceIndex.scan(many_faces), tmp_path)


def test_images_that_cannot_be_read_are_named(tmp_path):
    from facepairs.data.synth.folder import write_synthetic_faces

    write_synthetic_faces(tmp_path / "faces", 24, 3, seed=1)
    write_lists(tmp_path / "faces", tmp_path)
    index = FaceIndex.scan(tmp_path / "faces")
    index.path(5).write_bytes(index.path(5).read_bytes()[:900])
    (tmp_path / "faces" / "notes.txt").write_text("about nobody")
    settings = TrainConfig(model="difference", align="none").resolve()

    def refused():
        with pytest.raises(BadData, match=re.escape(f"{index.path(5)}: ")) as caught:
            prepare_view2(tmp_path / "faces", tmp_path, (), settings)
        return re.findall(r"and (\d+) more", str(caught.value))

    assert refused() == []
    index.path(4).with_name("notes.txt").write_text("about a person")
    assert refused() == ["1"]
    index.path(5).unlink()
    with pytest.raises(BadData, match=r"people\.txt: no image "):
        prepare_view2(tmp_path / "faces", tmp_path, (), settings)
