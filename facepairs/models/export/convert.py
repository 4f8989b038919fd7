"""Convert a Keras model to ONNX, with a check that both compute the same, and to LiteRT.

Large weights are rounded to half precision and stored so. The files are half as large, and scores
change by less than image decoders differ. All arithmetic stays in float32.
"""

import contextlib
import io
import logging
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from facepairs.data.synth.faces import draw_face
from facepairs.photos.crop import CropSpec, load_crop
from facepairs.support.random_streams import Stream, raw_words

LARGE = 16_384  # numbers; smaller tensors take little space and may be sensitive to rounding
TOLERANCE = 1e-3  # of the spread of the outputs if that is over 1, else absolute
LITERT_OUTPUT = "output_0"  # Keras chooses this name
CROPS = 8  # half random, half drawn faces
Crops = dict[str, npt.NDArray[np.uint8]]


@contextlib.contextmanager
def quiet_exporters() -> Iterator[None]:
    """Hide what the exporters print and log."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            yield
    finally:
        logging.disable(disabled)


def round_weights(head: keras.Model) -> None:
    """Round a network's large float32 weights in place to half precision.

    Rounding twice changes nothing. Tensors with values beyond float16's range stay as they are.
    """
    for variable in head.variables:
        if variable.dtype == "float32" and np.prod(variable.shape) >= LARGE:
            rounded = _rounded(np.asarray(variable))
            if np.isfinite(rounded).all():
                variable.assign(rounded)


def export_onnx(model: keras.Model, output: str) -> tuple[bytes, float]:
    """Export a model to ONNX.

    Args:
        model: Takes uint8 images; its only output is float32.
        output: Name of the output. The inputs keep the names of the model's.

    Returns:
        Content of the ONNX file, and the largest difference from Keras on `probe_crops`.

    Raises:
        RuntimeError: The difference exceeds the tolerance, or the output for an image depends on
            the batch around it.
    """
    import onnxruntime

    names = tuple(image.name for image in model.inputs)
    crops = probe_crops(names, model.inputs[0].shape[1])
    expected = np.asarray(model(list(crops.values()) if len(crops) > 1 else crops[names[0]]))
    with tempfile.TemporaryDirectory() as folder, quiet_exporters():
        path = Path(folder) / "network.onnx"
        model.export(path, format="onnx")
        data = _finished(path.read_bytes(), output)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    first = {name: images[:1] for name, images in crops.items()}
    batch, single = (np.asarray(session.run([output], part)[0]) for part in (crops, first))
    tolerance = TOLERANCE * max(1.0, float(np.ptp(expected)))
    difference = float(np.abs(batch - expected).max())
    if not difference <= tolerance:
        raise RuntimeError(f"ONNX and Keras differ by {difference:g} on the same images")
    if not np.abs(single - batch[:1]).max() <= tolerance:
        raise RuntimeError("the network's output for an image depends on the batch around it")
    return data, difference


def _finished(data: bytes, output: str) -> bytes:
    """Rename the only output, and store large tensors in half precision where that is exact.

    A cast to float32 follows each; ONNX Runtime casts once, when it loads the file. Weights that
    the exporter multiplied with a batch normalisation are not exact any more and stay float32.
    """
    import onnx

    model = onnx.load_model_from_string(data)
    (last,) = model.graph.output
    for node in model.graph.node:
        node.output[:] = [output if edge == last.name else edge for edge in node.output]
        node.input[:] = [output if edge == last.name else edge for edge in node.input]
    last.name = output
    tensors, casts = [], []
    for tensor in model.graph.initializer:
        stored, cast = _stored(tensor)
        tensors.append(stored)
        casts += cast
    nodes = [*casts, *model.graph.node]
    del model.graph.initializer[:], model.graph.node[:]
    model.graph.initializer.extend(tensors)
    model.graph.node.extend(nodes)
    serialised: bytes = model.SerializeToString()
    return serialised


def _stored(tensor: Any) -> tuple[Any, list[Any]]:
    """Return how an ONNX tensor is stored, and the node that restores it, if any."""
    from onnx import TensorProto, helper, numpy_helper

    if tensor.data_type != TensorProto.FLOAT or np.prod(tensor.dims) < LARGE:
        return tensor, []
    values, name = numpy_helper.to_array(tensor), tensor.name
    if not np.array_equal(_rounded(values), values):
        return tensor, []
    half = numpy_helper.from_array(values.astype(np.float16), f"{name}/half")
    return half, [helper.make_node("Cast", [half.name], [name], to=TensorProto.FLOAT)]


def _rounded(values: np.ndarray) -> np.ndarray:
    """Round float32 values to float16 precision; values of 65,520 and more become infinite."""
    with np.errstate(over="ignore"):
        return values.astype(np.float16).astype(np.float32)


def export_litert(model: keras.Model, int8: bool) -> bytes:
    """Convert a model to LiteRT (TensorFlow Lite), with built-in operations only.

    The inputs keep their names, and batches may have any size.

    Args:
        model: The model.
        int8: Store weights as 8-bit integers, and compute with them where LiteRT can.
    """
    with tempfile.TemporaryDirectory() as folder, quiet_exporters():
        model.export(folder, format="tf_saved_model")
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        converter.optimizations = [tf.lite.Optimize.DEFAULT] if int8 else []
        data: bytes = converter.convert()
    return data


def run_litert(data: bytes, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """Run a LiteRT model on arrays by input name and return its output."""
    with quiet_exporters():
        resolver: Any = tf.lite.experimental.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        interpreter = tf.lite.Interpreter(
            model_content=data, experimental_op_resolver_type=resolver
        )
        return np.asarray(interpreter.get_signature_runner()(**inputs)[LITERT_OUTPUT])


def probe_crops(inputs: tuple[str, ...], side_px: int) -> Crops:
    """Return crops by the names of a network's inputs: uint8[8, side_px, side_px, 3] each.

    They are the same every time, in another order for a second input.
    """
    half = CROPS // 2
    words = raw_words(0, Stream.EXPORT_CHECK, 0, 0, half * side_px * side_px * 3)
    noise = (words >> np.uint64(56)).astype(np.uint8).reshape(half, side_px, side_px, 3)
    whole = CropSpec(side_px, side_px)
    drawn = [load_crop(draw_face(0, person, 0), whole) for person in range(half)]
    crops = np.concatenate([noise, drawn])
    return {name: np.roll(crops, shift, axis=0) for shift, name in enumerate(inputs)}
