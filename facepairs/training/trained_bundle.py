"""Write the bundle of a training: export the weights that are kept, then calibrate on others.

Calibration scores come from the exported network and Pillow's decoding, as `verify` computes them,
so threshold and probability fit what a user runs. Large weights are first rounded to half
precision: the files shrink, and Keras, ONNX and calibration use the same weights.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

from facepairs.bundles.bundle import MODEL, NETWORK, Bundle
from facepairs.bundles.identities import NOBODY, Identities
from facepairs.bundles.measured import Measured
from facepairs.bundles.writer import write_bundle
from facepairs.evaluation.pair_scores import add_impostors, score_pairs
from facepairs.evaluation.serialize import to_plain
from facepairs.fisher.fit import fit_cohort
from facepairs.fisher.network import FisherNetwork
from facepairs.models.export.convert import export_onnx, round_weights
from facepairs.models.export.keras_file import keras_bytes
from facepairs.pipeline.dataset import Store
from facepairs.pipeline.memory import MemoryStore
from facepairs.support import console
from facepairs.support.platform import return_freed_memory
from facepairs.training.run_folder import BUNDLE
from facepairs.training.training import Training
from facepairs.verification.fitting_faces import FittingFaces, count_faces, fitting_faces
from facepairs.verification.verifier import Verifier


def write_trained_bundle(training: Training, source: Store) -> Bundle:
    """Export the weights of the kept epoch, calibrate the network and write RUN/bundle.

    Args:
        training: The finished training.
        source: What it was fed from: images, or the features of a frozen backbone.

    Raises:
        NotEnough: The calibration pairs do not suffice.
        BadBundle: There is something else than a bundle.
        BadData: The bundle cannot be written.
    """
    assert training.kept is not None
    kept = training.kept.epoch
    console.log(f"exporting epoch {kept}" if kept else "exporting the start")
    return_freed_memory()  # what training held
    data, network = training.data, training.network_for_export()
    if isinstance(network, FisherNetwork) and isinstance(source, MemoryStore):
        fit_cohort(network, source, data.index.first[data.split.training], data.config.seed)
    round_weights(network.head)
    model = network.inference_model()
    onnx, parity = export_onnx(model, network.output)
    manifest: dict[str, Any] = {
        "kind": network.kind,
        "model": network.name,
        "framing": to_plain(data.plan.spec),
        "alignment": data.plan.alignment,
        "network": {
            "file": NETWORK,
            "inputs": list(network.inputs),
            "output": network.output,
            "image_px": network.image_px,
            "parity_with_keras": parity,
        },
        "training": _record(training),
    }
    return_freed_memory()  # what the export held
    with tempfile.TemporaryDirectory() as folder:
        draft = write_bundle(Path(folder, "draft"), manifest, {NETWORK: onnx}, NOBODY)
        fitted = _calibrate(draft, training)
    files = {NETWORK: onnx, MODEL: keras_bytes(model)}
    out = training.run.path / BUNDLE
    return write_bundle(out, manifest, files, _identities(training), fitted)


def _calibrate(bundle: Bundle, training: Training) -> Measured:
    """Fit calibration and thresholds to pairs of people who are not trained on."""
    index, pairs = training.data.index, training.data.calibration_pairs()
    if bundle.kind == "embedding":
        pairs = add_impostors(index, pairs)
    faces = FittingFaces()
    if bundle.aligned and not training.data.config.lists:  # the faces that it was trained on
        faces = fitting_faces(index, count_faces(index, pairs.images()))
    scored = score_pairs(Verifier(bundle), index, pairs, faces=faces)
    return scored.calibrate(f"{len(scored.names):,} people held out of training")


def _record(training: Training) -> dict[str, Any]:
    """Return what the manifest tells of the training."""
    data, kept, initial = training.data, training.kept, training.position.initial
    assert kept is not None
    record = {
        "protocol": data.config.protocol,
        "seed": data.config.seed,
        "people": len(data.split.training),
        "images": len(data.images),
        "pairs": training.epochs_done * data.steps_per_epoch * data.config.batch_size,
        "epochs": training.epochs_done,
        "epoch": kept.epoch,
        "seconds": round(training.seconds, 1),
        "val_auc": kept.val_auc,
        "val_people": len(data.split.validation),
        "config": data.config.portable(),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    if initial:
        record["init"] = {k: v for k, v in to_plain(initial).items() if k != "known"}
    return record


def _identities(training: Training) -> Identities:
    """Return the people who influenced the weights or the calibration."""
    data, initial = training.data, training.position.initial
    trained, calibrating = (
        [data.index.people[int(person)] for person in part]
        for part in (data.split.fitted, data.split.calibration)
    )
    known = Identities(frozenset(initial.known if initial else ()), frozenset())
    return Identities.of(trained, calibrating).union(known)
