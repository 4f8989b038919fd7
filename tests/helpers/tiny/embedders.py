"""A small embedding network and the TOML that describes it."""

import hashlib
import json

import numpy as np
from onnx import helper

from tiny.bundles import onnx_model

SIZE = 12
TOML = {
    "file": "network.onnx", "size_px": SIZE, "layout": "nchw", "colours": "bgr",
    "mean": [103.9, 116.8, 123.7], "std": 57.5, "crop": 0.625,
    "align": "none",
}  # fmt: skip
MATRIX = np.random.default_rng(1).normal(size=(SIZE * SIZE * 3, 7)).astype(np.float32)


def network(layout="nchw", kind="FLOAT", batch="N", outputs=("embedding",)):
    """Multiply the flattened image with MATRIX."""
    frame = [batch, 3, SIZE, SIZE] if layout == "nchw" else [batch, SIZE, SIZE, 3]
    nodes = [
        helper.make_node("Cast", ["face"], ["floats"], to=1),
        helper.make_node("Flatten", ["floats"], ["flat"], axis=1),
        *(helper.make_node("MatMul", ["flat", "matrix"], [name]) for name in outputs),
    ]
    shapes = {name: [batch, 7] for name in outputs}
    model = onnx_model(nodes, shapes, {"face": frame}, {"matrix": MATRIX}, kind)
    return model.SerializeToString()


def embedder(folder, onnx=None, **changes):
    """Write a network and its TOML; a value of None leaves the key out."""
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "network.onnx").write_bytes(network() if onnx is None else onnx)
    table = {key: value for key, value in (TOML | changes).items() if value is not None}
    lines = (f"{key} = {_toml(value)}" for key, value in table.items())
    (folder / "other.toml").write_text("\n".join(lines) + "\n")
    return folder / "other.toml"


def _toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)


def network_table(folder, url, name="drawn", download=None, described=None, **changes):
    """Write a table of networks with one whose download is `network()`, or something else."""
    onnx = network()
    download = onnx if download is None else download
    folder.mkdir(exist_ok=True, parents=True)
    source = {
        "url": url, "page": "https://example.org", "is_free": True,
        "bytes": len(download), "sha256": hashlib.sha256(download).hexdigest(),
    } | changes  # fmt: skip
    checked = {"sha256": hashlib.sha256(onnx).hexdigest(), "licence": "MIT"}
    described = TOML | checked | (described or {})
    sections = {f"[{json.dumps(name)}]": source, f"[{json.dumps(name)}.embedder]": described}
    lines = [
        "\n".join([head, *(f"{key} = {_toml(value)}" for key, value in table.items())])
        for head, table in sections.items()
    ]
    (folder / "networks.toml").write_text("\n".join(lines) + "\n")
    return onnx
