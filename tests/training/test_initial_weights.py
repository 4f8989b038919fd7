"""Fine-tuning takes weights, settings and known people from the bundle that it starts from."""

import dataclasses
import tomllib

import numpy as np
import pytest
from tiny.bundles import write_bundle_of

from facepairs.bundles.bundle import MODEL, Bundle
from facepairs.bundles.manifest import Identities
from facepairs.bundles.writer import rewrite_bundle, write_bundle
from facepairs.config import TrainConfig, read_table
from facepairs.data.index import FaceIndex
from facepairs.errors import BadBundle, BadConfig, NotEnough
from facepairs.fisher.network import FisherNetwork
from facepairs.models.build import build_network
from facepairs.models.export.keras_file import keras_bytes
from facepairs.recipes import RECIPES
from facepairs.support.validation import validate
from facepairs.training.inputs.people import choose_people
from facepairs.training.keras_models import load_initial_weights
from facepairs.training.run_folder import settings_of_run

PX = 64
KNOWN = [3, 5, 10]  # the split alone would hold out some of them


def names_of(index, people):
    return [index.people[int(person)] for person in people]


@pytest.fixture(scope="module")
def index(faces):
    return FaceIndex.scan(faces)


@pytest.fixture(scope="module")
def start(index, tmp_path_factory):
    """A bundle of random weights, trained on 2 people of `faces` and 1 other, calibrated on 1."""
    network = build_network("siamese", 128, PX, augment=0.0)
    for variable in network.head.variables:
        if "moving_mean" in variable.path:
            variable.assign(np.random.default_rng(3).normal(0, 0.1, variable.shape))
    out = tmp_path_factory.mktemp("start") / "bundle"
    training = [*names_of(index, KNOWN[:2]), "Somebody Else"]
    write_bundle_of(out, network, Identities.of(training, names_of(index, KNOWN[2:])))
    return out, network


def test_initial_weights_are_those_of_the_bundle(start):
    other = build_network("siamese", 128, PX, augment=0.0)
    load_initial_weights(Bundle.open(start[0]), other)
    for one, saved in zip(other.head.get_weights(), start[1].head.get_weights(), strict=True):
        assert np.array_equal(one, saved)


def test_the_bundle_decides_model_and_crop_and_is_opened(start):
    config = TrainConfig(init=str(start[0]), seed=3).resolve()
    assert (config.model, config.align, config.seed) == ("siamese", "none", 3)
    assert config.init == str(start[0])
    assert config.start.folder == start[0]


@pytest.mark.parametrize(("name", "value"), [("model", "difference"), ("align", "landmarks")])
def test_settings_that_contradict_the_bundle_are_refused(start, name, value):
    with pytest.raises(
        BadConfig, match=f"{name} is {value!r}, but the weights of the bundle .* leave"
    ):
        TrainConfig(init=str(start[0]), **{name: value}).resolve()


def test_fine_tuning_settings_are_defaults_that_options_override(start, tmp_path):
    folder = str(start[0])
    config = TrainConfig(init=folder).resolve()
    tuning = RECIPES["siamese"].fine_tuning
    assert (config.epochs, config.learning_rate) == (tuning.epochs, tuning.learning_rate)
    assert config.batch_size == RECIPES["siamese"].batch_size
    file = tmp_path / "file.toml"
    file.write_text(f'init = "{folder}"\nepochs = 9\n')
    config = validate({**read_table(file), "learning_rate": 1e-5}, TrainConfig).resolve()
    assert (config.epochs, config.learning_rate) == (9, 1e-5)
    assert validate(tomllib.loads(config.to_toml()), TrainConfig, "text").resolve() == config
    assert TrainConfig(epochs=7).replace(init=folder).resolve().epochs == 7


def test_a_resumed_training_keeps_its_init(start, tmp_path):
    config = settings_of_run(TrainConfig(init=str(start[0])), tmp_path, False)
    (tmp_path / "config.toml").write_text(config.to_toml())
    assert settings_of_run(TrainConfig(), tmp_path, True) == config
    with pytest.raises(BadConfig, match="init"):
        settings_of_run(TrainConfig(init="default"), tmp_path, True)


def changed_copy(start, out, changes=None, **files):
    bundle = Bundle.open(start[0])
    manifest = {k: v for k, v in bundle.raw.items() if k not in ("files", "schema")}
    manifest |= changes or {}
    old = {name: bundle.read(name) for name in bundle.manifest.files}
    return write_bundle(out, manifest, {n: v for n, v in {**old, **files}.items() if v}).folder


def test_bundles_without_usable_weights_are_refused(start, tmp_path):
    other = changed_copy(start, tmp_path / "other", {"framing": {"frame_px": 250, "crop_px": 96}})
    bare = changed_copy(start, tmp_path / "bare", **{MODEL: None})
    for folder in (tmp_path / "none", other, bare):
        with pytest.raises(BadBundle, match=str(folder)):
            TrainConfig(init=str(folder)).resolve()
    foreign = changed_copy(start, tmp_path / "foreign", **{MODEL: b"PK not a model"})
    for folder, network in (
        (foreign, start[1]),
        (start[0], build_network("difference", 128, PX, 0.0)),
        (start[0], build_network("siamese", 128, 96, 0.0)),
    ):
        with pytest.raises(BadBundle, match=str(folder)):
            load_initial_weights(Bundle.open(folder), network)


def test_people_the_start_was_trained_on_are_only_trained_on(start, index):
    config = TrainConfig(init=str(start[0]), calibration_share=0.25).resolve()
    split = choose_people(index, config)
    assert set(KNOWN[:2]) <= set(split.training.tolist())
    parts = [set(part.tolist()) for part in vars(split).values()]
    assert set.union(*parts) == set(range(24))
    assert sum(map(len, parts)) == 24
    without = choose_people(index, dataclasses.replace(config, start=None))
    assert set(KNOWN[:2]) & {*without.calibration.tolist(), *without.test.tolist()}


def test_a_folder_without_new_people_is_refused_with_the_numbers(start, index, tmp_path):
    bundle = Bundle.open(start[0])
    rewrite_bundle(bundle, tmp_path / "all", {}, Identities.of(index.people, []))
    config = TrainConfig(init=str(tmp_path / "all")).resolve()
    with pytest.raises(NotEnough):
        choose_people(index, config)


def test_weights_of_other_members_are_refused(start, tmp_path):
    network = FisherNetwork(96, 96, members=("eyes", "lines"))
    described = {**Bundle.open(start[0]).raw["network"], "image_px": 96}
    changes = {"model": "fisher", "network": described}
    out = tmp_path / "bundle"
    changed_copy(start, out, changes, **{MODEL: keras_bytes(network.inference_model())})
    same = FisherNetwork(96, 96, members=("eyes", "lines"))
    load_initial_weights(Bundle.open(out), same)
    assert np.array_equal(same.head.get_weights()[-1], network.head.get_weights()[-1])
    other = FisherNetwork(96, 96, members=("eyes",))
    with pytest.raises(BadBundle):
        load_initial_weights(Bundle.open(out), other)
