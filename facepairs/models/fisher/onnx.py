"""The Fisher tower as an ONNX graph written by hand, several times faster than the exporter's.

The same numbers as Keras gives, to float32 rounding; `export_onnx` checks that. What makes it fast:

- Taking the root before cells are gathered, and dividing by a descriptor's sum after they are
  projected, turns gathering and projecting into one dilated convolution.
- A tent is two boxes, one after the other; the strength of a gradient goes in before the power.
- Numbers so small that they are denormal slow everything down severalfold, so that there are none:
  directions at right angles are exactly so, and no share is below e^-46 of its row's highest.
"""

from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from facepairs.models.fisher.descriptors import (
    CELL,
    FLAT,
    GRID,
    LUMA,
    ORIENTATIONS,
    SCALES,
    descriptors_per_line,
    margin,
    orientation_kernel,
)
from facepairs.models.fisher.tower import BACKBONE, PROJECTOR, FisherVector, mirror_signs

Array = npt.NDArray[Any]
OPSET, IR_VERSION = 18, 8
LARGEST_GAP = 46.0  # between the logarithms of a row's shares
TO_THE_END = np.iinfo(np.int64).max


class _Graph:
    """Collects nodes and constants; every method gives the name of what it made."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def floats(self, values: Any) -> str:
        return self._constant(np.asarray(values, np.float32))

    def whole(self, *values: int) -> str:
        return self._constant(np.array(values, np.int64))

    def _constant(self, values: Array) -> str:
        from onnx import numpy_helper

        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def add(self, kind: str, *inputs: str, out: str | None = None, **attributes: Any) -> str:
        name = out or f"n{len(self.nodes)}"
        self.split(kind, *inputs, names=[name], **attributes)
        return name

    def split(self, kind: str, *inputs: str, names: list[str], **attributes: Any) -> list[str]:
        from onnx import helper

        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names

    def resized(self, image: str, share: float) -> str:
        sizes = self.floats([1, 1, share, share])
        half = "half_pixel"
        return self.add(
            "Resize", image, "", sizes, mode="linear", coordinate_transformation_mode=half
        )

    def pooled(self, image: str, width: int, stride: int) -> str:
        kernel, strides = [width, width], [stride, stride]
        return self.add("AveragePool", image, kernel_shape=kernel, strides=strides)


def fisher_onnx(model: keras.Model, output: str) -> bytes | None:
    """Give the ONNX file of an inference model around a Fisher tower; None for any other model."""
    head = _fisher_head(model)
    if head is None:
        return None
    from onnx import TensorProto, helper

    name, crop_px, image_px = model.inputs[0].name, model.inputs[0].shape[1], head.input_shape[1]
    graph = _Graph()
    gray = _gray(graph, name, crop_px)
    if image_px != crop_px:
        gray = graph.resized(gray, image_px / crop_px)
    fisher = next(x for x in head.get_layer(BACKBONE).layers if isinstance(x, FisherVector))
    dense = head.get_layer(PROJECTOR).get_layer("projection")
    batch = graph.add("Shape", name, start=0, end=1)
    batch = graph.add("Concat", batch, graph.whole(1, 1), axis=0)
    vector = _vector(graph, _projected(graph, gray, image_px, fisher), batch, fisher)
    _embedding(graph, vector, fisher, dense, output)
    whole = helper.make_graph(
        graph.nodes,
        model.name,
        [helper.make_tensor_value_info(name, TensorProto.UINT8, ["N", crop_px, crop_px, 3])],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["N", dense.units])],
        graph.constants,
    )
    opset = [helper.make_opsetid("", OPSET)]
    data: bytes = helper.make_model(
        whole, opset_imports=opset, ir_version=IR_VERSION
    ).SerializeToString()
    return data


def _fisher_head(model: keras.Model) -> keras.Model | None:
    for layer in model.layers:
        parts = {part.name for part in getattr(layer, "layers", [])}
        if {BACKBONE, PROJECTOR} <= parts and len(model.inputs) == 1:
            return layer
    return None


def _gray(graph: _Graph, image: str, px: int) -> str:
    """uint8[N, px, px, 3] → [N, 1, px, px] in [0, 1]; steps of three along a line are pixels."""
    from onnx import TensorProto

    lines = graph.add("Reshape", image, graph.whole(-1, 1, px, 3 * px))
    lines = graph.add("Cast", lines, to=TensorProto.FLOAT)
    luma = graph.floats(np.reshape(LUMA, (1, 1, 1, 3)) / 255)
    return graph.add("Conv", lines, luma, kernel_shape=[1, 3], strides=[1, 3])


def _projected(graph: _Graph, gray: str, px: int, fisher: FisherVector) -> str:
    """Give x · basis - offset of all descriptors x: [N, C, P]."""
    basis, offset = (np.asarray(part) for part in fisher.projection)
    kernel = graph.floats(basis.reshape(GRID, GRID, ORIENTATIONS, -1).transpose(3, 2, 0, 1))
    by_side = {px: gray}
    found: list[tuple[str, str]] = []
    for eighths, step in SCALES:
        side = px * eighths // 8
        if side not in by_side:
            twice = by_side.get(2 * side)
            by_side[side] = graph.pooled(twice, 2, 2) if twice else graph.resized(gray, side / px)
        energy = _energy(graph, by_side[side], margin(side, step))
        found.append(_gathered(graph, energy, kernel, step, descriptors_per_line(side, step)))
    whole = [graph.add("Concat", *parts, axis=2) for parts in zip(*found, strict=True)]
    x = graph.add("Mul", *whole)
    return graph.add("Sub", x, graph.floats(offset[:, None]))


def _energy(graph: _Graph, gray: str, lost: int) -> tuple[str, str]:
    """Give the roots of all cells, [N, 8, y, x], and 1 / the root of each descriptor's sum.

    Without `lost` pixels on each side of the image.
    """
    across, down = _slope(graph, gray, lost)
    squares = graph.add("Add", *(graph.add("Mul", side, side) for side in (across, down)))
    strength = graph.add("Sqrt", graph.add("Add", squares, graph.floats(1e-10)))
    eighth = strength
    for _ in range(3):
        eighth = graph.add("Sqrt", eighth)
    # (cosine · strength^⅛)^8 = cosine^8 · strength
    slope = graph.add("Concat", across, down, axis=1)
    unit = graph.add("Mul", slope, graph.add("Div", eighth, strength))
    turn = (
        orientation_kernel().transpose(3, 2, 0, 1).round(7)
    )  # the cosine of 90 degrees is 0, not 6e-17
    energy = graph.add("Relu", graph.add("Conv", unit, graph.floats(turn)))
    for _ in range(3):
        energy = graph.add("Mul", energy, energy)
    cells = graph.pooled(energy, 2, 2)
    for _ in range(2):
        cells = graph.pooled(cells, 3, 1)
    total = graph.add("ReduceSum", cells, graph.whole(1), keepdims=1)
    ones = graph.floats(np.ones((1, 1, GRID, GRID)))
    total = graph.add("Conv", total, ones, dilations=[CELL, CELL])
    total = graph.add("Sqrt", graph.add("Add", total, graph.floats(FLAT)))
    return graph.add("Sqrt", cells), graph.add("Reciprocal", total)


def _slope(graph: _Graph, gray: str, lost: int) -> list[str]:
    """Do as `descriptors.gradient` does: differences along x and y, without the image's margin."""
    slopes = []
    for axis, other in ((3, 2), (2, 3)):
        lines = _part(graph, gray, other, lost, -lost)
        after = _part(graph, lines, axis, lost + 1, 1 - lost or TO_THE_END)
        before = _part(graph, lines, axis, lost - 1, -lost - 1)
        slopes.append(graph.add("Sub", after, before))
    return slopes


