"""`--init`: a training that starts from the weights of a bundle.

The bundle fixes what its weights were made for: model, crop and image size. Whom it knows, the new
bundle knows too: their photos shaped the weights or its calibration.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from facepairs.bundles.bundle import MODEL, Bundle
from facepairs.bundles.default import DEFAULT
from facepairs.errors import BadBundle, BadConfig
from facepairs.training.export.keras_model import read_keras

if TYPE_CHECKING:  # it loads TensorFlow, which settings do without
    from facepairs.models.network import Network


def starting_settings(given: dict[str, Any]) -> dict[str, Any]:
    """Complete the settings of a training with what the bundle named by `init` fixes.

    Raises BadBundle for a bundle that training cannot go on from, BadConfig where a setting given
    contradicts it.
    """
    init = given["init"]
    if not isinstance(init, str):
        return given  # refused with all other wrong types
    bundle = Bundle.open(init)
    image_size = bundle.raw["network"].get("image_px")
    if MODEL not in bundle.raw["files"] or type(image_size) is not int:
        raise BadBundle(
            f"{bundle.folder}: has no {MODEL} with an image size, so no training can start from "
            "it; give a bundle made by facepairs train"
        )
    fixed = {
        "model": bundle.model,
        "image_size": image_size,
        "frame_px": bundle.framing.frame_px,
        "crop_px": bundle.framing.crop_px,
    }
    for name, value in fixed.items():
        if given.get(name, value) != value:
            raise BadConfig(
                f"{name} is {given[name]!r}, and that of the bundle {init} is {value!r}: its "
                f"weights fit no other; leave {name} out, or train without --init"
            )
    place = init if init == DEFAULT else str(Path(init).resolve())  # to resume from anywhere
    return {**given, **fixed, "init": place}


def take_weights(init: str, network: "Network") -> dict[str, Any]:
    """Set the head's weights from a bundle's Keras model; give what the run must remember of it.

    That is ready for JSON: `known`, the hashes of the people whom the bundle knows, and what the
    manifest of the new bundle tells. Nothing of the bundle is executed (Keras's safe mode). Raises
    BadBundle for a file that Keras refuses or whose weights do not fit, BadConfig for a network
    without weights to train.
    """
    bundle = Bundle.open(init)
    if not network.trainable:
        raise BadConfig(f"model {network.name} has no weights to train; leave --init out")
    weights = _head_weights(bundle, network.head.name)
    if [w.shape for w in weights] != [w.shape for w in network.head.get_weights()]:
        raise BadBundle(
            f"{bundle.folder}: its network is another {network.name} than this version builds; "
            "train without --init, or with the version that made it"
        )
    network.head.set_weights(weights)
    training, calibration = bundle.identities
    return {
        "known": sorted(training | calibration),
        "model": bundle.model,
        "created": bundle.created,
        "network_sha256": bundle.raw["files"][bundle.network_file]["sha256"],
    }


def _head_weights(bundle: Bundle, head: str) -> list[Any]:
    model = read_keras(bundle)
    try:
        weights: list[Any] = model.get_layer(head).get_weights()
    except ValueError:
        raise BadBundle(
            f"{bundle.folder / MODEL}: has no {head}; give another bundle, or train without --init"
        ) from None
    return weights
