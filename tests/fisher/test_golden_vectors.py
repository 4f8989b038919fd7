"""What the Fisher network's parts compute of fixed images.

`WRITE_GOLDEN=1 pytest` writes the file anew; look at what changes in it.
"""

from pathlib import Path

import numpy as np
import pytest
from golden import assert_golden, figures_of

from facepairs.fisher import fit
from facepairs.fisher.descriptors import View, describe, margin, positions
from facepairs.fisher.embedding import CohortDimension
from facepairs.fisher.network import FisherNetwork
from facepairs.fisher.tower import BACKBONE, COHORT, FisherBackbone
from facepairs.pipeline.memory import MemoryStore, zeros

KEPT = Path(__file__).parent / "golden.json"


def images(count: int, px: int) -> np.ndarray:
    """Return waves of several lengths: float32[count, px, px, 3] in [0, 1]."""
    y, x = np.indices((px, px)) / px
    waves = [
        [np.sin((7 + 9 * k) * x + c + 20 * x * y) * np.cos((11 + 3 * c) * y - k) for c in range(3)]
        for k in range(count)
    ]
    return np.float32(0.5 + 0.4 * np.stack(waves).transpose(0, 2, 3, 1))


def test_parts_compute_what_they_computed(monkeypatch):
    monkeypatch.setattr(fit, "ITERATIONS", 3)
    found: dict[str, object] = {}
    for px in (96, 112, 128, 224):
        members = FisherBackbone(px, ["face", "eyes", "lines"])
        found[f"views {px}"] = [list(member.view) for member in members.members]
        found[f"places {px}"] = [
            figures_of(positions(px)),
            members.width,
            *(margin(px, step) for step in (1, 2, 3)),
        ]
    for px, view in ((96, View()), (112, View(lines=True)), (96, View(60, 6))):
        found[f"described {px} {view}"] = figures_of(describe(images(2, px), view))
    network = FisherNetwork(112, 96, members=("lines",), cohort=3)
    rows = zeros((30, 112, 112, 3), np.uint8)
    rows[:] = 255 * images(30, 112)
    store = MemoryStore(rows)
    everyone = np.arange(30)
    sample = fit._sample_images(np.arange(5_000), fit.SAMPLE_IMAGES, 0)
    found["sampled"] = [sample[::200].tolist(), len(sample)]
    monkeypatch.setattr(fit, "SAMPLE_IMAGES", 20)  # the fit is not to be good
    fit.fit_mixture(network, store, everyone[21:], seed=1)
    members = network.head.get_layer(BACKBONE).members
    found["mixture"] = [
        [figures_of(np.abs(weight)) for weight in one.get_weights()] for one in members
    ]
    features = fit.precompute(network, store, 30)
    found["features"] = figures_of(features.rows)
    fit.start_projection(network, features, everyone[3:], seed=1)
    fit.fit_cohort(network, features, everyone[3:], seed=1)
    embeddings = np.asarray(network.embeddings(features.rows))
    found["cosines"] = [figures_of(embeddings @ embeddings.T), embeddings.shape]
    found["cohort"] = figures_of(np.sort(network.head.get_layer(COHORT).cohort, axis=1))
    assert_golden(KEPT, found, rel=0.02, least=1e-3)


@pytest.mark.parametrize("size", [8, 40])
def test_the_nearest_sixteen_of_a_cohort_count(size):
    random = np.random.default_rng(0)
    rows, cohort = (random.normal(size=(n, 6)) for n in (30, size))
    rows, cohort = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (rows, cohort))
    layer = CohortDimension(size)
    layer.build(rows.shape)
    layer.set_cohort(cohort, rows.astype(np.float32))
    near = np.sort(rows @ cohort.T, axis=1)[:, -16:].mean(axis=1)
    last = 0.5 - 2 * (near - near.mean())
    wanted = np.column_stack([rows, last]) / np.sqrt(1 + last**2)[:, None]
    assert np.asarray(layer(rows.astype(np.float32))) == pytest.approx(wanted, abs=1e-5)
