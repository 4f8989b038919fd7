"""What a Fisher network is fed, and where its training starts."""

import keras
import numpy as np

from facepairs.config import TrainConfig
from facepairs.fisher import fit
from facepairs.fisher.network import FisherNetwork
from facepairs.training.distribution import Workers
from facepairs.training.features import prepare_source
from facepairs.training.inputs.data import TrainingData
from facepairs.training.inputs.people import prepare
from facepairs.training.progress import Progress


def test_a_new_network_is_fitted_and_starts_at_principal_components(
    few_faces, tmp_path, monkeypatch
):
    monkeypatch.setattr(fit, "ITERATIONS", 1)
    monkeypatch.setattr(fit, "SAMPLE_IMAGES", 20)
    given = TrainConfig(model="fisher", align="none", test_share=0.0, calibration_share=0.5)
    config = given.resolve()
    data = TrainingData.open(*prepare(few_faces, config), config, "memory")
    networks = []
    for _ in range(2):
        keras.utils.set_random_seed(0)
        networks.append(FisherNetwork(128, 96, members=("eyes",), cohort=0))
    found, wanted = networks
    progress = Progress(tmp_path, "sources", True, 0.0)
    features = prepare_source(data, found, progress, Workers(), lambda: False)
    fit.fit_mixture(wanted, data.store, data.images, 0)
    rows = fit.precompute(wanted, data.store, len(data.index))
    fit.start_projection(wanted, rows, data.images, 0)
    assert np.array_equal(features.rows, rows.rows)
    weights = zip(found.head.get_weights(), wanted.head.get_weights(), strict=True)
    assert all(np.array_equal(one, other) for one, other in weights)
