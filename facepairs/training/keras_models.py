"""Plain Keras models: those of bundles, and untrained ones to compile and fit."""

import tempfile
from pathlib import Path

import keras
from keras import layers, ops

from facepairs.bundles.bundle import MODEL, Bundle
from facepairs.errors import BadBundle, BadConfig
from facepairs.models.convolutional import difference_head, face_tower
from facepairs.models.export.keras_file import check_keras_file
from facepairs.models.network import Network

TRAINABLE = ("difference", "siamese")


def load_keras(bundle: Path | str | None = None) -> keras.Model:
    """Open the Keras model of a bundle, with weights, ready to call or to build upon.

    Examples:
        >>> embed = facepairs.load_keras()
        >>> embeddings = embed.predict(crops)  # uint8[N, 150, 150, 3] → float32[N, 128]

    Args:
        bundle: The bundle's folder; None and the word `default` mean the included model.

    Returns:
        A model of uint8 crops [N, crop_px, crop_px, 3], such as `FaceSample.crop`: one input and
        embeddings of length 1, or two inputs and a logit. Casting and resizing are part of it. The
        `fisher` model needs Keras's TensorFlow backend.

    Raises:
        BadBundle: The bundle has no Keras model, or one with foreign parts. Nothing is executed.
    """
    return read_keras(Bundle.open(bundle))


def build_keras(name: str = "difference", image_size: int = 64) -> keras.Model:
    """Build an untrained model of `facepairs train` as a Keras model of ((left, right)).

    Its inputs are images in [0, 255], float32[N, image_size, image_size, 3] twice, as
    `pairs_dataset` yields them. Works with every Keras backend.

    Args:
        name: `difference`, the network of the absolute difference of both faces, or
            `siamese`, one convolutional tower (its layer `face_tower`) for both sides.
        image_size: Side of the images in pixels, 64 to 224.

    Returns:
        For `difference` a model of float32[N, 1], the logit of "genuine", to compile with
        `keras.losses.BinaryCrossentropy(from_logits=True)`; for `siamese` one of
        float32[N, 2, 256], both embeddings, to compile with `EmbeddingLoss`.

    Raises:
        BadConfig: The model is unknown.
    """
    if name not in TRAINABLE:
        raise BadConfig(f"model is {name!r}; use one of {', '.join(TRAINABLE)}")
    sides = [keras.Input((image_size, image_size, 3), name=side) for side in ("left", "right")]
    scale = layers.Rescaling(1 / 255, name="to_unit_range", dtype="float32")
    images = [scale(side) for side in sides]
    if name == "difference":
        return keras.Model(sides, difference_head(image_size)(images), name=name)
    embeddings = face_tower(image_size)(ops.concatenate(images, axis=0))
    return keras.Model(sides, ops.stack(ops.split(embeddings, 2, axis=0), axis=1), name=name)


def read_keras(bundle: Bundle) -> keras.Model:
    """Load the Keras model of a bundle's network in safe mode: nothing in it is executed.

    Raises:
        BadBundle: The bundle has no Keras model, or Keras refuses it.
    """
    import facepairs.fisher.tower  # noqa: F401 - registers its layers, which need TensorFlow

    data = bundle.read(MODEL)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / MODEL
        path.write_bytes(data)
        try:
            check_keras_file(data)
            return keras.saving.load_model(path, compile=False, safe_mode=True)
        except Exception as error:  # noqa: BLE001 - a damaged file can make Keras raise anything
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise BadBundle(
                f"{bundle.folder / MODEL}: cannot be read ({lines[0]}); it is damaged or of "
                "another version: copy the bundle again, or give another one"
            ) from None


def load_initial_weights(bundle: Bundle, network: Network) -> None:
    """Set a network's weights from a bundle's Keras model; nothing in the bundle is executed.

    Raises:
        BadBundle: Keras refuses the file, or its weights do not fit the network.
    """
    try:
        weights = read_keras(bundle).get_layer(network.head.name).get_weights()
    except ValueError:
        weights = []
    if [w.shape for w in weights] != [w.shape for w in network.head.get_weights()]:
        raise BadBundle(
            f"{bundle.folder}: its network is not the {network.name} that this version builds; "
            "train without it, or with the version that made it",
            "init",
        )
    network.head.set_weights(weights)
