"""What a training reads, where there are few people."""

import re

import numpy as np
import pytest

from facepairs.config import TrainConfig
from facepairs.data.split import PeopleSplit
from facepairs.training.inputs.data import limit_batch_size
from facepairs.training.inputs.people import FEW_PEOPLE, describe_few_people


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
    enough = PeopleSplit(nobody, np.arange(FEW_PEOPLE), nobody)
    assert describe_few_people(enough) == ""
