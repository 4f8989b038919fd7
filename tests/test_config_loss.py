"""Which losses a configuration may name."""

from typing import get_args

import pytest

from facepairs.choices import Loss
from facepairs.config import TrainConfig
from facepairs.errors import BadConfig


@pytest.mark.parametrize("loss", get_args(Loss))
def test_a_cache_of_pairs_serves_losses_that_need_no_identities(loss):
    assert TrainConfig(loss=loss).loss == loss
    if loss == "arcface":
        with pytest.raises(BadConfig, match=loss):
            TrainConfig(model="siamese-conv", loss=loss, cache="folder")
    else:
        assert TrainConfig(model="siamese-conv", loss=loss, cache="folder").loss == loss


def test_a_loss_is_for_models_that_embed():
    assert TrainConfig(model="difference").loss == "in-batch"
    for loss in ("margin", "cosine"):
        with pytest.raises(BadConfig, match=f"^loss .*{loss}"):
            TrainConfig(model="difference", loss=loss)
