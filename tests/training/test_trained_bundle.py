"""The bundle of a training: the epoch that is kept, calibrated on faces as it learned from."""

import time
from dataclasses import replace

import numpy as np
import pytest

import facepairs
from facepairs.config import TrainConfig
from facepairs.training import trained_bundle
from facepairs.training.distribution import Workers
from facepairs.training.fit import build_and_compile
from facepairs.training.inputs.data import TrainingData
from facepairs.training.inputs.people import prepare
from facepairs.training.keras_models import read_keras
from facepairs.training.progress import Epoch, Progress
from facepairs.training.trained_bundle import write_trained_bundle

CONFIG = TrainConfig(
    model="siamese", batch_size=4, pairs_per_epoch=12, test_share=0.0, calibration_share=0.5
)


@pytest.mark.usefixtures("tiny_networks")
@pytest.mark.parametrize(
    ("align", "lists", "of_the_folder"),
    [("none", None, False), ("landmarks", None, True), ("landmarks", "lists", False)],
)
def test_a_bundle_has_the_best_epoch_and_the_faces_of_its_training(
    few_faces, tmp_path, monkeypatch, align, lists, of_the_folder
):
    config, asked, lines = CONFIG.replace(align=align).resolve(), [], []
    data = TrainingData.open(*prepare(few_faces, config), config, "files")
    data = replace(data, config=replace(config, lists=lists))
    network, _ = build_and_compile(data, Workers())
    progress = Progress(tmp_path, data.fingerprint(), True, time.perf_counter())
    progress.add(Epoch(1, 12.34, 0.9, 20.0), network)
    best = network.head.get_weights()
    network.head.set_weights([weight + 1 for weight in best])
    progress.add(Epoch(2, 23.456, 0.8, 40.0), network)
    fit_faces = trained_bundle.subject_faces
    monkeypatch.setattr(
        trained_bundle, "subject_faces", lambda *given: asked.append(given) or fit_faces(*given)
    )
    with facepairs.showing(log=lines.append):
        bundle = write_trained_bundle(data, network, progress, data.store)
    assert bool(asked) is of_the_folder
    assert lines == ["exporting epoch 1"]
    weights = read_keras(bundle).get_layer("face_tower").get_weights()
    for found, wanted in zip(weights, best, strict=True):
        is_large = wanted.size > 10_000
        assert np.array_equal(found, wanted.astype(np.float16) if is_large else wanted)
    facts = {
        "epoch": 1, "epochs": 2, "pairs": 24, "seconds": 23.5, "val_auc": 0.9,
        "protocol": "view1" if lists else "heldout",
    }  # fmt: skip
    assert bundle.raw["training"] | facts == bundle.raw["training"]
