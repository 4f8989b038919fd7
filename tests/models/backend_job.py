"""Run the public models and losses on the backend that KERAS_BACKEND names; print JSON.

    KERAS_BACKEND=jax python backend_job.py FOLDER

Weights are read from FOLDER, or written there where it has none.
"""

import json
import sys
from pathlib import Path

import keras
import numpy as np

import facepairs
from facepairs.models.losses import LOSSES as OBJECTIVES

LOSSES = {
    "difference": keras.losses.BinaryCrossentropy(from_logits=True),
    "siamese": facepairs.EmbeddingLoss(),
}


def main(folder: Path) -> dict[str, list]:
    """Return outputs before and after a step of training, and losses."""
    sides = [*np.random.default_rng(0).uniform(0, 255, (2, 6, 64, 64, 3)).astype("float32")]
    genuine = np.float32([1, 0, 1, 1, 0, 0])
    figures = {}
    for name, loss in LOSSES.items():
        model = facepairs.build_keras(name)
        weights = folder / f"{name}.weights.h5"
        if weights.exists():
            model.load_weights(weights)
        else:
            model.save_weights(weights)
        outputs = model.predict_on_batch(sides)
        model.compile(keras.optimizers.SGD(0.1), loss=loss)
        cost = model.train_on_batch(sides, genuine)
        figures[name] = [outputs, cost, model.predict_on_batch(sides)]
    for objective in OBJECTIVES:
        figures[objective] = [facepairs.EmbeddingLoss(objective)(genuine, outputs)]
    return {name: [np.asarray(part).tolist() for part in parts] for name, parts in figures.items()}


if __name__ == "__main__":
    results = main(Path(sys.argv[1]))
    assert keras.backend.backend() == "tensorflow" or "tensorflow" not in sys.modules
    print(json.dumps(results))
