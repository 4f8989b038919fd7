"""Fine-tuning: weights, settings and known people come from the bundle it starts from."""

import dataclasses
import json
import tomllib

import numpy as np
import pytest

from facepairs.bundles.bundle import MODEL, Bundle, identity_hash, identity_lists, write_bundle
from facepairs.config import FINE_TUNING, RECIPES, TrainConfig, from_table
from facepairs.data.index import FaceIndex
from facepairs.data.sampler import distinct_pairs
from facepairs.errors import BadBundle, BadConfig, BadData, NotEnough
from facepairs.models.network import build_network
from facepairs.training.export.trained_bundle import finish_bundle
from facepairs.training.inputs.initial_weights import starting_settings, take_weights
from facepairs.training.inputs.people import choose_people
from facepairs.training.run_folder.folder import resolve_config

PX = 64
KNOWN = [3, 5, 10]  # the split alone would hold some of them out
GIVEN = {"calibration": {"scale": 10.0, "offset": -9.0}, "threshold": 0.9, "thresholds": []}


def people_of(index, people):
    return [index.people[int(person)] for person in people]


@pytest.fixture(scope="module")
def index(faces):
    return FaceIndex.scan(faces)


@pytest.fixture(scope="module")
def start(index, tmp_path_factory):
    """A bundle of random weights that knows 3 people of `faces`, and 1 of nowhere."""
    network = build_network("siamese-conv", 112, PX, augment=0.0)
    for variable in network.head.variables:
        if "moving_mean" in variable.path:
            variable.assign(np.random.default_rng(3).normal(0, 0.1, variable.shape))
    out = tmp_path_factory.mktemp("start") / "bundle"
    pairs = distinct_pairs(index.first, range(24), 200, 0)
    people = (np.array(KNOWN[:2]), np.array(KNOWN[2:]))
    known = [identity_hash("Somebody Else")]
    finish_bundle(out, network, index, pairs, 250, people, {}, known=known, given=GIVEN)
    return out, network


def test_the_weights_are_the_bundles(start):
    folder, network = start
    other = build_network("siamese-conv", 112, PX, augment=0.0)
    told = take_weights(str(folder), other)
    for mine, theirs in zip(other.head.get_weights(), network.head.get_weights(), strict=True):
        assert np.array_equal(mine, theirs)
    assert len(told["known"]) == 4
    assert told["network_sha256"] == Bundle.open(folder).raw["files"]["network.onnx"]["sha256"]
    assert json.loads(json.dumps(told)) == told


def test_whom_the_bundle_knows_the_new_one_knows(start, index, tmp_path):
    folder, network = start
    known = take_weights(str(folder), network)["known"]
    pairs = distinct_pairs(index.first, range(24), 200, 0)
    new = finish_bundle(
        tmp_path / "new", network, index, pairs, 250, (np.array([6]), np.array([7])), {},
        known=known, given=GIVEN,
    )  # fmt: skip
    names = [*people_of(index, [*KNOWN, 6]), "Somebody Else"]
    assert new.trained_on(names).all()
    assert new.knows(people_of(index, [7])).all()
    assert not new.trained_on(people_of(index, [7])).any()
    assert not new.knows(people_of(index, [8])).any()


def test_settings_come_from_the_bundle(start):
    folder = str(start[0])
    settings = starting_settings({"init": folder, "seed": 3})
    assert settings == {
        "init": folder, "seed": 3, "model": "siamese-conv", "image_size": PX, "frame_px": 250,
        "crop_px": 112,
    }  # fmt: skip
    assert starting_settings({"init": folder, "crop_px": 112})["crop_px"] == 112


@pytest.mark.parametrize(
    ("name", "value"),
    [("model", "difference"), ("image_size", 80), ("crop_px", 128), ("frame_px", 200)],
)
def test_what_contradicts_the_bundle_is_refused(start, name, value):
    with pytest.raises(BadConfig, match=f"{name} is {value!r}, and that of the bundle .* leave"):
        starting_settings({"init": str(start[0]), name: value})


