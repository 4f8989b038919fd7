"""Methods and their settings: options override the TOML file, and folds share their settings."""

import pytest

from facepairs.config import TrainConfig
from facepairs.errors import BadConfig, BadRun
from facepairs.evaluation.protocols import OUTSIDE_LABELS
from facepairs.training.run_folder.folder import check_place
from facepairs.training.view2.methods import (
    MARKS,
    METHODS,
    category_of,
    keep_settings,
    make_plan,
    plan_of_run,
)

DIGESTS = {"index": "a" * 64, "people.txt": "b" * 64, "pairs.txt": "c" * 64}


def plan(tmp_path, text="", **options):
    file = None
    if text:
        file = tmp_path / "view2.toml"
        file.write_text(text)
    given = {"methods": None, "folds": None, "minutes_per_fold": None} | options
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
seed = 4
folds = "2,5"
methods = ["siamese-conv", "difference"]
[difference]
epochs = 7
minutes = 3
[siamese]
batch_size = 16
"""
    made = plan(tmp_path, text)
    assert made.folds == (2, 5)
    assert list(made.configs) == ["siamese-conv", "difference"]
    assert [config.seed for config in made.configs.values()] == [4, 4]
    assert made.configs["difference"].epochs == 7
    made = plan(tmp_path, text, folds="1-3", methods="siamese, difference", minutes_per_fold=9.0)
    assert made.folds == (1, 2, 3)
    assert made.configs["siamese"].batch_size == 16
    assert [config.minutes for config in made.configs.values()] == [9.0, 9.0]
    assert plan(tmp_path, "folds = 3").folds == (3,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epochs = 3", r"view2\.toml: epochs belongs below a method, such as \["),
        ("[lenet]\nepochs = 3", "unknown method or setting 'lenet'"),
        ("[differenc]\nseed = 3", "did you mean 'difference'"),
        ("method = 'difference'", "did you mean 'methods'"),
        ("[difference]\nepoch = 3", r"view2\.toml \[difference\]: unknown setting 'epoch'"),
        ("[difference]\nseed = 3", "seed is decided by the method"),
        (
            "[difference]\nmodel = 'siamese'",
            "model is decided by the method",
        ),
        ("methods = ['siamese']\n[siamese]\ninit = 'b'", "init is decided by the method"),
        (
            "[difference]\nskip_bad = true",
            "skip_bad is decided by the method",
        ),
        ("[difference]\ncache = 'c'", "cache is decided by the method"),
        ("methods = 3", "methods is 3; use a list"),
        ("methods = ['lenet']", "'lenet'"),
        ("folds = 'x'", "folds is 'x'; use numbers"),
        ("seed = 'x'", "seed is 'x'; use a whole number"),
        ("seed = = 3", "not TOML"),
    ],
)
def test_mistakes_in_the_file_are_reported(tmp_path, text, message):
    with pytest.raises(BadConfig, match=message):
        plan(tmp_path, text)


def test_output_folders_that_cannot_be_used_are_refused(tmp_path):
    out, data = tmp_path / "run", tmp_path / "faces"
    check_place(out, data, resume=False, marks=MARKS)
    with pytest.raises(BadRun, match="nothing to resume"):
        check_place(out, data, resume=True, marks=MARKS)
    (out / "difference").mkdir(parents=True)
    check_place(out, data, resume=True, marks=MARKS)
    with pytest.raises(BadRun, match="continue it with --resume"):
        check_place(out, data, resume=False, marks=MARKS)
    with pytest.raises(BadConfig, match="lies in the folder of faces"):
        check_place(data / "run", data, resume=False, marks=MARKS)


def test_a_run_is_continued_with_its_methods_and_their_settings(tmp_path):
    with pytest.raises(BadRun, match="nothing to resume; leave out --resume"):
        plan_of_run(tmp_path)
    made = plan(tmp_path, "[difference]\nepochs = 7\n", methods="siamese-conv,difference")
    for name, config in made.configs.items():
        (tmp_path / "run" / name).mkdir(parents=True)
        keep_settings(tmp_path / "run" / name, name, config, DIGESTS)
    resumed = plan_of_run(tmp_path / "run", "2,4-5")
    assert resumed.configs == made.configs
    assert resumed.folds == (2, 4, 5)


def test_changed_settings_or_data_are_refused(tmp_path):
    config = TrainConfig(model="difference", test_share=0.0)
    keep_settings(tmp_path / "difference", "difference", config, DIGESTS)
    keep_settings(tmp_path / "difference", "difference", config, DIGESTS)
    with pytest.raises(BadRun, match="epochs was not given and is 9: all folds are trained alike"):
        keep_settings(tmp_path / "difference", "difference", config.replace(epochs=9), DIGESTS)
    for key, why in (("index", "the images have changed"), ("pairs.txt", r"pairs\.txt have")):
        with pytest.raises(BadRun, match=why):
            keep_settings(tmp_path / "difference", "difference", config, DIGESTS | {key: "d"})
    path = tmp_path / "difference" / "config.toml"
    path.write_text(path.read_text().replace("crop_px = 128", "crop_px = 64"))
    with pytest.raises(BadRun, match="crop_px was 64 and is 128"):  # another version's recipe
        keep_settings(tmp_path / "difference", "difference", config, DIGESTS)
    (tmp_path / "difference" / "config.toml").write_text("schema = ")
    with pytest.raises(BadRun, match="cannot be read"):
        keep_settings(tmp_path / "difference", "difference", config, DIGESTS)
    (tmp_path / "difference" / "config.toml").write_text("schema = 99")
    with pytest.raises(BadRun, match="another version"):
        keep_settings(tmp_path / "difference", "difference", config, DIGESTS)


def test_folds_of_a_method_share_an_alignment(tmp_path):
    config = TrainConfig(model="difference", test_share=0.0, align="none")
    keep_settings(tmp_path, "difference", config, DIGESTS)
    with pytest.raises(BadRun, match="align was 'none' and is 'landmarks'"):
        keep_settings(tmp_path, "difference", config.replace(align="landmarks"), DIGESTS)
    assert category_of(tmp_path).startswith("no outside data")


def test_a_method_that_starts_from_the_included_network_has_seen_outside_labels(tmp_path):
    keep_settings(tmp_path, "resnet", TrainConfig(model="resnet", test_share=0.0), DIGESTS)
    assert category_of(tmp_path) == OUTSIDE_LABELS


def test_an_unknown_alignment_has_no_category(tmp_path):
    keep_settings(tmp_path, "difference", TrainConfig(model="difference", test_share=0.0), DIGESTS)
    assert category_of(tmp_path) == "label-free outside data"
    path = tmp_path / "config.toml"
    for value in ('"sideways"', "[1]"):
        path.write_text(path.read_text().replace('"landmarks"', value).replace('"sideways"', value))
        with pytest.raises(BadConfig, match=r"config\.toml: align is .*landmarks"):
            category_of(tmp_path)
