"""What users write against the public interface: checked by mypy and pyright, and never run."""

from typing import assert_type

import facepairs


def train_and_evaluate() -> float:
    config = facepairs.TrainConfig(model="siamese-small", minutes=10)
    options = facepairs.TrainOptions(log=print, devices="auto")
    run = facepairs.train("photos", "run", config, options=options)
    assert_type(run, facepairs.Run)
    losses = [row["loss"] for row in run.history]
    evaluation = facepairs.evaluate([run.bundle, run.verifier(), "default"], "photos")
    assert_type(evaluation, facepairs.Evaluation)
    evaluation.plot("det").figure.savefig("det.png")
    return min(losses) + evaluation.summary.auc


def verify() -> bool:
    try:
        with facepairs.Verifier.load() as verifier:
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
    return calibrated.summary.operating_point.describe()
