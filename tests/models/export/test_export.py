"""The exported files: half the size, the same outputs, independent of the batch."""

import logging

import keras
import numpy as np
import onnx
import onnxruntime
import pytest
from keras import layers

from facepairs.models.build import build_network
from facepairs.models.export.convert import LARGE, export_onnx, probe_crops, round_weights


def images(count, px, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, px, px, 3), np.uint8)


def network_with_statistics(name, px=64):
    """A network whose batch normalisations have statistics other than their initial ones."""
    network = build_network(name, 112, px, augment=0.0)
    rng = np.random.default_rng(1)
    for variable in network.head.variables:
        values = np.asarray(variable)
        if "moving_variance" in variable.path:
            variable.assign(rng.uniform(0.5, 2, values.shape))
        elif values.ndim == 1:
            variable.assign(values + rng.normal(0, 0.1, values.shape))
    return network


def test_only_large_weights_are_rounded_and_only_once():
    head = network_with_statistics("difference").head
    before = [np.asarray(v).copy() for v in head.variables]
    huge = int(np.argmax([v.size for v in before]))
    before[huge].flat[0] = 1e6  # float16 ends at 65,504
    head.variables[huge].assign(before[huge])
    round_weights(head)
    after = [np.asarray(v).copy() for v in head.variables]
    changed = 0
    for i, (old, new) in enumerate(zip(before, after, strict=True)):
        if i == huge or old.size < LARGE:
            assert np.array_equal(new, old)
        else:
            changed += 1
            assert np.array_equal(new, new.astype(np.float16).astype(np.float32))
            assert (np.abs(new - old) <= np.maximum(np.abs(old) * 2**-11, 1e-7)).all()
    assert changed >= 2
    round_weights(head)
    assert all(np.array_equal(v, w) for v, w in zip(head.variables, after, strict=True))


def exported(name):
    """A network, its file, and its file after the weights were rounded."""
    network = network_with_statistics(name)
    model = network.inference_model()
    plain, difference = export_onnx(model, network.export_output)
    assert difference < 1e-5
    round_weights(network.head)
    data, difference = export_onnx(model, network.export_output)
    assert difference < 1e-5
    return network, plain, data


@pytest.fixture(scope="module")
def siamese():
    return exported("siamese")


@pytest.mark.parametrize("name", ["siamese", "difference"])
def test_rounded_networks_are_smaller_with_the_same_outputs(name, siamese):
    network, plain, data = siamese if name == "siamese" else exported(name)
    model = network.inference_model()
    assert not half_tensors(plain)
    halves = half_tensors(data)
    assert min(int(np.prod(tensor.dims)) for tensor in halves) >= LARGE
    saved = sum(int(np.prod(tensor.dims)) for tensor in halves) * 2
    assert len(data) < len(plain) - 0.99 * saved
    assert len(data) < 0.85 * len(plain)  # weights joined with batch normalisation stay whole
    inputs = {name: images(5, 112, seed) for seed, name in enumerate(network.export_inputs)}
    session = onnxruntime.InferenceSession(data)
    assert [node.name for node in session.get_inputs()] == list(network.export_inputs)
    (got,) = session.run([network.export_output], inputs)
    expected = np.asarray(model(list(inputs.values()) if len(inputs) > 1 else inputs["image"]))
    assert got == pytest.approx(expected, abs=1e-4)


def half_tensors(data):
    graph = onnx.load_model_from_string(data).graph
    casts = {node.input[0] for node in graph.node if node.op_type == "Cast"}
    halves = [t for t in graph.initializer if t.data_type == onnx.TensorProto.FLOAT16]
    assert {tensor.name for tensor in halves} <= casts
    return halves


def test_tensors_of_16384_numbers_are_large_and_large_outputs_may_differ_by_more(capfd):
    image = keras.Input((16, 16, 3), dtype="uint8", name="image")
    x = layers.Rescaling(1e4)(layers.GlobalAveragePooling2D()(layers.Rescaling(1.0)(image)))
    for units in (128, 128, 127):
        x = layers.Dense(units, use_bias=False)(x)
    model = keras.Model(image, x)
    round_weights(model)
    data, difference = export_onnx(model, "embedding")
    assert [list(tensor.dims) for tensor in half_tensors(data)] == [[128, 128]]
    assert difference > 1e-3  # of some millions
    assert logging.root.manager.disable == logging.NOTSET
    assert capfd.readouterr() == ("", "")


def test_what_exports_are_compared_on_is_noise_and_faces():
    crops = probe_crops(("left", "right"), 24)
    left, right = crops.values()
    assert left.shape == (8, 24, 24, 3)
    assert np.array_equal(right, np.roll(left, 1, axis=0))
    assert np.percentile(left[:4], (0, 50, 100)) == pytest.approx([0, 127.5, 255], abs=5)
    assert len({crop.tobytes() for crop in left}) == 8


def test_a_network_that_depends_on_the_batch_is_refused():
    image = keras.Input((64, 64, 3), dtype="uint8", name="image")
    x = layers.GlobalAveragePooling2D()(layers.Rescaling(1 / 255)(image))
    x = layers.BatchNormalization()(x, training=True)
    with pytest.raises(RuntimeError):
        export_onnx(keras.Model(image, x), "embedding")
