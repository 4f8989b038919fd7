"""What an exported network needs people to know: the README and the TOML beside it."""

from collections.abc import Mapping
from typing import Any

from facepairs.bundles.bundle import NETWORK, Bundle

_SNIPPETS = {
    "onnx": """import onnxruntime

session = onnxruntime.InferenceSession("network.onnx")
(found,) = session.run(["{output}"], {inputs})""",
    "litert": """from ai_edge_litert.interpreter import Interpreter  # or tf.lite.Interpreter

run = Interpreter("network.tflite").get_signature_runner("serving_default")
found = run(**{inputs})["{output}"]""",
    "saved_model": """import tensorflow as tf

run = tf.saved_model.load(".").signatures["serving_default"]
tensors = {{name: tf.constant(crops) for name, crops in {inputs}.items()}}
found = run(**tensors)["{output}"].numpy()""",
}


def readme(record: Mapping[str, Any]) -> str:
    """Write Markdown from what `export` did."""
    frame, crop = record["framing"]["frame_px"], record["framing"]["crop_px"]
    names = {"image": "crops", "left": "left_crops", "right": "right_crops"}
    given = ", ".join(f'"{name}": {names.get(name, name)}' for name in record["inputs"])
    snippet = _SNIPPETS[record["format"]].format(output=record["output"], inputs=f"{{{given}}}")
    gives = (
        "embeddings, float32 [N, D], rows of length 1. A pair's score is the sum of\nthe "
        "products of its two rows."
        if record["kind"] == "embedding"
        else "scores, float32 [N, 1], one a pair."
    )
    scale, offset = record["calibration"]["scale"], record["calibration"]["offset"]
    parity = record["parity"]
    return f"""# `{record["model"]}`, a face verifier, as {record["format"]}

**In**: {" and ".join(f"`{name}`" for name in record["inputs"])}, uint8 [N, {crop}, {crop}, 3], RGB,
any N. A crop is the centre square of a photo, {crop} of every {frame} pixels of its shorter side,
resized to {crop} x {crop} (bilinear). Casting, scaling and resizing are inside the network.

**Out**: `{record["output"]}`: {gives}

```python
{snippet}
```

Higher scores are more alike. Accept from {record["threshold"]!r} on; the probability that both show
one person, at equal priors, is 1 / (1 + exp(-({scale!r} * score {offset:+})).
Where the threshold comes from: {record["threshold_source"]}.

Outputs on {parity["crops"]} random and drawn crops differ from the bundle's own network by
{parity["max_difference"]:.2g} at most.
"""


def embedder_toml(bundle: Bundle) -> str:
    """Describe a bundle's embedding network as `verification.foreign` reads it."""
    framing, calibration = bundle.framing, bundle.calibration
    return f"""# For `facepairs verify --model` and `facepairs evaluate`, beside {NETWORK}
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
