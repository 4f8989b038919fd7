"""Load a bundle's Keras model, to train it further or to export it."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from facepairs.bundles.bundle import MODEL, Bundle
from facepairs.errors import BadBundle

if TYPE_CHECKING:
    import keras


def read_whole(bundle: Bundle) -> "keras.Model":
    """Load a bundle's Keras model with its map of embeddings, if it has one; see `read_keras`."""
    import keras

    model, embedding_map = read_keras(bundle), bundle.map
    if embedding_map is None:
        return model
    matrix, mean = embedding_map.matrix, embedding_map.mean
    dense = keras.layers.Dense(len(mean), name="map")
    output = keras.layers.UnitNormalization()(dense(model.output))
    dense.set_weights([matrix, -mean @ matrix])
    return keras.Model(model.input, output, name=model.name)


def read_keras(bundle: Bundle) -> "keras.Model":
    """Load the Keras model of a bundle's network in safe mode: nothing in it is executed.

    Raises:
        BadBundle: The bundle has no Keras model, or Keras refuses it.
    """
    import keras

    import facepairs.models.build  # noqa: F401 - registers its layers
    from facepairs.models.export.keras_file import check_keras_file

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
