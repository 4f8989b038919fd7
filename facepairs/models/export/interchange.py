"""Convert a Keras model to LiteRT (TensorFlow Lite), and run the result.

The inputs keep their names, batches may have any size, and the output is `output_0`.
"""

import tempfile
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from facepairs.models.export.onnx import quiet_exporters

SIGNATURE = "serving_default"
OUTPUT = "output_0"  # Keras chooses this name

Arrays = dict[str, np.ndarray]


def export_litert(model: keras.Model, int8: bool = False) -> bytes:
    """Return a model converted to LiteRT, with built-in operations only.

    Args:
        model: The model.
        int8: Store weights as 8-bit integers, and compute with them where LiteRT can.
    """
    with tempfile.TemporaryDirectory() as folder, quiet_exporters():
        model.export(folder, format="tf_saved_model", verbose=False)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        converter.optimizations = [tf.lite.Optimize.DEFAULT] if int8 else []
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
