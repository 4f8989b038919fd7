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
from facepairs.bundles.error_profile import ErrorProfile
from facepairs.bundles.manifest import NOBODY, Identities, StartingBundle
from facepairs.bundles.model import Model, load_bundle
from facepairs.bundles.writer import write_bundle
from facepairs.evaluation.pair_scores import refuse_unusable, score_pairs
from facepairs.evaluation.protocols import add_impostors_for
from facepairs.fisher.fit import fit_cohort
from facepairs.fisher.network import FisherNetwork
from facepairs.models.build import use_float32
from facepairs.models.export.convert import export_onnx, round_weights
from facepairs.models.export.keras_file import keras_bytes
from facepairs.models.network import Network
from facepairs.photos.subject_faces import MOST_PROMINENT
from facepairs.pipeline.dataset import Store
from facepairs.pipeline.memory import MemoryStore
from facepairs.support import console
from facepairs.support.platform import return_freed_memory
from facepairs.support.results import to_plain
from facepairs.training.inputs.data import TrainingData
from facepairs.training.progress import Progress
from facepairs.training.run_folder import BUNDLE
from facepairs.verification.verifier import Verifier, subject_faces


def write_trained_bundle(
    data: TrainingData, network: Network, progress: Progress, source: Store
) -> Bundle:
    """Export the epoch that is kept, calibrate it and write RUN/bundle.

    Args:
        data: The settings, people and images.
        network: The network, with the weights of the last epoch.
        progress: How it was trained.
        source: What it was fed from: images, or the features of a frozen backbone.

    Raises:
        NotEnough: The calibration pairs do not suffice.
        BadBundle: There is something else than a bundle.
        BadData: The bundle cannot be written.
    """
    assert progress.kept is not None
    kept = progress.kept.epoch
    progress.load(network, kept)
    use_float32(network.head)
    console.log(f"exporting epoch {kept}" if kept else "exporting the start")
    return_freed_memory()  # what training held
    if isinstance(network, FisherNetwork) and isinstance(source, MemoryStore):
        fit_cohort(network, source, data.index.first[data.split.training], data.config.seed)
    round_weights(network.head)
    model = network.inference_model()
    onnx, parity = export_onnx(model, network.export_output)
    manifest: dict[str, Any] = {
        "kind": network.kind,
        "model": network.name,
        "framing": to_plain(data.plan.spec),
        "alignment": data.plan.alignment,
        "network": {
            "file": NETWORK,
            "inputs": list(network.export_inputs),
            "output": network.export_output,
            "image_px": network.image_px,
            "parity_with_keras": parity,
        },
        "training": _record(data, progress),
    }
    return_freed_memory()  # what the export held
    with tempfile.TemporaryDirectory() as folder:
        draft = write_bundle(Path(folder, "draft"), manifest, {NETWORK: onnx}, NOBODY)
        fitted = _calibrate(load_bundle(draft), data)
    files = {NETWORK: onnx, MODEL: keras_bytes(model)}
    return write_bundle(progress.run / BUNDLE, manifest, files, _identities(data), fitted)


def _calibrate(model: Model, data: TrainingData) -> ErrorProfile:
    """Fit calibration and thresholds to pairs of people who are not trained on."""
    index = data.index
    pairs = add_impostors_for([model], index, data.calibration_pairs())
    faces = MOST_PROMINENT
    if model.aligned and not data.config.lists:  # the faces that it was trained on
        faces = subject_faces(index, pairs.images().tolist())
    verifier = Verifier(model)
    scored = score_pairs(verifier, index, pairs, faces)
    refuse_unusable(scored.failures, skip_bad=False)
    return scored.calibrate(verifier, f"{len(scored.people):,} people held out of training")


def _record(data: TrainingData, progress: Progress) -> dict[str, Any]:
    """Return the manifest's facts about the training."""
    kept, start = progress.kept, data.config.start
    assert kept is not None
    record = {
        "protocol": data.config.protocol,
        "seed": data.config.seed,
        "people": len(data.split.training),
        "images": len(data.images),
        "pairs": progress.epochs_done * data.steps_per_epoch * data.config.batch_size,
        "epochs": progress.epochs_done,
        "epoch": kept.epoch,
        "seconds": round(progress.seconds, 1),
        "val_auc": kept.val_auc,
        "val_people": len(data.split.validation),
        "config": data.config.portable(),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    if start:
        old = start.manifest
        origin = StartingBundle(
            old.created, old.files[old.network.file].sha256, old.weights_licence
        )
        record["init"] = {"model": old.model, **to_plain(origin)}
    return record


def _identities(data: TrainingData) -> Identities:
    """Return the people who influenced the weights, also those of the start, or the calibration."""
    start = data.config.start
    trained, calibrating = (
        [data.index.people[int(person)] for person in part]
        for part in (data.split.fitted, data.split.calibration)
    )
    known = Identities(start.identities.training if start else frozenset(), frozenset())
    return Identities.of(trained, calibrating).union(known)
