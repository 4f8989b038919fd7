"""An exported network gives the outputs of the bundle's network, or nothing is written."""

import hashlib
import json
import tomllib

import msgspec
import numpy as np
import onnx
import pytest
from drawn.scenes import drawn_faces
from processes.command_line import facepairs, in_process
from tiny.bundles import (
    AMONG_LOOKALIKES,
    CROP_PX,
    NETWORK,
    cohort_of,
    embedding_network,
    error_table,
    score_pairs,
    tiny_bundle,
)

from facepairs.bundles.bundle import MODEL
from facepairs.bundles.manifest import Identities
from facepairs.bundles.model import load_bundle
from facepairs.bundles.rates import GroupingErrors
from facepairs.bundles.writer import rewrite_bundle, write_bundle
from facepairs.errors import BadBundle, BadConfig
from facepairs.evaluation.calibrate import calibrate
from facepairs.evaluation.evaluate import evaluate
from facepairs.photos.frame import TEMPLATE
from facepairs.training import export as export_module
from facepairs.training.export import export
from facepairs.verification.verifier import Verifier


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return tiny_bundle(tmp_path_factory.mktemp("tiny") / "bundle", "embedding")


def test_the_onnx_export_has_a_toml_file_that_verify_reads(tiny, tmp_path):
    out = tmp_path / "out"
    done = in_process("export", tiny.folder, "--out", out, "--json", check=0)
    printed = json.loads(done.stdout)
    assert printed["parity"]["max_difference"] == 0
    assert printed["out"] == str(out)
    written = json.loads((out / "export.json").read_text())
    assert written["schema"] == 1
    assert written == {k: v for k, v in printed.items() if k not in ("out", "bundle")}
    assert (out / NETWORK).read_bytes() == tiny.read(NETWORK)
    assert "uint8 [N, 16, 16, 3]" in (out / "README.md").read_text()
    assert (printed["alignment"], printed["template"]) == ("lfw-frame", None)
    photos = np.random.default_rng(0).integers(0, 256, (2, 40, 40, 3), dtype=np.uint8)
    own, same = (
        Verifier.load(path).verify(*photos) for path in (tiny.folder, out / "embedder.toml")
    )
    assert same.score == pytest.approx(own.score, abs=1e-6)
    assert (same.same, same.threshold) == (own.same, own.threshold)


def test_a_copy_of_a_network_in_8_bits_must_be_exact(tmp_path):
    network = onnx.load_from_string(embedding_network())
    network.doc_string = "QuantizeLinear"  # tells a network in 8 bits
    tiny = tiny_bundle(tmp_path / "tiny", "embedding")
    files = {name: tiny.read(name) for name in tiny.manifest.files}
    manifest = {k: v for k, v in tiny.raw.items() if k not in ("files", "schema")}
    files[NETWORK] = network.SerializeToString()
    bundle = write_bundle(tmp_path / "bundle", manifest, files).folder
    assert export(bundle, tmp_path / "out", "onnx").parity.tolerance == 1e-4


def test_an_exported_network_decides_as_its_bundle_with_the_same_errors(tmp_path):
    bundle = tiny_bundle(tmp_path / "bundle", **AMONG_LOOKALIKES)
    export(bundle.folder, tmp_path / "out", "onnx")
    same = Verifier.load(tmp_path / "out" / "embedder.toml")
    for wish in ({}, {"max_fmr": 0.01}, {"threshold": 0.6}):
        assert same.operating_point(**wish) == Verifier(load_bundle(bundle)).operating_point(**wish)
    assert same.model.profile.errors == bundle.profile.errors
    assert same.model.profile.calibration == bundle.profile.calibration
    network = tmp_path / "out" / NETWORK
    network.write_bytes(network.read_bytes() + b" ")
    with pytest.raises(BadBundle):
        Verifier.load(tmp_path / "out")


def test_an_exported_network_groups_with_the_same_cohort_and_errors(tmp_path):
    grouping = GroupingErrors(people_pairs=9, cuts=(0.1,), linked=(0.1,), mixed=(0.0,))
    errors = msgspec.structs.replace(error_table(), grouping=grouping)
    rows = np.random.default_rng(0).normal(size=(2, 24)).astype(np.float32)
    bundle = tiny_bundle(tmp_path / "bundle", "embedding", errors=errors, included=cohort_of(rows))
    export(bundle.folder, tmp_path / "out", "onnx")
    exported = Verifier.load(tmp_path / "out").model.profile
    assert exported.errors.grouping == grouping
    assert exported.cohort.tolist() == rows.tolist()


