"""The files that explain an exported network: a README for people and a TOML file for facepairs."""

from pathlib import Path
from typing import TYPE_CHECKING

from facepairs.bundles.bundle import NETWORK, Bundle

if TYPE_CHECKING:
    from facepairs.training.export.export import ExportRecord

TEMPLATE = Path(__file__).with_name("readme.md.template")
CROP_VARIABLES = {"image": "crops", "left": "left_crops", "right": "right_crops"}
OUTPUTS = {
    "embedding": "embeddings, float32 [N, D], rows of length 1. The score of a pair is the dot\n"
    "product of its two rows.",
    "pair": "scores, float32 [N, 1], one per pair.",
}
SNIPPETS = {
    "onnx": """import onnxruntime

session = onnxruntime.InferenceSession("network.onnx")
(result,) = session.run(["{output}"], {inputs})""",
    "litert": """from ai_edge_litert.interpreter import Interpreter  # or tf.lite.Interpreter

run = Interpreter("network.tflite").get_signature_runner("serving_default")
result = run(**{inputs})["{output}"]""",
    "saved_model": """import tensorflow as tf

run = tf.saved_model.load(".").signatures["serving_default"]
tensors = {{name: tf.constant(crops) for name, crops in {inputs}.items()}}
result = run(**tensors)["{output}"].numpy()""",
}


def readme(record: "ExportRecord") -> str:
    """Return the README of an export as Markdown."""
    arguments = ", ".join(f'"{name}": {CROP_VARIABLES[name]}' for name in record.inputs)
    snippet = SNIPPETS[record.format].format(output=record.output, inputs=f"{{{arguments}}}")
    return TEMPLATE.read_text(encoding="utf-8").format(
        record=record,
        inputs=" and ".join(f"`{name}`" for name in record.inputs),
        crop_px=record.framing.crop_px,
        frame_px=record.framing.frame_px,
        output=OUTPUTS[record.kind],
        snippet=snippet,
    )


def embedder_toml(bundle: Bundle) -> str:
    """Return the description of an embedding network that `verification.external_embedder` reads."""
    framing, calibration = bundle.framing, bundle.calibration
    return f"""# For `facepairs verify --bundle` and `facepairs evaluate`, beside {NETWORK}
file = "{NETWORK}"
name = "{bundle.model}"
size_px = {framing.crop_px}
layout = "nhwc"
colours = "rgb"
crop = [{framing.crop_px}, {framing.frame_px}]
distance = "cosine"
threshold = {bundle.threshold!r}
calibration = {{ scale = {calibration.scale!r}, offset = {calibration.offset!r} }}
"""
