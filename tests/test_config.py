"""TrainConfig checks its values and is read back from its TOML."""

import dataclasses
import tomllib
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facepairs.choices import Loss
from facepairs.config import TEMPLATE, TrainConfig, load_config
from facepairs.errors import BadConfig
from facepairs.recipes import RECIPES
from facepairs.support.validation import validate


def test_there_are_few_settings_and_each_is_explained():
    names = [field.name for field in dataclasses.fields(TrainConfig)]
    assert len(names) <= 19
    blocks = TEMPLATE.read_text(encoding="utf-8").strip().split("\n\n")
    assert [block.splitlines()[-1] for block in blocks] == [f"{{{name}}}" for name in names]
    assert all(block.startswith("# ") for block in blocks)


@given(st.integers(0, 2**31 - 1), st.floats(0, 0.5), st.booleans())
def test_toml_round_trip(seed, share, skip):
    config = TrainConfig(model="siamese", seed=seed, validation_share=share, skip_bad=skip)
    assert validate(tomllib.loads(config.to_toml()), TrainConfig, "text") == config
    settings = config.resolve()
    assert validate(tomllib.loads(settings.to_toml()), TrainConfig, "text").resolve() == settings


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"model": "vgg"}, "model is 'vgg'; use one of resnet, fisher"),
        ({"epoch": 3}, "unknown setting 'epoch'; did you mean 'epochs'"),
        ({"epochs": "3"}, "epochs is '3'"),
        ({"minutes": 0}, "minutes is 0"),
        ({"learning_rate": 0}, "learning_rate is 0"),
        ({"batch_size": 0}, "batch_size is 0"),
    ],
)
def test_values_that_are_not_allowed_are_refused_with_the_reason(table, why):
    with pytest.raises(BadConfig, match=f"^file.toml: .*{why}"):
        validate(table, TrainConfig, "file.toml")


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"align": "none"}, "align is 'none', but the weights of the bundle default need"),
        ({"batch_size": 64, "pairs_per_epoch": 32}, "pairs_per_epoch is 32; use at least"),
        ({"model": "fisher", "pair_cache": "c"}, "does not train from a cache"),
        ({"model": "siamese", "pair_cache": "c"}, "use model difference"),
        ({"model": "fisher", "mixed_precision": True}, "leave mixed_precision out"),
        ({"calibration_share": 0.6, "test_share": 0.6}, "leave no people to train on"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(table, why):
    with pytest.raises(BadConfig, match=why):
        validate(table, TrainConfig).resolve()


def test_missing_and_malformed_files_are_named(tmp_path):
    with pytest.raises(BadConfig):
        load_config(tmp_path / "none.toml")
    path = tmp_path / "bad.toml"
    path.write_text("epochs = = 3")
    with pytest.raises(BadConfig):
        load_config(path)
    path.write_text("seed = 7\nminutes = 2\n")
    assert load_config(path) == TrainConfig(seed=7, minutes=2.0)


def settings(**given):
    return TrainConfig(**given).resolve()


def test_a_model_brings_its_recipe_for_settings_not_given():
    assert settings() == settings(model="resnet")
    assert settings(model="fisher").max_epochs == 20
    assert settings(model="difference").max_epochs == 40
    assert settings(model="siamese", batch_size=16).batch_size == 16
    base = TrainConfig(batch_size=32, model="difference")
    assert base.replace(model="fisher").resolve().batch_size == 32
    assert TrainConfig().replace(model="difference") == TrainConfig(model="difference")
    assert base.given() == {"batch_size": 32, "model": "difference"}
    assert settings().resolve() == settings()


def test_resnet_begins_from_the_included_bundle_and_is_gentle():
    config = settings()
    assert (config.init, config.align, config.model) == ("default", "landmarks", "resnet")
    assert config.start.manifest.model == "resnet"
    assert config.epochs == RECIPES["resnet"].fine_tuning.epochs
    assert settings(epochs=5).epochs == 5
    assert settings(minutes=3).max_epochs == config.epochs
    assert settings(model="fisher", minutes=3).max_epochs > 1_000
    assert config == settings(init="default")
    assert "init" not in config.portable()


@pytest.mark.parametrize("model", RECIPES)
def test_every_recipe_is_a_valid_configuration_of_a_network(model):
    config = settings(model=model)
    recipe = RECIPES[model]
    assert (config.batch_size, config.recipe) == (recipe.batch_size, recipe)
    assert (config.start is None) == (recipe.starts_from == "")
    assert validate(tomllib.loads(config.to_toml()), TrainConfig).resolve() == config


def test_lists_ask_for_view_1():
    assert settings().protocol == "heldout"
    assert settings(lists="lfw").protocol == "view1"


@pytest.mark.parametrize("loss", get_args(Loss))
def test_a_loss_is_for_models_that_embed(loss):
    assert settings(model="siamese", loss=loss).loss == loss
    if loss != TrainConfig.loss:
        with pytest.raises(BadConfig, match=loss):
            settings(model="difference", loss=loss)
