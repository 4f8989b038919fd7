"""From a Keras model to ONNX bytes, with a check that both say the same."""

import contextlib
import io
import logging
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import keras
import numpy as np

PARITY = 1e-3  # of the score's own spread, or absolute where that is smaller than one


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporters' chatter off the user's terminal."""
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
    words = np.random.Philox(key=[0, 0]).random_raw(count * 8 * 8 * 3 * len(model.inputs))
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


def export_onnx(model: keras.Model, output: str) -> tuple[bytes, float]:
    """Give the ONNX file's bytes, and the largest difference from Keras on fixed probe images.

    Its inputs bear the names of the model's, its only output is called `output`.
    Raises RuntimeError when that difference is more than a thousandth: the export is then wrong.
    """
    import onnxruntime

    inputs = _probe(model)
    expected = np.asarray(model(inputs if len(inputs) > 1 else inputs[0]))
    with tempfile.TemporaryDirectory() as folder, _quiet():
        path = Path(folder) / "network.onnx"
        model.export(path, format="onnx", verbose=False)
        data = _with_output(path.read_bytes(), output)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [node.name for node in session.get_inputs()]
    (got,) = session.run(None, dict(zip(names, inputs, strict=True)))
    difference = float(np.abs(got - expected).max())
    if not difference <= PARITY * max(1.0, float(np.ptp(expected))):
        raise RuntimeError(f"ONNX and Keras differ by {difference:g} on the same images")
    return data, difference


def keras_bytes(model: keras.Model) -> bytes:
    """Give the bytes of the model in Keras's own `.keras` format."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.keras"
        model.save(path)
        return path.read_bytes()
