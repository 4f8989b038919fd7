"""Which losses a configuration may name, and which settings each one reads."""

from typing import get_args

import pytest

from facepairs.choices import Singletons
from facepairs.config import LOSSES, from_table
from facepairs.errors import BadConfig


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_accepts_its_own_settings_only(loss):
    values = {"temperature": 0.05, "margin": 0.4, "singletons": "negatives"}
    for name, value in values.items():
        table = {"model": "siamese", "loss": loss, name: value}
        if name in LOSSES[loss]:
            assert from_table(table, "t").loss_settings[name] == value
        else:
            with pytest.raises(BadConfig, match=f"loss {loss} has no {name}"):
                from_table(table, "t")


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"model": "siamese", "loss": "cosine"}, "loss is 'cosine'; use one of in-batch, super"),
        ({"model": "difference", "loss": "margin"}, "loss margin is for model siamese .*not diff"),
        ({"model": "difference", "temperature": 0.2}, "temperature 0.2 is for .*not dif"),
        ({"model": "siamese", "temperature": 0.0}, "temperature is 0.0; use a number from 0.001"),
        ({"model": "siamese", "margin": -1.0}, "margin is -1"),
        ({"model": "siamese", "margin": float("nan")}, "margin is nan"),
        (
            {"model": "siamese", "loss": "cosface", "singletons": "no"},
            ", ".join(get_args(Singletons)),
        ),
    ],
)
def test_values_that_are_not_allowed_are_refused_with_the_reason(table, why):
    with pytest.raises(BadConfig, match=why):
        from_table(table, "file.toml")


@pytest.mark.parametrize("loss", LOSSES)
def test_a_cache_of_pairs_serves_losses_that_need_no_identities(loss):
    table = {"model": "siamese-conv", "loss": loss, "store": "tfrecord", "cache": "folder"}
    if loss in ("cosface", "arcface"):
        with pytest.raises(BadConfig, match="--store files or memory"):
            from_table(table, "t")
    else:
        assert from_table(table, "t").loss == loss


def test_other_models_keep_the_default_loss():
    assert from_table({"model": "difference"}, "t").loss == "in-batch"
    changed = from_table({"model": "siamese", "loss": "cosface"}, "t").replace(margin=0.3)
    assert (changed.loss, changed.margin) == ("cosface", 0.3)
