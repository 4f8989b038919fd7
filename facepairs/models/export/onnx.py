"""From a Keras model to ONNX bytes, with a check that both say the same, and to a small `.keras`.

Large weights are rounded to what half precision can hold and stored so: files halve, and scores
move by less than a decoder's rounding does. All arithmetic stays in single precision.
"""

import contextlib
import io
import logging
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np

from facepairs.models.fisher.onnx import fisher_onnx
from facepairs.support.random_streams import Stream, raw_words

PARITY = 1e-3  # of the score's own spread, or absolute where that is smaller than one
LARGE = 16_384  # numbers; smaller tensors cost little and may be delicate


@contextlib.contextmanager
def quiet_exporters() -> Iterator[None]:
    """Keep the exporters' chatter off the terminal; who logs INFO gets all of it on stderr."""
    if logging.getLogger().isEnabledFor(logging.INFO):
        with contextlib.redirect_stdout(sys.stderr):
            yield
        return
    noisy = [logging.getLogger(name) for name in ("tf2onnx", "tensorflow", "absl")]
    levels = [logger.level for logger in noisy]
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        for logger in noisy:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(noisy, levels, strict=True):
                logger.setLevel(level)


def _probe(model: keras.Model, count: int = 8) -> list[np.ndarray]:
    """Make uint8 inputs that exercise a network: smooth random images, the same every time."""
    words = raw_words(0, Stream.EXPORT_CHECK, 0, 0, count * 8 * 8 * 3 * len(model.inputs))
    coarse = (words >> np.uint64(56)).astype(np.uint8).reshape(len(model.inputs), count, 8, 8, 3)
    side = model.inputs[0].shape[1]
    at = np.arange(side) * 8 // side
    return [np.ascontiguousarray(images[:, at][:, :, at]) for images in coarse]


def _with_output(data: bytes, name: str) -> bytes:
    """Rename a network's only output; the exporter calls it what it likes."""
    import onnx

    model = onnx.load_model_from_string(data)
    (output,) = model.graph.output
    for node in model.graph.node:
        node.output[:] = [name if edge == output.name else edge for edge in node.output]
        node.input[:] = [name if edge == output.name else edge for edge in node.input]
    output.name = name
    serialised: bytes = model.SerializeToString()
    return serialised


def _rounded(values: np.ndarray) -> np.ndarray:
    """Give float32 as float16 holds it: the nearest number, infinite from 65,520 on."""
    with np.errstate(over="ignore"):
        return values.astype(np.float16).astype(np.float32)


def round_weights(head: keras.Model) -> None:
    """Round a network's large float32 weights in place to what float16 can hold.

    A second time changes nothing. Weights that go beyond float16's range stay as they are.
    """
    for variable in head.variables:
        if variable.dtype == "float32" and np.prod(variable.shape) >= LARGE:
            rounded = _rounded(np.asarray(variable))
            if np.isfinite(rounded).all():
                variable.assign(rounded)


def _with_half_tensors(data: bytes) -> bytes:
    """Keep large tensors that are exact in float16 as that and a cast: the very same numbers.

    ONNX Runtime casts once, on loading. Weights that the exporter multiplied with a batch norm are
    no longer exact, and stay.
    """
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load_model_from_string(data)
    casts = []
    for tensor in model.graph.initializer:
        if tensor.data_type != onnx.TensorProto.FLOAT or np.prod(tensor.dims) < LARGE:
            continue
        values, name = numpy_helper.to_array(tensor), tensor.name
        if np.array_equal(_rounded(values), values):
            half = numpy_helper.from_array(values.astype(np.float16), f"{name}/half")
            tensor.CopyFrom(half)
            casts.append(helper.make_node("Cast", [half.name], [name], to=onnx.TensorProto.FLOAT))
    nodes = [*casts, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    serialised: bytes = model.SerializeToString()
    return serialised


def export_onnx(model: keras.Model, output: str) -> tuple[bytes, float]:
    """Give the ONNX file's bytes, and the largest difference from Keras on fixed probe images.

    Its inputs bear the names of the model's, its only output is called `output`. Raises
    RuntimeError where the export is wrong: when that difference is more than a thousandth, or an
    image gets another output alone than among others.
    """
    import onnxruntime

    inputs = _probe(model)
    expected = np.asarray(model(inputs if len(inputs) > 1 else inputs[0]))
    with tempfile.TemporaryDirectory() as folder, quiet_exporters():
        data = fisher_onnx(model, output)
        if data is None:
            path = Path(folder) / "network.onnx"
            model.export(path, format="onnx", verbose=False)
            data = _with_output(path.read_bytes(), output)
        data = _with_half_tensors(data)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    got, alone = _run(session, inputs), _run(session, [images[:1] for images in inputs])
    allowed = PARITY * max(1.0, float(np.ptp(expected)))
    difference = float(np.abs(got - expected).max())
    if not difference <= allowed:
        raise RuntimeError(f"ONNX and Keras differ by {difference:g} on the same images")
    if not np.abs(alone - got[:1]).max() <= allowed:
        raise RuntimeError("the network's output for an image depends on the batch around it")
    return data, difference


def _run(session: Any, inputs: list[np.ndarray]) -> np.ndarray:
    names = [node.name for node in session.get_inputs()]
    (output,) = session.run(None, dict(zip(names, inputs, strict=True)))
    return np.asarray(output)


def keras_bytes(model: keras.Model) -> bytes:
    """Give the bytes of the model in Keras's own `.keras` format, deflated.

    Rounded weights have zeros for low bits, and so take half the room.
    """
    packed = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.keras"
        model.save(path)
        with zipfile.ZipFile(path) as plain, zipfile.ZipFile(packed, "w") as small:
            for name in plain.namelist():
                small.writestr(name, plain.read(name), zipfile.ZIP_DEFLATED, 9)
    return packed.getvalue()
