"""What a training reads, where there are few people."""

import numpy as np
import pytest

from facepairs.config import TrainConfig
from facepairs.data.split import PeopleSplit
from facepairs.training.inputs.data import limit_batch_size


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