def _part(graph: _Graph, image: str, axis: int, start: int, end: int) -> str:
    return graph.add("Slice", image, graph.whole(start), graph.whole(end), graph.whole(axis))


def _gathered(
    graph: _Graph, energy: tuple[str, str], kernel: str, step: int, count: int
) -> tuple[str, str]:
    """Project descriptors, yet to be scaled, [N, C, count²], and give what scales them."""
    roots, scale = energy
    if step > 1:
        begins, ends = graph.whole(0, 0), graph.whole(TO_THE_END, TO_THE_END)
        scale = graph.add("Slice", scale, begins, ends, graph.whole(2, 3), graph.whole(step, step))
    found = graph.add("Conv", roots, kernel, dilations=[CELL, CELL], strides=[step, step])
    line = graph.whole(0, 0, count * count)
    return graph.add("Reshape", found, line), graph.add("Reshape", scale, line)


def _vector(graph: _Graph, x: str, batch: str, fisher: FisherVector) -> str:
    """[N, C, P] → [N, 2·(C + 2), K], how descriptors differ from the mixture, root taken."""
    means, deviations, log_priors = (np.asarray(part, np.float64).T for part in fisher.mixture)
    priors, count = np.exp(log_priors), len(fisher.positions)  # the others are [C + 2, K]
    first, second, zeroth = _sums(graph, x, batch, fisher, means, deviations, priors)
    to_means = graph.add("Sub", first, graph.add("Mul", zeroth, graph.floats(means)))
    to_means = graph.add("Mul", to_means, graph.floats(1 / (deviations * np.sqrt(priors) * count)))
    spread = graph.add("Sub", second, graph.add("Mul", first, graph.floats(2 * means)))
    lifted = graph.add("Mul", zeroth, graph.floats(means**2 - deviations**2))
    spread = graph.add("Add", spread, lifted)
    spread = graph.add(
        "Mul", spread, graph.floats(1 / (deviations**2 * np.sqrt(2 * priors) * count))
    )
    vector = graph.add("Concat", to_means, spread, axis=1)
    size = graph.add("Max", graph.add("Abs", vector), graph.floats(1e-30))  # no 0 / 0
    return graph.add("Div", vector, graph.add("Sqrt", size))


