"""A Keras file is only loaded if it holds nothing but what our models consist of."""

import io
import json
import warnings
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest
from tiny.bundles import score_pairs

from facepairs.bundles.bundle import MODEL, Bundle
from facepairs.bundles.model import load_bundle
from facepairs.bundles.scorer import open_scorer
from facepairs.bundles.writer import write_bundle
from facepairs.errors import BadBundle, BadConfig
from facepairs.models.build import MODELS, build_network
from facepairs.models.export.keras_file import (
    MAX_WEIGHT_BYTES,
    check_exportable,
    check_keras_file,
    keras_bytes,
)
from facepairs.recipes import RECIPES
from facepairs.training.keras_models import read_keras

GOLDEN = Path(__file__).parents[2] / "bundles" / "golden" / "pair"


@pytest.fixture(scope="module")
def plain():
    return (GOLDEN / MODEL).read_bytes()


def changed(data, **members):
    """Write a Keras file again with members changed, added or removed (None)."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in (found | members).items():
            if body is not None:
                archive.writestr(name, body)
    return out.getvalue()


@pytest.mark.parametrize("model", MODELS)
def test_all_our_models_pass_and_load_in_safe_mode_with_the_same_outputs(model, tmp_path):
    px, parts = RECIPES[model].image_size, {}
    if RECIPES[model].precomputes:
        px, parts = 96, {"members": ("eyes", "lines"), "cohort": 20}
    network = build_network(model, 112, px, augment=1.0, **parts)
    whole = network.inference_model()
    data = keras_bytes(whole)
    check_keras_file(data)
    (tmp_path / "model.keras").write_bytes(data)
    loaded = keras.saving.load_model(tmp_path / "model.keras", safe_mode=True)
    draw = np.random.default_rng(0).integers
    faces = [draw(0, 256, (2, 112, 112, 3), np.uint8) for _ in network.export_inputs]
    given = faces if len(faces) > 1 else faces[0]
    assert np.asarray(loaded(given)) == pytest.approx(np.asarray(whole(given)), abs=1e-6)


def test_a_golden_keras_file_returns_the_scores_of_its_network():
    bundle = Bundle.open(GOLDEN)
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 256, (2, 3, 112, 112, 3), np.uint8)
    scores = np.asarray(read_keras(bundle)([left, right])).reshape(-1)
    expected = score_pairs(open_scorer(load_bundle(bundle)), left, right)
    assert scores == pytest.approx(expected, abs=1e-4)


def lambda_model():
    face = keras.Input((112, 112, 3), name="image")
    return keras.Model(face, keras.layers.Lambda(lambda x: x + 1)(face))


PART = {"module": "keras.layers", "config": {}, "registered_name": None}


@pytest.mark.parametrize(
    "part",
    [
        PART | {"class_name": "Lambda"},
        PART | {"class_name": "TFSMLayer"},
        PART | {"class_name": "StringLookup", "config": {"vocabulary": "/etc/passwd"}},
        PART | {"class_name": "function", "config": "get_file", "module": "keras.utils"},
        PART | {"class_name": "Dense", "module": "os"},
        PART | {"class_name": "Dense", "module": "kerasx.layers"},
        PART | {"class_name": "Dense", "registered_name": "facepairs>FisherBackbone"},
        PART | {"class_name": "FisherBackbone", "module": "elsewhere"},
        PART | {"class_name": ["Dense"]},
        PART | {"class_name": "__lambda__", "config": {"value": "cos"}},
    ],
)
def test_parts_that_none_of_our_models_has_are_refused(plain, part):
    with zipfile.ZipFile(io.BytesIO(plain)) as archive:
        config = json.loads(archive.read("config.json"))
    config["config"]["layers"].append({"deep": [[part]]})
    with pytest.raises(ValueError, match="it has a part"):
        check_keras_file(changed(plain, **{"config.json": json.dumps(config)}))


def test_a_lambda_is_refused_before_keras_loads_it(tmp_path):
    golden = Bundle.open(GOLDEN)
    files = {name: golden.read(name) for name in golden.manifest.files}
    evil = write_bundle(tmp_path / "b", golden.raw, files | {MODEL: keras_bytes(lambda_model())})
    with pytest.raises(BadBundle):
        read_keras(evil)


def test_other_members_sizes_and_depths_are_refused(plain):
    check_keras_file(changed(plain))
    with zipfile.ZipFile(io.BytesIO(plain)) as archive:
        size = archive.getinfo("model.weights.h5").file_size
    declared = size.to_bytes(4, "little")
    huge = plain.replace(declared, (MAX_WEIGHT_BYTES + 1).to_bytes(4, "little"))
    for data, message in (
        (b"", "not a Keras file"),
        (plain[:-30], "not a Keras file"),
        (huge, "model.weights.h5 has 1,073,741,825 bytes"),
        (changed(plain, **{"assets/words.txt": b"x"}), "it holds"),
        (changed(plain, **{"config.json": None}), "it holds"),
        (changed(plain, **{"config.json": b"[" * 100_000}), "not a Keras file"),
        (changed(plain, **{"config.json": b"{"}), "Expecting"),
        (changed(plain, **{"config.json": b" " * (2 << 20)}), "config.json has"),
    ):
        with pytest.raises(ValueError, match=message):
            check_keras_file(data)


def test_a_file_with_a_member_twice_is_refused(plain):
    twice = io.BytesIO(plain)
    with zipfile.ZipFile(twice, "a") as archive, warnings.catch_warnings(action="ignore"):
        archive.writestr("config.json", archive.read("config.json"))
    with pytest.raises(ValueError, match="it holds"):
        check_keras_file(twice.getvalue())


@keras.saving.register_keras_serializable("own")
class OwnLayer(keras.layers.Layer):
    def call(self, x):
        return x


ADDED = {
    "one of our layers": keras.layers.Dense(3, activation="relu"),
    "mixed precision": keras.layers.Dense(3, dtype="mixed_bfloat16"),
    "arithmetic": lambda x: keras.ops.absolute(x) + 1,
    "another layer of Keras": keras.layers.LayerNormalization(),
    "an own layer": OwnLayer(),
    "a regularizer": keras.layers.Dense(3, kernel_regularizer="l2"),
    "a nested layer": keras.Sequential([keras.Input((3,)), keras.layers.PReLU()]),
}
ALLOWED = ("one of our layers", "mixed precision", "arithmetic")


@pytest.mark.parametrize("added", ADDED)
def test_a_model_is_refused_before_training_exactly_if_its_file_would_be(added):
    image = keras.Input((3,))
    model = keras.Model(image, ADDED[added](image))
    refusals = []
    for check in (lambda: check_exportable(model), lambda: check_keras_file(keras_bytes(model))):
        try:
            check()
            refusals.append(False)
        except (BadConfig, ValueError):
            refusals.append(True)
    assert refusals == [added not in ALLOWED] * 2
