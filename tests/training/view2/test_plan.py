"""Methods and their settings: options override the TOML file, and folds share their settings."""

import pytest

from facepairs.config import TrainConfig
from facepairs.errors import BadConfig, BadRun
from facepairs.training.view2.plan import (
    METHODS,
    check_data,
    keep_settings,
    make_plan,
    plan_of_run,
    read_config,
)

DIGESTS = {"index": "a" * 64, "people.txt": "b" * 64, "pairs.txt": "c" * 64}


def plan(tmp_path, text="", **options):
    file = None
    if text:
        file = tmp_path / "view2.toml"
        file.write_text(text)
    given = {"methods": None, "folds": None} | options
    return make_plan(**given, file=file)


def test_the_default_plan_is_the_default_model_on_all_folds(tmp_path):
    made = plan(tmp_path)
    assert list(made.configs) == [TrainConfig.model]
    assert made.folds == ()
    assert made.configs[TrainConfig.model].test_share == 0


def test_every_method_has_its_model_and_recipe(tmp_path):
    configs = plan(tmp_path, methods=",".join(METHODS)).configs
    assert list(configs) == list(METHODS)
    for model, config in configs.items():
        assert config == TrainConfig(model=model, test_share=0.0)


def test_options_override_the_settings_of_the_file(tmp_path):
    text = """
[siamese-conv]
[difference]
epochs = 7
minutes = 3
seed = 4
[siamese]
batch_size = 16
"""
    made = plan(tmp_path, text, folds="2,5")
    assert made.folds == (2, 5)
    assert list(made.configs) == ["siamese-conv", "difference", "siamese"]
    assert [config.seed for config in made.configs.values()] == [0, 4, 0]
    assert made.configs["difference"].epochs == 7
    made = plan(tmp_path, text, folds="1-3", methods="siamese, difference")
    assert made.folds == (1, 2, 3)
    assert made.configs["siamese"].batch_size == 16
    assert [config.minutes for config in made.configs.values()] == [None, 3]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("epochs = 3", "epochs"),
        ("[lenet]\nepochs = 3", "lenet"),
        ("[differenc]\nseed = 3", "did you mean 'difference'"),
        ("difference = 3", "difference"),
        ("[difference]\nmodel = 'siamese'", "model"),
        ("[siamese]\ninit = 'b'", "init"),
        ("[difference]\nskip_bad = true", "skip_bad"),
        ("[difference]\ncache = 'c'", "cache"),
        ("folds = 'x'", "folds"),
    ],
)
def test_mistakes_in_the_file_are_reported(tmp_path, text, named):
    with pytest.raises(BadConfig) as caught:
        plan(tmp_path, text)
    assert named in str(caught.value)


@pytest.mark.parametrize("methods", ["lenet", "siamese,lenet", ""])
def test_unknown_methods_are_refused(tmp_path, methods):
    with pytest.raises(BadConfig):
        plan(tmp_path, methods=methods or " ")


def test_a_run_is_continued_with_its_methods_and_their_settings(tmp_path):
    with pytest.raises(BadRun, match="nothing to resume"):
        plan_of_run(tmp_path)
    made = plan(tmp_path, "[difference]\nepochs = 7\n", methods="siamese-conv,difference")
    for name, config in made.configs.items():
        (tmp_path / "run" / name).mkdir(parents=True)
        keep_settings(tmp_path / "run" / name, config, DIGESTS)
    resumed = plan_of_run(tmp_path / "run", "2,4-5")
    assert resumed.configs == made.configs
    assert resumed.folds == (2, 4, 5)


def changed(folder, config, digests=DIGESTS):
    """The names that the refusal of changed settings begins with."""
    with pytest.raises(BadRun) as caught:
        keep_settings(folder, config, digests)
    return str(caught.value).partition(": ")[2].partition(" changed")[0]


def test_changed_settings_or_data_are_refused(tmp_path):
    folder, config = tmp_path / "difference", TrainConfig(model="difference", test_share=0.0)
    keep_settings(folder, config, DIGESTS)
    keep_settings(folder, config, DIGESTS)
    check_data(tmp_path, DIGESTS)
    assert read_config(folder) == config
    assert changed(folder, config.replace(epochs=9)) == "epochs"
    assert changed(folder, config.replace(align="none")) == "align"
    for key in ("index", "pairs.txt"):
        assert changed(folder, config, DIGESTS | {key: "d"}) == key
        with pytest.raises(BadRun):
            check_data(tmp_path, DIGESTS | {key: "d"})
    path = folder / "config.toml"
    path.write_text(path.read_text().replace("crop_px = 128", "crop_px = 64"))
    assert changed(folder, config) == "crop_px"  # another version's recipe
    for text in ("schema = ", "schema = 99"):
        path.write_text(text)
        with pytest.raises(BadRun):
            keep_settings(folder, config, DIGESTS)


def test_an_unknown_alignment_is_refused(tmp_path):
    keep_settings(tmp_path, TrainConfig(model="difference", test_share=0.0), DIGESTS)
    path = tmp_path / "config.toml"
    for value in ('"sideways"', "[1]"):
        path.write_text(path.read_text().replace('"landmarks"', value).replace('"sideways"', value))
        with pytest.raises(BadConfig):
            read_config(tmp_path)