def _sums(
    graph: _Graph,
    x: str,
    batch: str,
    fisher: FisherVector,
    means: Array,
    deviations: Array,
    priors: Array,
) -> tuple[str, str, str]:
    """Sum descriptors, their squares and 1, by share: [N, C + 2, K] twice and [N, 1, K]."""
    width, precision = fisher.components, deviations**-2
    constant = np.log(priors) - (np.log(deviations) + 0.5 * means**2 * precision).sum(axis=0)
    pull, pull2 = means * precision, -0.5 * precision
    rows = [pull[:width], pull2[:width], pull[width:], pull2[width:], constant[None]]
    places = fisher.positions.T
    known = np.concatenate([places, places**2, np.ones((1, places.shape[1]))])[None]
    expanded = graph.add("Expand", graph.floats(known), batch)
    x = graph.add("Concat", x, graph.add("Mul", x, x), expanded, axis=1)
    turned = graph.add("Transpose", x, perm=[0, 2, 1])
    share = graph.add("MatMul", turned, graph.floats(np.concatenate(rows)))
    highest = graph.add("ReduceMax", share, graph.whole(-1), keepdims=1)
    share = graph.add("Max", share, graph.add("Sub", highest, graph.floats(LARGEST_GAP)))
    share = graph.add("Softmax", share, axis=-1)
    sums = graph.add("MatMul", x, share)
    names = [f"{sums}_{part}" for part in range(5)]
    sizes = graph.whole(width, width, 2, 2, 1)
    own, squares, place, place_squares, zeroth = graph.split(
        "Split", sums, sizes, names=names, axis=1
    )
    first = graph.add("Concat", own, place, axis=1)
    second = graph.add("Concat", squares, place_squares, axis=1)
    return first, second, zeroth


def _embedding(graph: _Graph, vector: str, fisher: FisherVector, dense: Any, output: str) -> None:
    """Bring vectors to length one, project, add image and mirror image, to length one each time."""
    kernel, bias = (np.asarray(weight) for weight in dense.get_weights())
    wide, half = 2 * (fisher.components + 2), fisher.gaussians // 2
    kernel = kernel.reshape(fisher.gaussians, wide, -1).transpose(1, 0, 2)  # as `_vector` has them
    halves = [f"{vector}_first", f"{vector}_second"]
    graph.split("Split", vector, graph.whole(half, half), names=halves, axis=2)
    turned = np.concatenate([mirror_signs(fisher.components), np.ones(wide // 2)])[:, None]
    mirrored = graph.add("Concat", *reversed(halves), axis=2)
    mirrored = graph.add("Mul", mirrored, graph.floats(turned))
    line = graph.whole(-1, wide * fisher.gaussians)
    own, mirrored = (graph.add("Reshape", side, line) for side in (vector, mirrored))
    both = graph.add("Concat", own, mirrored, axis=0)
    projected = graph.add("MatMul", both, graph.floats(kernel.reshape(-1, dense.units)))
    length = _length(graph, own)  # that of the mirror image's too
    projected = graph.add("Div", projected, graph.add("Concat", length, length, axis=0))
    projected = graph.add("Add", projected, graph.floats(bias))
    projected = graph.add("Div", projected, _length(graph, projected))
    names = [f"{projected}_own", f"{projected}_mirrored"]
    sides = graph.split("Split", projected, names=names, axis=0, num_outputs=2)
    embedding = graph.add("Add", *sides)
    graph.add("Div", embedding, _length(graph, embedding), out=output)


def _length(graph: _Graph, rows: str) -> str:
    length = graph.add("ReduceL2", rows, graph.whole(1), keepdims=1)
    return graph.add("Max", length, graph.floats(1e-6))