def test_a_gentler_recipe_unless_told_otherwise(start, tmp_path):
    folder = str(start[0])
    config = resolve_config({"init": folder}, None, tmp_path, False)
    for name, value in FINE_TUNING.items():
        assert getattr(config, name) == value
    assert config.batch_size == RECIPES["siamese-conv"]["batch_size"]
    file = tmp_path / "file.toml"
    file.write_text(f'init = "{folder}"\nepochs = 9\n')
    config = resolve_config({"learning_rate": 1e-5}, file, tmp_path, False)
    assert (config.epochs, config.learning_rate) == (9, 1e-5)
    assert from_table(tomllib.loads(config.to_toml()), "text") == config
    assert TrainConfig().replace(init=folder).learning_rate == FINE_TUNING["learning_rate"]
    assert TrainConfig(epochs=7).replace(init=folder).epochs == 7


def test_a_resumed_run_keeps_its_init(start, tmp_path):
    config = resolve_config({"init": str(start[0])}, None, tmp_path, False)
    (tmp_path / "config.toml").write_text(config.to_toml())
    assert resolve_config({}, None, tmp_path, True) == config
    with pytest.raises(BadConfig, match="keeps the run's own init"):
        resolve_config({"init": "default"}, None, tmp_path, True)


def spoiled(start, out, **files):
    bundle = Bundle.open(start[0])
    manifest = {k: v for k, v in bundle.raw.items() if k not in ("files", "schema")}
    old = {name: bundle.read(name) for name in bundle.raw["files"]}
    return write_bundle(out, manifest, {n: v for n, v in {**old, **files}.items() if v}).folder


def test_bundles_that_nothing_can_start_from(start, tmp_path):
    with pytest.raises(BadBundle, match="no such folder"):
        starting_settings({"init": str(tmp_path / "none")})
    bare = spoiled(start, tmp_path / "bare", **{MODEL: None})
    with pytest.raises(BadBundle, match=r"has no model\.keras"):
        starting_settings({"init": str(bare)})
    foreign = spoiled(start, tmp_path / "foreign", **{MODEL: b"PK not a model"})
    with pytest.raises(BadBundle, match=r"model\.keras: cannot be read \(no Keras file"):
        take_weights(str(foreign), build_network("siamese-conv", 112, PX, 0.0))
    with pytest.raises(BadBundle, match="has no difference_head"):
        take_weights(str(start[0]), build_network("difference", 112, PX, 0.0))
    with pytest.raises(BadBundle, match="another siamese-conv than this version builds"):
        take_weights(str(start[0]), build_network("siamese-conv", 112, 96, 0.0))
    with pytest.raises(BadConfig, match="pixels has no weights to train"):
        take_weights(str(start[0]), build_network("pixels", 112, PX, 0.0))
    with pytest.raises(BadConfig, match="init is 3; use a text"):
        resolve_config({"init": 3}, None, tmp_path, False)


def test_known_people_are_trained_on_and_nothing_else(start, index):
    config = dataclasses.replace(TrainConfig(), init=str(start[0]), calibration_share=0.25)
    split = choose_people(index, config)
    assert set(KNOWN) <= set(split.training.tolist())
    parts = [set(part.tolist()) for part in vars(split).values()]
    assert set.union(*parts) == set(range(24))
    assert sum(map(len, parts)) == 24
    without = choose_people(index, dataclasses.replace(config, init=""))
    assert set(KNOWN) & {*without.calibration.tolist(), *without.test.tolist()}


def test_nobody_new_is_refused_with_numbers(start, index, tmp_path):
    data, entry = identity_lists(index.people, [])
    bundle = Bundle.open(start[0])
    manifest = {k: v for k, v in bundle.raw.items() if k not in ("files", "schema")}
    files = {name: bundle.read(name) for name in bundle.raw["files"]}
    write_bundle(
        tmp_path / "all", manifest | {"identities": entry}, files | {"identities.json": data}
    )
    config = dataclasses.replace(TrainConfig(), init=str(tmp_path / "all"))
    with pytest.raises(NotEnough, match=r"0 people .*; 24 more are known to the bundle"):
        choose_people(index, config)


def test_a_damaged_model_is_found(start, tmp_path):
    folder = spoiled(start, tmp_path / "copy")
    path = folder / MODEL
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises((BadBundle, BadData), match="SHA-256"):
        take_weights(str(folder), build_network("siamese-conv", 112, PX, 0.0))
