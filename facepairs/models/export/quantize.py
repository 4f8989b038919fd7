"""Turn an ONNX network into one that computes with 8-bit integers; Keras is not needed."""

import math
import tempfile
from pathlib import Path
from typing import Any

LARGE = 16_384  # numbers; smaller tensors take little space and may be sensitive to rounding
QUANTIZED = {"MatMul": 2, "Gemm": 2, "Conv": 4}  # and the dimensions of their weights


def int8_onnx(network: bytes) -> bytes:
    """Return a network whose large weights are 8-bit integers, by ONNX Runtime's own tool.

    Each column, or filter, has a scale of its own. The inputs of these layers are rounded to 8 bits
    too, with a scale of each call, so an output depends a little on the batch around it.

    Args:
        network: The content of an ONNX file, as `export_onnx` writes it.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.quant_utils import add_pre_process_metadata

    with tempfile.TemporaryDirectory() as folder:
        plain, small = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
        _fold_constants(network, plain)
        model = onnx.load(plain)
        add_pre_process_metadata(model)  # or it warns that the constants were not folded
        nodes = _large_nodes(model.graph)
        if not nodes:
            return network
        quantize_dynamic(
            model, small, nodes_to_quantize=nodes, per_channel=True, weight_type=QuantType.QInt8
        )
        return small.read_bytes()


def _fold_constants(network: bytes, path: Path) -> None:
    """Write the network with its weights as float32: they are stored in 8 or 16 bits and cast."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])


def _large_nodes(graph: Any) -> list[str]:
    """Return the names of the layers whose weights are large."""
    sizes = {tensor.name: tensor.dims for tensor in graph.initializer}
    return [
        node.name
        for node in graph.node
        if node.op_type in QUANTIZED
        and len(dims := sizes.get(node.input[1], ())) == QUANTIZED[node.op_type]
        and math.prod(dims) >= LARGE
    ]
