"""Write a bundle from trained weights: export them, then calibrate on people not trained on.

Calibration scores come from the exported network and Pillow's decoding, as `verify` computes them,
so threshold and probability fit what a user runs. Large weights are first rounded to half
precision: the files shrink to half, and Keras, ONNX and calibration use the same weights.
"""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from facepairs.bundles.bundle import MODEL, NETWORK, Bundle
from facepairs.bundles.identities import Identities
from facepairs.bundles.writer import write_bundle
from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.evaluation.metrics.calibration import FittedCalibration
from facepairs.evaluation.pair_scores import add_impostors, score_pairs
from facepairs.evaluation.serialize import to_plain
from facepairs.images.crop_plan import CropPlan
from facepairs.models.export.convert import export_onnx, round_weights
from facepairs.models.export.keras_file import keras_bytes
from facepairs.models.network import Network
from facepairs.support.platform import return_freed_memory
from facepairs.support.progress import ProgressCallback, ignore_progress
from facepairs.verification.verifier import Verifier

UNCALIBRATED = {"calibration": {"scale": 1.0, "offset": 0.0}, "threshold": 0.0, "thresholds": []}
FitCalibration = Callable[[Bundle], FittedCalibration]


def write_trained_bundle(
    out: Path,
    network: Network,
    plan: CropPlan,
    identities: Identities,
    training: Mapping[str, Any],
    fit_calibration: FitCalibration,
) -> Bundle:
    """Export a network, calibrate it and write its bundle.

    Args:
        out: The bundle's folder.
        network: The trained network; its weights are rounded in place (`round_weights`).
        plan: How the network's images are cropped.
        identities: The people that the network was trained and calibrated on.
        training: Plain values about the training, for the manifest.
        fit_calibration: Fits the calibration with a draft of the bundle.

    Raises:
        NotEnough: The calibration pairs do not suffice.
        BadBundle: `out` is something else than a bundle.
        BadData: `out` cannot be written.
    """
    return_freed_memory()  # what training held
    round_weights(network.head)
    model = network.inference_model()
    onnx, parity = export_onnx(model, network.output)
    manifest: dict[str, Any] = {
        "kind": network.kind,
        "model": network.name,
        "framing": to_plain(plan.spec),
        "alignment": plan.alignment,
        "network": {
            "file": NETWORK,
            "inputs": list(network.inputs),
            "output": network.output,
            "image_px": network.image_px,
            "parity_with_keras": parity,
        },
        "training": dict(training),
    }
    return_freed_memory()  # what the export held
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "draft"
        draft = write_bundle(path, manifest | UNCALIBRATED, {NETWORK: onnx}, Identities.of((), ()))
        fitted = fit_calibration(draft)
    manifest |= fitted.manifest_fields()
    files: dict[str, bytes | Path] = {NETWORK: onnx, MODEL: keras_bytes(model)}
    return write_bundle(out, manifest, files, identities, fitted.errors)


def calibrate_on_pairs(
    index: FaceIndex, pairs: PairList, progress: ProgressCallback = ignore_progress
) -> FitCalibration:
    """Return a function that calibrates a bundle on pairs of people not trained on.

    Args:
        index: The images.
        pairs: The calibration pairs.
        progress: Counts the images scored.
    """

    def fit(bundle: Bundle) -> FittedCalibration:
        chosen = add_impostors(index, pairs) if bundle.kind == "embedding" else pairs
        scored = score_pairs(Verifier(bundle), index, chosen, progress)
        return scored.calibrate(f"{len(scored.names):,} people held out of training")

    return fit
