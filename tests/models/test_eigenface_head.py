"""The linear baseline: a projection that is not trained, the same in Keras and ONNX."""

import numpy as np
import onnxruntime
import pytest

from facepairs.models.build import build_network
from facepairs.models.eigenfaces import COMPONENTS, gray_pixels, set_components
from facepairs.models.export.onnx import export_onnx


def faces(count, px, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, px, px, 3), np.uint8)


@pytest.fixture
def network():
    return build_network("eigenfaces", 80, 64, augment=1.0)


def fitted(network, count):
    draw = np.random.default_rng(3)
    mean, components = draw.random(64 * 64), draw.normal(size=(count, 64 * 64))
    set_components(network.head, mean, components)
    return mean, components


def test_no_weight_is_trained_by_gradient_descent(network):
    assert network.kind == "embedding"
    assert not network.trainable
    assert network.head.trainable_variables == []
    assert network.head.variables


@pytest.mark.parametrize("count", [COMPONENTS, 5])
def test_it_projects_the_difference_from_the_mean(network, count):
    mean, components = fitted(network, count)
    images = faces(4, 64).astype("float32") / 255
    gray = np.asarray(gray_pixels(network.head)(images))
    assert gray == pytest.approx(images.mean(axis=3).reshape(4, -1) - 0.5, abs=1e-6)
    expected = (gray - mean) @ components.T
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    got = np.asarray(network.head(images))
    assert got.shape == (4, COMPONENTS)
    assert got[:, :count] == pytest.approx(expected, abs=1e-4)
    assert not got[:, count:].any()


def test_onnx_computes_what_keras_computes(network):
    fitted(network, 20)
    model = network.inference_model()
    data, difference = export_onnx(model, "embedding")
    assert difference < 1e-3
    images = faces(5, 80, 1)
    (got,) = onnxruntime.InferenceSession(data).run(["embedding"], {"image": images})
    assert got == pytest.approx(np.asarray(model(images)), abs=1e-3)
    assert np.linalg.norm(got, axis=1) == pytest.approx(1, abs=1e-5)
    scores = np.asarray(network.scores(np.concatenate([images, images[::-1]])))
    assert scores == pytest.approx((got * got[::-1]).sum(axis=1), abs=1e-3)
