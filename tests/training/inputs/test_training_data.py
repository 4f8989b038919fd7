"""What a training reads, where there are few people."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from facepairs.config import TrainConfig
from facepairs.data.index import FaceIndex
from facepairs.data.split import PeopleSplit
from facepairs.errors import NotEnough
from facepairs.photos.crop import CropPlan
from facepairs.training.inputs.data import TrainingData, limit_batch_size
from facepairs.training.inputs.people import describe_few_people, prepare


@pytest.mark.parametrize(
    ("settings", "people", "batch_size", "steps"),
    [
        ({"model": "fisher"}, 500, 256, 26),
        ({"model": "fisher"}, 20, 20, 26),
        ({"model": "fisher", "pairs_per_epoch": 1_000}, 20, 20, 50),
        ({"model": "siamese"}, 20, 20, 640),
        ({"model": "difference"}, 20, 128, 100),
    ],
)
def test_a_batch_shrinks_to_the_people_and_a_fisher_epoch_keeps_its_steps(
    settings, people, batch_size, steps
):
    nobody = np.array([], np.int64)
    split = PeopleSplit(np.arange(people), nobody, nobody, nobody)
    config = limit_batch_size(TrainConfig(**settings).resolve(), split)
    assert config.batch_size == batch_size
    assert config.pairs_per_epoch // config.batch_size == steps


@pytest.mark.parametrize(("calibration", "test", "told"), [(0, 0, 0), (1, 0, 1), (9, 1, 2)])
def test_few_people_are_told_of_from_one_on(calibration, test, told):
    nobody = np.array([], np.int64)
    split = PeopleSplit(nobody, np.arange(calibration), np.arange(test))
    assert len(re.findall(r"\d \w+ people", describe_few_people(split))) == told
    for count, is_told in ((29, True), (30, False)):
        assert bool(describe_few_people(PeopleSplit(nobody, np.arange(count), nobody))) is is_told


def test_4000_pairs_calibrate_and_2000_choose_the_epoch():
    people, photos = 1_000, 5
    person_of = np.repeat(np.arange(people, dtype=np.int32), photos)
    names = [f"p{person:04}" for person in range(people)]
    files, first = [""] * len(person_of), photos * np.arange(people + 1)
    index = FaceIndex(Path("none"), names, files, person_of, first, np.zeros(len(person_of)))
    nobody, parts = np.array([], np.int64), np.split(np.arange(people), 4)
    config = TrainConfig(model="siamese").resolve()
    for validation in (parts[3], nobody):
        split = PeopleSplit(*parts[:3], validation)
        data = TrainingData(config, index, None, split, None)
        for pairs, count, of in (
            (data.calibration_pairs(), 4_000, parts[1]),
            (data.validation_pairs(), 2_000, validation if len(validation) else parts[1]),
        ):
            assert (len(pairs), int(pairs.genuine.sum())) == (count, count // 2)
            assert set(person_of[pairs.images()].tolist()) <= set(of.tolist())


def test_the_fingerprint_is_that_of_the_start_too(faces, tmp_path):
    config = TrainConfig(model="resnet").resolve()
    index = FaceIndex.scan(faces)
    plan = CropPlan(config.recipe.crop_spec, np.zeros(len(index), bool))
    people = np.split(np.arange(24), 4)
    data = TrainingData(
        config, replace(index, content=index.sizes), plan, PeopleSplit(*people), None
    )
    same = replace(data, config=replace(config, seed=3))
    other = replace(data, config=replace(config, start=None))
    assert data.fingerprint() == same.fingerprint() != other.fingerprint()


def test_too_few_people_are_told_of_before_photos_are_read(tmp_path):
    for name in "AB":
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.jpg").write_bytes(b"no photo")
    with pytest.raises(NotEnough):
        prepare(tmp_path, TrainConfig().resolve())
