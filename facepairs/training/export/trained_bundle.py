"""From trained weights to a bundle: export, then calibrate on held-out people as `verify` does.

Calibration scores come from the exported network and from Pillow's decoding, not from training's
TensorFlow, so that threshold and probability fit what a user will run. Large weights are rounded to
half precision first: the files halve, and Keras, ONNX and calibration speak of the same weights.
"""

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from facepairs.bundles.bundle import CARD, MODEL, NETWORK, Bundle, identity_lists, write_bundle
from facepairs.bundles.card import model_card
from facepairs.bundles.manifest import IDENTITIES
from facepairs.data.index import FaceIndex
from facepairs.data.pairs import PairList
from facepairs.evaluation.calibrate import calibrate
from facepairs.images.bombs import give_back_freed_memory
from facepairs.models.export.onnx import export_onnx, keras_bytes, round_weights
from facepairs.models.network import Network
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
    *,
    known: Iterable[str] = (),
    given: dict[str, Any] | None = None,
) -> Bundle:
    """Write the bundle; `people` are the person numbers trained on and calibrated on.

    `known` are hashes of people trained on elsewhere; `given` are fields of the manifest that
    stand in for calibrating here. The network's weights are rounded in place (`round_weights`).
    Raises NotEnough when the calibration pairs cannot carry a threshold.
    """
    give_back_freed_memory()  # the training's
    round_weights(network.head)
    model = network.inference_model()
    onnx, parity = export_onnx(model, network.output)
    hashes, identities = identity_lists(
        *([index.people[int(person)] for person in part] for part in people), known=(known, ())
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
    manifest |= given or _calibrated(manifest, files, index, calibration_pairs, progress)
    files[MODEL] = keras_bytes(model)
    files[CARD] = model_card(manifest).encode()
    return write_bundle(out, manifest, files)


def _calibrated(
    manifest: dict[str, Any],
    files: dict[str, bytes | Path],
    index: FaceIndex,
    pairs: PairList,
    progress: Tick | None,
) -> dict[str, Any]:
    """Score the pairs with the exported network, as `verify` would, and fit what they give."""
    give_back_freed_memory()  # the exporter's
    stand_ins = {"calibration": {"scale": 1.0, "offset": 0.0}, "threshold": 0.0, "thresholds": []}
    with tempfile.TemporaryDirectory() as folder:
        draft = write_bundle(Path(folder) / "draft", manifest | stand_ins, files)
        score = Verifier(draft).score_images(index.paths, pairs.left, pairs.right, progress)
    return calibrate(pairs.genuine, score)
