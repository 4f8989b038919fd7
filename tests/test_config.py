"""TrainConfig checks its values and is read back from its TOML."""

import dataclasses
import tomllib
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facepairs.choices import Loss
from facepairs.config import TEMPLATE, TrainConfig, from_table, load_config
from facepairs.errors import BadConfig
from facepairs.recipes import RECIPES


def test_there_are_few_settings_and_each_is_explained():
    names = [field.name for field in dataclasses.fields(TrainConfig)]
    assert len(names) <= 18
    blocks = TEMPLATE.read_text(encoding="utf-8").strip().split("\n\n")
    assert [block.splitlines()[-1] for block in blocks] == [f"{{{name}}}" for name in names]
    assert all(block.startswith("# ") for block in blocks)


@given(st.integers(0, 2**31 - 1), st.floats(0, 0.5), st.integers(6, 14), st.booleans())
def test_toml_round_trip(seed, share, image_size, skip):
    size = 16 * image_size
    config = TrainConfig(
        model="siamese",
        seed=seed,
        validation_share=share,
        image_size=size,
        skip_bad=skip,
    )
    assert from_table(tomllib.loads(config.to_toml()), "text") == config


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"model": "vgg"}, "model is 'vgg'; use one of resnet, fisher"),
        ({"image_size": 100}, "image_size is 100; resnet needs 150"),
        ({"align": "none"}, "resnet needs aligned faces"),
        ({"epoch": 3}, "unknown setting 'epoch'; did you mean 'epochs'"),
        ({"epochs": "3"}, "epochs is '3'"),
        ({"minutes": 0}, "minutes is 0"),
        ({"learning_rate": 0}, "learning_rate is 0"),
        ({"batch_size": 64, "pairs_per_epoch": 32}, "pairs_per_epoch is 32; use at least"),
        ({"image_size": 63}, "image_size is 63"),
        (
            {"model": "fisher", "image_size": 100},
            "image_size is 100; fisher needs a multiple of 16 from 96 on",
        ),
        ({"model": "fisher", "cache": "c"}, "does not train from a cache"),
        ({"calibration_share": 0.6, "test_share": 0.6}, "leave nobody to train on"),
    ],
)
def test_values_that_are_not_allowed_are_refused_with_the_reason(table, why):
    with pytest.raises(BadConfig, match=f"^file.toml: .*{why}"):
        from_table(table, "file.toml")


def test_missing_and_malformed_files_are_named(tmp_path):
    with pytest.raises(BadConfig):
        load_config(tmp_path / "none.toml")
    path = tmp_path / "bad.toml"
    path.write_text("epochs = = 3")
    with pytest.raises(BadConfig):
        load_config(path)
    path.write_text("seed = 7\nminutes = 2\n")
    assert load_config(path) == TrainConfig(seed=7, minutes=2.0)


def test_a_model_brings_its_recipe_for_settings_not_given():
    assert from_table({}, "t") == TrainConfig() == from_table({"model": "resnet"}, "t")
    assert from_table({"model": "fisher"}, "t").max_epochs == 20
    assert from_table({"model": "difference"}, "t").max_epochs == 40
    assert from_table({"model": "siamese", "batch_size": 16}, "t").batch_size == 16
    base = from_table({"batch_size": 32, "model": "difference"}, "t")
    assert base.replace(model="fisher").batch_size == 32
    assert TrainConfig().replace(model="difference") == TrainConfig(model="difference")
    fisher = from_table({"model": "difference"}, "t").replace(model="fisher")
    assert fisher == TrainConfig(model="fisher")


def test_a_run_from_a_bundle_is_gentler():
    fisher = TrainConfig(model="fisher")
    config = fisher.replace(init="mine")
    assert (config.epochs, config.pairs_per_epoch, config.learning_rate) == (2, 3_200, 1e-4)
    assert TrainConfig(init="mine", epochs=5).epochs == 5
    assert config.replace(init="") == fisher
    assert TrainConfig(model="fisher", minutes=3).max_epochs > 1_000
    assert TrainConfig() == TrainConfig(init="default")  # resnet always begins from a bundle


@pytest.mark.parametrize("model", RECIPES)
def test_every_recipe_is_a_valid_configuration_of_a_network(model):
    config = TrainConfig(model=model)
    assert from_table(tomllib.loads(config.to_toml())) == config
    changed = config.changes()
    assert changed.pop("model", TrainConfig.model) == model
    assert changed == ({"init": "default"} if model == "resnet" else {})


def test_lists_ask_for_view_1():
    assert TrainConfig().protocol == "heldout"
    assert TrainConfig(lists="lfw").protocol == "view1"


@pytest.mark.parametrize("loss", get_args(Loss))
def test_a_loss_is_for_models_that_embed(loss):
    embeds = {"model": "siamese", "loss": loss}
    assert from_table(embeds).loss == loss
    assert from_table(embeds | {"cache": "folder"}).loss == loss
    if loss != TrainConfig.loss:
        with pytest.raises(BadConfig, match=loss):
            from_table({"model": "difference", "loss": loss})
