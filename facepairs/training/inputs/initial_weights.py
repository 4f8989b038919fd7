"""Start a training from the weights of a bundle.

The bundle decides the model, the crop and the image size. The new bundle also counts as trained on
the people whom the old one was trained on: their photos influenced its weights.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from facepairs.bundles.bundle import DEFAULT, MODEL, Bundle
from facepairs.errors import BadBundle, BadConfig
from facepairs.recipes import RECIPES

if TYPE_CHECKING:  # importing it loads TensorFlow
    from facepairs.models.network import Network


def settings_from_bundle(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add what the bundle named by `init`, if any, decides: model, image size and alignment.

    Args:
        settings: Fields of TrainConfig that were given.

    Raises:
        BadBundle: Training cannot start from the bundle.
        BadConfig: A given setting contradicts the bundle.
    """
    init = settings.get("init")
    if not init or not isinstance(init, str):
        return settings  # TrainConfig reports wrong types
    bundle = Bundle.open(init)
    image_size = bundle.network.image_px
    if MODEL not in bundle.files or type(image_size) is not int:
        raise BadBundle(
            f"{bundle.folder}: has no {MODEL} with an image size, so training cannot start "
            "from it; give a bundle made by facepairs train"
        )
    recipe = next((recipe for recipe in RECIPES.values() if recipe.network == bundle.model), None)
    if recipe is None or recipe.crop_spec != bundle.framing:
        raise BadBundle(
            f"{bundle.folder}: its network or its crops are none that this version trains; give "
            "another bundle"
        )
    fixed = {
        "model": bundle.model,
        "image_size": image_size,
        "align": "landmarks" if bundle.aligned else "none",
    }
    for name, value in fixed.items():
        if settings.get(name, value) != value:
            raise BadConfig(
                f"{name} is {settings[name]!r}, but the weights of the bundle {init} need "
                f"{value!r}; leave {name} out, or train without init",
                name,
                "init",
            )
    # An absolute path, so that the run can be resumed from any working directory.
    return {**settings, **fixed, "init": init if init == DEFAULT else str(Path(init).resolve())}


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


def load_initial_weights(init: str, network: "Network") -> InitialBundle:
    """Set the head's weights from a bundle's Keras model; nothing in the bundle is executed.

    Args:
        init: Folder of the bundle, or `default`.
        network: The network to train.

    Raises:
        BadBundle: Keras refuses the file, or its weights do not fit the network.
    """
    from facepairs.training.keras_models import read_keras

    bundle = Bundle.open(init)
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
    return InitialBundle(
        known=sorted(bundle.identities.training),
        model=bundle.model,
        created=bundle.created,
        network_sha256=bundle.files[bundle.network.file].sha256,
        licence=bundle.weights_licence,
    )