def test_an_exported_network_knows_its_training_people(tiny, faces, tmp_path):
    names = sorted(person.name for person in faces.iterdir())
    bundle = rewrite_bundle(tiny, tmp_path / "bundle", {}, Identities.of(names[:10], names[10:12]))
    export(bundle.folder, tmp_path / "out", "onnx")
    toml = tmp_path / "out" / "embedder.toml"
    evaluation = evaluate(toml, faces)
    assert (evaluation.summary.people, evaluation.record.protocol) == (12, "heldout")
    assert evaluation.measurements[0].pairs.origin.identities == bundle.identities
    calibrated = calibrate(toml, faces, tmp_path / "mine")
    assert calibrated.people_left_out == 10
    again = calibrate(tmp_path / "mine", faces, tmp_path / "again")  # still known
    assert (again.people, again.people_left_out) == (14, 10)
    shown = in_process("info", tmp_path / "again", check=0).stdout
    assert "10 people" in shown.split("trained on")[1].splitlines()[0]
    (tmp_path / "mine" / "identities.json").write_text("{}")
    refused = in_process("info", tmp_path / "mine", check=2)
    assert "identities.json: " in refused.stderr


def test_the_export_of_an_aligned_bundle_names_the_alignment(tmp_path):
    bundle = tiny_bundle(tmp_path / "bundle", "embedding", alignment="landmarks-5")
    out = tmp_path / "out"
    record = export(bundle.folder, out, "onnx")
    assert (record.alignment, record.template) == ("landmarks-5", TEMPLATE.tolist())
    assert json.loads((out / "export.json").read_text())["template"][0] == [102.6, 112.1]
    assert "`template` in export.json" in (out / "README.md").read_text()
    photos = drawn_faces(tmp_path / "drawn", people=1)
    own, same = (
        Verifier.load(path).verify(*photos) for path in (bundle.folder, out / "embedder.toml")
    )
    assert same.score == pytest.approx(own.score, abs=1e-6)
    assert same.left.box == own.left.box


@pytest.mark.parametrize("points", [None, [[4, 5], [11, 5], [8, 8], [5, 12], [10, 12]]])
def test_an_exported_toml_has_the_crop_the_data_and_the_licence(tmp_path, points):
    framing = {"frame_px": 32, "crop_px": 16, "points": points}
    manifest = {"alignment": "landmarks-5", "framing": framing, "licence": "CC0"}
    training = {"data": "photos of mine"}
    bundle = tiny_bundle(tmp_path / "bundle", "embedding", training=training, **manifest)
    export(bundle.folder, tmp_path / "out", "onnx")
    toml = tomllib.loads((tmp_path / "out" / "embedder.toml").read_text())
    cut = (
        {"align": "landmarks-5", "points": points}
        if points
        else {"align": "landmarks", "crop": 0.5}
    )
    digest = hashlib.sha256(bundle.read(NETWORK)).hexdigest()
    more = {"sha256": digest, "training_data": "photos of mine", "licence": "CC0"}
    assert toml | cut | more == toml
    assert ("crop" in toml) != ("points" in toml)


@pytest.mark.parametrize("kind", ["embedding", "pair"])
def test_the_code_in_the_readme_runs(tmp_path, monkeypatch, kind):
    bundle = tiny_bundle(tmp_path / "bundle", kind)
    export(bundle.folder, tmp_path / "out", "onnx")
    text = (tmp_path / "out" / "README.md").read_text()
    assert text.count(repr(bundle.profile.balanced_threshold)) == 1  # `verify` decides there
    for photo, name in zip(drawn_faces(tmp_path / "drawn", people=2), "ab", strict=False):
        photo.rename(tmp_path / "out" / f"{name}.jpg")
    monkeypatch.chdir(tmp_path / "out")
    code = text.partition("```python\n")[2].partition("```")[0]
    names: dict[str, np.ndarray] = {}
    exec(code.replace('"run/bundle"', '"../bundle"'), names)
    left, right = (
        Verifier(load_bundle(bundle)).detect("a.jpg")[0].crop[None],
        Verifier(load_bundle(bundle)).detect("b.jpg")[0].crop[None],
    )
    if kind == "embedding":
        expected = Verifier(load_bundle(bundle)).embed(["a.jpg", "b.jpg"])
    else:
        expected = score_pairs(Verifier(load_bundle(bundle)).scorer, left, right)
    assert names["result"].reshape(expected.shape) == pytest.approx(expected, abs=1e-6)


