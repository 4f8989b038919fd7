"""Export a Keras model as a TensorFlow SavedModel or to LiteRT (TFLite), and run the result.

Both formats keep the names of the inputs and take batches of any size; the output is `output_0`.
"""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from facepairs.models.export.onnx import quiet_exporters

SIGNATURE = "serving_default"
OUTPUT = "output_0"  # Keras chooses this name

Arrays = dict[str, np.ndarray]


def export_saved_model(model: keras.Model, folder: Path) -> None:
    """Write a SavedModel into `folder`."""
    with quiet_exporters():
        model.export(folder, format="tf_saved_model", verbose=False)


def run_saved_model(folder: Path, inputs: Arrays) -> np.ndarray:
    """Run a SavedModel on arrays by input name and return its output."""
    loaded = tf.saved_model.load(str(folder))
    tensors = {name: tf.constant(array) for name, array in inputs.items()}
    return np.asarray(loaded.signatures[SIGNATURE](**tensors)[OUTPUT])


def export_litert(saved_model: Path, int8: bool = False) -> bytes:
    """Return a SavedModel converted to LiteRT, with built-in operations only.

    Args:
        saved_model: Its folder.
        int8: Store weights as 8-bit integers, and compute with them where LiteRT can.
    """
    converter = tf.lite.TFLiteConverter.from_saved_model(str(saved_model))
    converter.optimizations = [tf.lite.Optimize.DEFAULT] if int8 else []
    with quiet_exporters():
        data: bytes = converter.convert()
    return data


def run_litert(data: bytes, inputs: Arrays) -> np.ndarray:
    """Run a LiteRT model on arrays by input name and return its output."""
    with quiet_exporters():
        resolver: Any = tf.lite.experimental.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        interpreter = tf.lite.Interpreter(
            model_content=data, experimental_op_resolver_type=resolver
        )
        return np.asarray(interpreter.get_signature_runner(SIGNATURE)(**inputs)[OUTPUT])
