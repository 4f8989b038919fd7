"""Tiny ONNX networks and bundles around them."""

from pathlib import Path
from typing import Any

import numpy as np

from facepairs.bundles.bundle import CARD, MODEL, NETWORK, Bundle
from facepairs.bundles.error_profile import Calibration, ErrorProfile, IncludedModelFigures
from facepairs.bundles.manifest import Identities
from facepairs.bundles.rates import ErrorTable, OperatingPoint, Row
from facepairs.bundles.scorer import Scorer
from facepairs.bundles.writer import write_bundle

CROP_PX = 16
FRAME_PX = 32


def onnx_model(
    nodes: list[Any],
    outputs: dict[str, list[Any]],
    inputs: dict[str, list[Any]],
    weights: dict[str, np.ndarray] | None = None,
    kind: str = "UINT8",
) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    def values(shapes: dict[str, list[Any]], element: int) -> list[Any]:
        return [helper.make_tensor_value_info(name, element, s) for name, s in shapes.items()]

    graph = helper.make_graph(
        nodes,
        "tiny",
        values(inputs, getattr(TensorProto, kind)),
        values(outputs, TensorProto.FLOAT),
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def pair_network(column: bool = False, negative_log: bool = False) -> bytes:
    """Score a pair as -mean |left - right| / 255: symmetric, 0 for equal crops."""
    from onnx import helper

    node = helper.make_node
    nodes = [
        node("Cast", ["left"], ["a"], to=1),
        node("Cast", ["right"], ["b"], to=1),
        node("Sub", ["a", "b"], ["difference"]),
        node("Abs", ["difference"], ["distance"]),
        node("ReduceMean", ["distance"], ["mean"], axes=[1, 2, 3], keepdims=0),
        node("Div", ["mean", "white"], ["part"]),
        node("Neg", ["part"], ["negative"]),
        node("Unsqueeze" if column else "Identity", ["negative", "one"][: 1 + column], ["shaped"]),
        node("Log" if negative_log else "Identity", ["shaped"], ["score"]),
    ]
    frame = ["N", CROP_PX, CROP_PX, 3]
    weights = {"white": np.float32(255), "one": np.array([1])}
    outputs = {"score": ["N", 1] if column else ["N"]}
    model = onnx_model(
        nodes,
        outputs,
        {"left": frame, "right": frame},
        {name: np.asarray(value) for name, value in weights.items()},
    )
    return model.SerializeToString()


def embedding_network(normalised: bool = True, width: int = 24) -> bytes:
    from onnx import helper

    node = helper.make_node
    pixels = CROP_PX * CROP_PX * 3
    matrix = np.random.default_rng(0).normal(size=(pixels, width)).astype(np.float32)
    nodes = [
        node("Cast", ["image"], ["floats"], to=1),
        node("Flatten", ["floats"], ["flat"], axis=1),
        node("MatMul", ["flat", "matrix"], ["raw"]),
        node("LpNormalization", ["raw"], ["embedding"], axis=1, p=2)
        if normalised
        else node("Identity", ["raw"], ["embedding"]),
    ]
    frame = {"image": ["N", CROP_PX, CROP_PX, 3]}
    model = onnx_model(nodes, {"embedding": ["N", width]}, frame, {"matrix": matrix})
    return model.SerializeToString()


def manifest_of(kind: str, **changes: Any) -> dict[str, Any]:
    networks = {
        "pair": {"file": NETWORK, "inputs": ["left", "right"], "output": "score"},
        "embedding": {"file": NETWORK, "inputs": ["image"], "output": "embedding"},
    }
    return {
        "kind": kind,
        "model": "tiny",
        "framing": {"frame_px": FRAME_PX, "crop_px": CROP_PX},
        "network": networks[kind],
        "training": {"protocol": "none", "seed": 1},
        "note": "drawn, not real",
    } | changes


def measured_of(**changes: Any) -> ErrorProfile:
    """Return what is measured of a tiny bundle; without `errors`, these are not known."""
    fields = {
        "calibration": Calibration(20.0, 2.0, ece=0.01),
        "thresholds": (OperatingPoint(-0.1, "fmr-0.1", 0.1),),
    }
    return ErrorProfile(**fields | changes)


def cohort_of(rows: np.ndarray) -> IncludedModelFigures:
    content = rows.astype("<f4").tobytes()
    return IncludedModelFigures(cohort_width=rows.shape[1], cohort_content=content)


def _rates(*rates: float) -> tuple[Row, ...]:
    return tuple((rate, rate / 2, min(1.0, rate * 1.5 + 0.002)) for rate in rates)


def error_table() -> ErrorTable:
    """Errors of scores that are cosines, at five thresholds."""
    return ErrorTable(
        measured_on="drawn pairs",
        people=40,
        genuine_pairs=1_000,
        impostor_pairs=10_000,
        lookalike_pairs=1_000,
        thresholds=(-1.0, 0.0, 0.5, 0.75, 1.0),
        fmr=_rates(1, 0.4, 0.01, 0.001, 0),
        lookalike_fmr=_rates(1, 0.6, 0.05, 0.01, 0),
        fnmr=_rates(0, 0.05, 0.1, 0.3, 1),
    )


AMONG_LOOKALIKES: dict[str, Any] = {
    "kind": "embedding",
    "errors": error_table(),
    "default_fmr": 0.01,
    "calibration": Calibration(20.0, -10.0),
    "thresholds": (OperatingPoint(0.75, "fmr-0.01", 0.01, among="look-alikes"),),
}
"""Arguments of `tiny_bundle` for a bundle that knows its errors and promises FMR .01."""


def tiny_bundle(
    out: Path,
    kind: str = "pair",
    network: bytes | None = None,
    **changes: Any,
) -> Bundle:
    """Write a bundle of a tiny network; `changes` are to the manifest and to `measured_of`."""
    own = {name: changes.pop(name) for name in ErrorProfile.__struct_fields__ if name in changes}
    identities = Identities.of(["Ann", "Bé"], ["Cyd"])
    default = pair_network() if kind == "pair" else embedding_network()
    files = {
        NETWORK: default if network is None else network,
        MODEL: b"keras",
        CARD: b"# Card\n",
    }
    return write_bundle(out, manifest_of(kind, **changes), files, identities, measured_of(**own))


def write_bundle_of(out: Path, network: Any, identities: Identities) -> Bundle:
    """Write a bundle with a network's weights, and a tiny ONNX file of another."""
    from facepairs.models.export.convert import round_weights
    from facepairs.models.export.keras_file import keras_bytes

    round_weights(network.head)
    files = {NETWORK: embedding_network(), MODEL: keras_bytes(network.inference_model())}
    framing = {"frame_px": 250, "crop_px": network.crop_px}
    changes = {"model": network.name, "framing": framing, "licence": "research"}
    manifest = manifest_of("embedding", **changes)
    manifest["network"] |= {"image_px": network.image_px}
    return write_bundle(out, manifest, files, identities, measured_of())


def score_pairs(scorer: Scorer, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Score crops of faces, all represented in one call."""
    rows = scorer.represent(np.concatenate([left, right]))
    return scorer.compare(rows[: len(left)], rows[len(left) :])
