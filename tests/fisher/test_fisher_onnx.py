"""The exported ONNX graph is lean and computes what the Keras layers compute."""

import numpy as np
import onnxruntime
import pytest

from facepairs.data.synth.faces import draw_face
from facepairs.fisher.network import FisherNetwork
from facepairs.fisher.tower import BACKBONE
from facepairs.models.export.convert import export_onnx


def network(crop_px, image_px):
    """A Fisher network with a mixture like a fitted one."""
    made = FisherNetwork(crop_px, image_px, members=("face",), cohort=0)
    (fisher,) = made.head.get_layer(BACKBONE).members
    random = np.random.default_rng(0)
    half, wide = fisher.gaussians // 2, fisher.components + 2
    fisher.set_mixture(
        np.linalg.qr(random.normal(size=(2, 64, fisher.components // 2)))[0] / np.sqrt(2),
        random.normal(size=fisher.components // 2) * 0.01,
        random.normal(size=(half, wide)) * 0.2,
        random.uniform(0.01, 0.04, (half, wide)),
        random.dirichlet(np.full(half, 5.0)) / 2,
    )
    return made.inference_model()


def faces(px):
    images = np.stack([draw_face(2, person, 0) for person in range(3)])
    margin = (images.shape[1] - px) // 2
    return np.ascontiguousarray(images[:, margin : margin + px, margin : margin + px])


@pytest.mark.parametrize(
    ("crop_px", "image_px"),
    [
        (100, 112),
        pytest.param(112, 96, marks=pytest.mark.slow),
        pytest.param(128, 128, marks=pytest.mark.slow),  # daily at 96 pixels, below
    ],
)
def test_onnx_computes_what_keras_computes(crop_px, image_px):
    model = network(crop_px, image_px)
    data, _ = export_onnx(model, "embedding")
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    images = faces(crop_px)
    (rows,) = session.run(["embedding"], {"image": images})
    assert rows.dtype == np.float32
    assert np.abs(rows - np.asarray(model(images))).max() < 2e-5
    (mirrored,) = session.run(["embedding"], {"image": images[:, :, ::-1].copy()})
    assert np.abs(rows - mirrored).max() < 2e-5
