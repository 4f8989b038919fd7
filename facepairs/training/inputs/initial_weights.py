"""Start a training from the weights of a bundle.

The bundle decides the model, the crop and the image size. The new bundle also counts as trained on
the people whom the old one was trained on: their photos influenced its weights.
"""

from typing import TYPE_CHECKING

import msgspec

from facepairs.bundles.bundle import MODEL, Bundle
from facepairs.errors import BadBundle

if TYPE_CHECKING:  # importing it loads TensorFlow
    from facepairs.models.network import Network


class InitialBundle(msgspec.Struct, frozen=True):
    """The bundle whose weights a training started from.

    Attributes:
        known: Sorted hashes of the people it was trained on.
        model, created, network_sha256, licence: As in its manifest; the new bundle records them.
    """

    known: list[str]
    model: str
    created: str
    network_sha256: str
    licence: str | None


def load_initial_weights(bundle: Bundle, network: "Network") -> InitialBundle:
    """Set the head's weights from a bundle's Keras model; nothing in the bundle is executed.

    Args:
        bundle: The bundle, which `TrainConfig.resolve` has opened.
        network: The network to train.

    Raises:
        BadBundle: Keras refuses the file, or its weights do not fit the network.
    """
    from facepairs.training.keras_models import read_keras

    head = network.head.name
    try:
        weights = read_keras(bundle).get_layer(head).get_weights()
    except ValueError:
        raise BadBundle(
            f"{bundle.folder / MODEL}: has no layer {head}; give another bundle, or train "
            "without it",
            "init",
        ) from None
    if [w.shape for w in weights] != [w.shape for w in network.head.get_weights()]:
        raise BadBundle(
            f"{bundle.folder}: its network is not the {network.name} that this version builds; "
            "train without it, or with the version that made it",
            "init",
        )
    network.head.set_weights(weights)
    manifest = bundle.manifest
    return InitialBundle(
        known=sorted(bundle.identities.training),
        model=manifest.model,
        created=manifest.created,
        network_sha256=manifest.files[manifest.network.file].sha256,
        licence=manifest.weights_licence,
    )
