"""From trained weights to a bundle: export, then calibrate on held-out people as `verify` does.

Calibration scores come from the exported network and from Pillow's decoding, not from training's
TensorFlow, so that threshold and probability fit what a user will run.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.evaluation.calibrate import calibrate
from facepairs.models.export import export_onnx, keras_bytes
from facepairs.models.network import Network
from facepairs.training.card import model_card
from facepairs.verification.bundle import CARD, MODEL, NETWORK, Bundle, identity_lists, write_bundle
from facepairs.verification.manifest import IDENTITIES
from facepairs.verification.verifier import Verifier

Tick = Callable[[int, int], None]


def finish_bundle(
    out: Path,
    network: Network,
    index: FaceIndex,
    calibration_pairs: PairList,
    frame_px: int,
    people: tuple[np.ndarray, np.ndarray],
    training: dict[str, Any],
    progress: Tick | None = None,
) -> Bundle:
    """Write the bundle; `people` are the person numbers trained on and calibrated on.

    Raises NotEnough when the calibration pairs cannot carry a threshold.
    """
    model = network.inference_model()
    onnx, parity = export_onnx(model, network.output)
    hashes, identities = identity_lists(
        *([index.people[int(person)] for person in part] for part in people)
    )
    manifest: dict[str, Any] = {
        "kind": network.kind,
        "model": network.name,
        "framing": {"frame_px": frame_px, "crop_px": network.crop_px},
        "network": {
            "file": NETWORK,
            "inputs": list(network.inputs),
            "output": network.output,
            "image_px": network.image_px,
            "parity_with_keras": parity,
        },
        "training": training,
        "identities": identities,
    }
    files: dict[str, bytes | Path] = {NETWORK: onnx, IDENTITIES: hashes}
    with tempfile.TemporaryDirectory() as folder:
        draft = write_bundle(Path(folder) / "draft", manifest | _uncalibrated(), files)
        score = Verifier(draft).score_images(
            [index.path(i) for i in range(len(index))],
            calibration_pairs.left,
            calibration_pairs.right,
            progress,
        )
    manifest |= calibrate(calibration_pairs.genuine, score)
    files[MODEL] = keras_bytes(model)
    files[CARD] = model_card(manifest).encode()
    return write_bundle(out, manifest, files)


def _uncalibrated() -> dict[str, Any]:
    """Stand-ins for the draft that only computes scores."""
    return {"calibration": {"scale": 1.0, "offset": 0.0}, "threshold": 0.0, "thresholds": []}
