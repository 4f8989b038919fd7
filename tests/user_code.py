"""What users write against the public interface: checked by mypy, and never run."""

from collections.abc import Sequence
from typing import assert_type

import keras
import numpy as np
import numpy.typing as npt

import facepairs


def train_and_evaluate() -> float:
    config = facepairs.TrainConfig(model="fisher", minutes=10)
    with facepairs.showing(log=print):
        run = facepairs.train("photos", "run", config, devices="auto", store="files")
    assert_type(run, facepairs.Run)
    losses = [loss for row in run.history if (loss := row["loss"]) is not None]
    evaluation = facepairs.evaluate([run.bundle, "default"], "photos")
    assert_type(evaluation, facepairs.Evaluation)
    evaluation.figures()["det"].figure.savefig("det.png")
    return min(losses) + evaluation.summary.auc.value


def verify() -> bool:
    try:
        verifier = facepairs.Verifier.load()
        verdict = verifier.verify("a.jpg", b"", max_fmr=0.01)
        faces = [face.describe() for face in verifier.detect("group.jpg")]
    except (facepairs.NoFace, facepairs.BadImage) as error:
        print(error.kind)
        return False
    assert_type(verdict, facepairs.Verdict)
    assert_type(verdict.same, bool | None)
    return bool(verdict) and len(faces) > 0


def calibrate() -> str:
    calibrated = facepairs.calibrate("default", "photos", "mine", skip_bad=True)
    return calibrated.operating_point.describe()


def fit_with_keras() -> dict[str, float]:
    training = facepairs.pairs_dataset("photos", batch_size=32, store="memory")
    model = facepairs.build_keras("siamese", image_size=64)
    model.compile("adam", facepairs.EmbeddingLoss("margin"), metrics=[facepairs.PairMetrics()])
    held_out = facepairs.pairs_dataset("photos", split="validation")
    stop = keras.callbacks.EarlyStopping(monitor="val_pair_auc", mode="max")
    model.fit(training, validation_data=held_out, epochs=3, callbacks=[stop])
    facepairs.train("photos", callbacks=[stop])
    facepairs.load_keras("run/bundle").summary()
    figures: dict[str, float] = model.evaluate(held_out, return_dict=True)
    return figures


def measure_by_view2() -> str:
    config = facepairs.TrainConfig(model="difference")
    report = facepairs.crossval("lfw/lfw-deepfunneled", "lfw", "view2", config, folds=[1, 2])
    return str(report.summary)


def embed(photos: Sequence[str]) -> npt.NDArray[np.float32]:
    rows = facepairs.Verifier.load().embed(photos)
    assert_type(rows, npt.NDArray[np.float32])
    return rows


def name_people() -> list[str]:
    with facepairs.Gallery("known.gallery", write=True) as gallery:
        gallery.add("Ann", ["ann1.jpg", "ann2.jpg"])
        found = gallery.identify("photo.jpg")
    return [candidate.name for candidate in found.candidates]
