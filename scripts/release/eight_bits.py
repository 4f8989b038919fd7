"""Turn a convolutional network in ONNX into one that computes its convolutions in 8 bits.

Weights have 7 bits, with a scale for each filter. The products of 8-bit weights and activations can
overflow the 16-bit sums of x86 processors without VNNI (before 2019, and many after): scores then
move by up to .02. With 7 bits every processor computes the same integers, and one network gives the
same scores on all of them. Sums of the residual blocks stay in float32.

References:
    ONNX Runtime: Quantize ONNX models, "When and why do I need to try U8U8?" and "reduce_range".
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

BATCH = 8
FIRST, LAST = "Conv", "GlobalAveragePool"  # what comes before and after stays in float32


def to_eight_bits(
    network: bytes, crops: npt.NDArray[np.uint8], seven_bit_weights: bool = True
) -> bytes:
    """Quantise the convolutions of a network; the same bytes for the same crops.

    Args:
        network: Content of an ONNX file with the input `image`.
        crops: uint8[N, H, W, 3], typical inputs, which set the range of every activation.
        seven_bit_weights: False for weights of 8 bits, for comparison.
    """
    import onnx
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Crops(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            starts = range(0, len(crops), BATCH)
            self.batches: Iterator[Any] = iter({"image": crops[a : a + BATCH]} for a in starts)

        def get_next(self) -> Any:
            return next(self.batches, None)

    with tempfile.TemporaryDirectory() as folder:
        plain, ready, small = (Path(folder, name) for name in ("plain", "ready", "small"))
        plain.write_bytes(network)
        quant_pre_process(str(plain), str(ready), skip_symbolic_shape=True)
        quantize_static(
            str(ready),
            str(small),
            Crops(),
            quant_format=QuantFormat.QOperator,  # opens sooner than pairs of (de)quantising nodes
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            per_channel=True,
            reduce_range=seven_bit_weights,
            nodes_to_exclude=_float_nodes(onnx.load(str(ready)).graph.node),
        )
        return small.read_bytes()


def _float_nodes(nodes: Sequence[Any]) -> list[str]:
    kinds = [node.op_type for node in nodes]
    first, last = kinds.index(FIRST), kinds.index(LAST)
    return [
        node.name
        for place, node in enumerate(nodes)
        if not first <= place < last or node.op_type == "Add"
    ]
