"""What networks compute with weights that are a function of their place, and how layers are set.

`WRITE_GOLDEN=1 pytest` writes the files anew; look at what changes in them.
"""

from pathlib import Path

import keras
import numpy as np
import pytest
from golden import assert_golden, figures_of

from facepairs.models.augment import RandomFace
from facepairs.models.build import MODELS, build_network
from facepairs.models.losses import LOSSES
from facepairs.models.metrics import PairMetrics

KEPT = Path(__file__).parent / "golden"
SETTINGS = ("rate", "momentum", "epsilon", "strength", "seed", "window_px", "scale", "offset")


def images(count: int, px: int) -> np.ndarray:
    """Return smooth coloured waves: uint8[count, px, px, 3]."""
    y, x = np.indices((px, px)) / px
    waves = [
        [np.sin((3 + k) * x + 5 * c) * np.cos((4 + c) * y - k) for c in range(3)]
        for k in range(count)
    ]
    return (127 + 120 * np.array(waves).transpose(0, 2, 3, 1)).astype(np.uint8)


def set_by_place(weights) -> None:
    for number, weight in enumerate(weights):
        wave = np.sin(0.7 * np.arange(np.prod(weight.shape)) + number).reshape(weight.shape)
        if len(weight.shape) > 1:
            weight.assign(wave * (2 / np.prod(weight.shape[:-1])) ** 0.5)
        elif "float" in str(weight.dtype):
            weight.assign(1 + 0.3 * wave if "variance" in weight.path else 0.2 * wave + 0.3)


@pytest.mark.parametrize("name", MODELS)
def test_a_network_computes_what_it_computed(name):
    network = build_network(name, 160, 150 if name == "resnet" else 96, 0.7, seed=3)
    set_by_place(network.head.weights)
    left, right = images(2, 160), images(2, 160)[::-1]
    network.compile(keras.optimizers.SGD(0.0), "mse")
    network.optimizer.iterations.assign(5)
    layers = [*network.head._flatten_layers(), *network.prepare.layers, network.augment]
    settings = sorted(
        {
            f"{type(layer).__name__} {key} {layer.get_config()[key]}"
            for layer in layers
            for key in SETTINGS
            if type(layer).get_config is not keras.Model.get_config and key in layer.get_config()
        }
    )
    figures = {
        "shapes": [list(weight.shape) for weight in network.head.weights],
        "settings": settings,
        "outputs": figures_of(network((left, right))),
        "exported": figures_of(
            network.inference_model()([left, right] if network.kind == "pair" else left)
        ),
        "trained": [figures_of(side) for side in network.seen_in_training((left, right))],
        "kept": [network.pairs.capacity, len(network.variables)],
    }
    assert_golden(KEPT / f"{name}.json", figures, rel=2e-3, least=1e-4)


def test_changes_of_images_are_the_same_for_a_seed():
    pictures = images(3, 40).astype(np.float32) / 255
    found = [figures_of(RandomFace(s, seed=4)(pictures, training=True)) for s in (0, 0.5, 1, 2)]
    assert_golden(KEPT / "augmented.json", found, rel=1e-3, least=1e-4)


def test_losses_and_metrics_of_fixed_embeddings():
    rows = np.random.default_rng(0).normal(size=(2, 100, 5)).astype(np.float32)
    rows[1] += 0.8 * rows[0]
    left, right = rows / np.linalg.norm(rows, axis=2, keepdims=True)
    genuine = (np.arange(100) % 3 > 0).astype(np.float32)
    found = {name: float(loss(left, right, genuine)) for name, loss in LOSSES.items()}
    metric, kept = PairMetrics((0.9, 0.5, 0.1), capacity=250), PairMetrics()
    for at in (0, 0, 1):
        for one in (metric, kept):
            one.update_state(genuine, np.stack([left, np.roll(right, at, axis=0)], axis=1))
    figures = [{name: float(x) for name, x in one.result().items()} for one in (metric, kept)]
    settings = [kept.get_config(), int(kept.seen)]
    assert_golden(KEPT / "losses.json", [found, settings, figures], rel=1e-4)
