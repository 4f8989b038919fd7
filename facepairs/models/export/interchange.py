"""From a Keras model to what other runtimes load: TensorFlow's SavedModel, and LiteRT (TFLite).

Both keep the names of the inputs and a batch of any size; the only output is `output_0`.
"""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from facepairs.models.export.onnx import quiet_exporters

SIGNATURE = "serving_default"
OUTPUT = "output_0"  # Keras's own name for it

Arrays = dict[str, np.ndarray]


def export_saved_model(model: keras.Model, folder: Path) -> None:
    """Write a SavedModel into `folder`."""
    with quiet_exporters():
        model.export(folder, format="tf_saved_model", verbose=False)


def run_saved_model(folder: Path, inputs: Arrays) -> np.ndarray:
    """Run a SavedModel's signature: arrays by input name → its output."""
    loaded = tf.saved_model.load(str(folder))
    tensors = {name: tf.constant(array) for name, array in inputs.items()}
    return np.asarray(loaded.signatures[SIGNATURE](**tensors)[OUTPUT])


def export_litert(saved_model: Path) -> bytes:
    """Convert a SavedModel to LiteRT's bytes, of its built-in operations alone."""
    with quiet_exporters():
        data: bytes = tf.lite.TFLiteConverter.from_saved_model(str(saved_model)).convert()
    return data


def run_litert(data: bytes, inputs: Arrays) -> np.ndarray:
    """Run LiteRT's bytes in TensorFlow's interpreter: arrays by input name → the output."""
    with quiet_exporters():
        resolver: Any = tf.lite.experimental.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        interpreter = tf.lite.Interpreter(
            model_content=data, experimental_op_resolver_type=resolver
        )
        return np.asarray(interpreter.get_signature_runner(SIGNATURE)(**inputs)[OUTPUT])