def test_only_an_earlier_export_is_replaced(tiny, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    export(tiny.folder, out, "onnx")
    export(tiny.folder, out, "onnx")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_text("mine")
    done = in_process("export", tiny.folder, "--out", tmp_path / "photos", "--json", check=2)
    assert json.loads(done.stdout)["error"]["kind"] == "config"
    assert (tmp_path / "photos" / "a.jpg").read_text() == "mine"
    with pytest.raises(BadConfig):
        export(tiny.folder, tmp_path / "new", "tflite")


def keras_bundle(out, name):
    """A bundle of a network with random weights."""
    from facepairs.models.build import build_network
    from facepairs.models.export.convert import export_onnx, round_weights
    from facepairs.models.export.keras_file import keras_bytes

    network = build_network(name, 112, 64, augment=0.0)
    round_weights(network.head)
    model = network.inference_model()
    onnx, _ = export_onnx(model, network.export_output)
    bundle = tiny_bundle(out, network.kind)
    manifest = {k: v for k, v in bundle.raw.items() if k not in ("files", "schema")}
    manifest |= {"framing": {"frame_px": 250, "crop_px": 112}}
    files = {file: bundle.read(file) for file in bundle.manifest.files}
    return write_bundle(out, manifest, files | {NETWORK: onnx, MODEL: keras_bytes(model)})


@pytest.fixture(scope="module")
def matrix_bundle(tmp_path_factory):
    """A bundle of the tiny embedding network, and a function that gives it a Keras model, too."""
    import keras
    from keras import layers

    from facepairs.models.export.keras_file import keras_bytes

    folder = tmp_path_factory.mktemp("matrix")
    tiny = tiny_bundle(folder / "tiny", "embedding")
    manifest = {k: v for k, v in tiny.raw.items() if k not in ("files", "schema")}
    files = {file: tiny.read(file) for file in tiny.manifest.files}
    shape = (CROP_PX, CROP_PX, 3)

    def write(name, seed):
        matrix = np.random.default_rng(seed).normal(size=(np.prod(shape), 24))
        image = keras.Input(shape, dtype="uint8", name="image")
        x = layers.Flatten()(layers.Rescaling(1.0)(image))
        x = layers.Dense(24, use_bias=False, name="matrix")(x)
        model = keras.Model(image, layers.UnitNormalization()(x))
        model.get_layer("matrix").set_weights([matrix])
        return write_bundle(folder / name, manifest, files | {MODEL: keras_bytes(model)}).folder

    return write


def test_litert_agrees_with_the_bundle_or_is_refused(matrix_bundle, tmp_path, monkeypatch):
    same, other = (matrix_bundle(name, seed) for seed, name in enumerate(("same", "other")))
    done = export(same, tmp_path / "lite", "litert")
    assert (done.file, done.output, done.inputs) == ("network.tflite", "output_0", ("image",))
    assert 0 <= done.parity.max_difference < 1e-5 < done.parity.tolerance == 1e-4
    plain = (tmp_path / "lite" / "network.tflite").read_bytes()
    assert plain[4:8] == b"TFL3"
    readme = (tmp_path / "lite" / "README.md").read_text()
    code = readme.partition("```python\n")[2].partition("```")[0]
    assert "network.tflite" in code
    with pytest.raises(BadBundle, match="nothing was written"):
        export(other, tmp_path / "refused", "litert")
    done = export(same, tmp_path / "lite", "litert-int8")
    assert 1e-5 < done.parity.max_difference < done.parity.tolerance == 0.1
    assert (tmp_path / "lite" / "network.tflite").stat().st_size < 0.5 * len(plain)
    monkeypatch.setattr(export_module, "INT8_TOLERANCE", done.parity.max_difference / 2)
    with pytest.raises(BadBundle, match="nothing was written"):
        export(same, tmp_path / "refused", "litert-int8")
    assert [path.name for path in tmp_path.iterdir()] == ["lite"]


@pytest.mark.slow
@pytest.mark.parametrize("format", ["litert", "litert-int8"])
@pytest.mark.parametrize("name", ["default", "siamese", "difference"])
def test_every_model_can_be_exported(tmp_path, name, format):
    bundle = name if name == "default" else keras_bundle(tmp_path / "bundle", name).folder
    words = ("export", bundle, "--out", tmp_path / "out", "--format", format, "--json")
    done = facepairs(*words, check=0)
    assert done.stderr == ""
    in_8_bits = name == "default" or format.endswith("int8")
    most = 0.1 if in_8_bits else 1e-5
    assert json.loads(done.stdout)["parity"]["max_difference"] < most
    assert (tmp_path / "out" / "network.tflite").stat().st_size > 10_000
