"""Train briefly on drawn faces with two devices or workers; save each worker's weights and losses.

    python shared_training.py FACES OUT MODEL

The workers of TF_CONFIG share the training, or else two logical CPUs do.
"""

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

from facepairs.config import TrainConfig
from facepairs.models.network import Network
from facepairs.training.cluster import read_cluster
from facepairs.training.fit import fit_people
from facepairs.training.inputs import data
from facepairs.training.inputs.people import prepare

if read_cluster().workers == 1:
    (processor,) = tf.config.list_physical_devices("CPU")
    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(processor, two)
faces, out, model = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
data.MAX_VALIDATION_PAIRS = 100
config = TrainConfig(
    model=model, align="none", epochs=2, batch_size=8, pairs_per_epoch=160, calibration_share=0.25
).resolve()


fit = Network.fit


def fit_and_save(model, *arguments, **options):
    """Fit, and save what this worker has learnt."""
    history = fit(model, *arguments, **options)
    weights = {f"v{i:03d}": np.asarray(v) for i, v in enumerate(model.weights)}
    path = out.with_name(f"worker-{read_cluster().worker}.npz")
    np.savez(path, loss=history.history["loss"][-1], **weights)
    return history


Network.fit = fit_and_save
run = fit_people(*prepare(faces, config), config, out, devices="all")
print(run.epochs, run.val_auc)
