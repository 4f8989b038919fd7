"""The Fisher tower and its mirror image as an ONNX graph written by hand: a third of the time.

The same numbers as Keras gives, to float32 rounding; `export_onnx` checks that. What makes it fast:

- A mirror image's descriptors are the image's own with orientations and columns swapped, so that
  gradients and cells are computed once for both, and the swap goes into the projection.
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

from facepairs.models.descriptors import (
    CELL,
    FLAT,
    GRID,
    LUMA,
    ORIENTATIONS,
    SCALES,
    directions,
)
from facepairs.models.fisher import DESCRIBE, PROJECT, FisherVector

Array = npt.NDArray[Any]
OPSET, IR_VERSION = 18, 8
LARGEST_GAP = 46.0  # between the logarithms of a row's shares
MARGIN = 4 + (GRID - 1) * CELL  # points lost to the tent and to the grid
MIRRORED = (ORIENTATIONS // 2 - np.arange(ORIENTATIONS)) % ORIENTATIONS  # x becomes -x
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
    fisher = next(x for x in head.get_layer(DESCRIBE).layers if isinstance(x, FisherVector))
    dense = head.get_layer(PROJECT).get_layer("projection")
    sides = _projected(graph, gray, image_px, np.asarray(fisher.basis))
    batch = graph.add("Shape", name, start=0, end=1)
    batch = graph.add("Concat", batch, graph.whole(1, 1), axis=0)
    vectors = [
        _vector(graph, side, _places(fisher, image_px, mirrored), batch, fisher)
        for mirrored, side in enumerate(sides)
    ]
    _embedding(graph, vectors, fisher, dense, output)
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
        if {DESCRIBE, PROJECT} <= parts and len(model.inputs) == 1:
            return layer
    return None


def _gray(graph: _Graph, image: str, px: int) -> str:
    """uint8[N, px, px, 3] → [N, 1, px, px] in [0, 1]; steps of three along a line are pixels."""
    from onnx import TensorProto

    lines = graph.add("Reshape", image, graph.whole(-1, 1, px, 3 * px))
    lines = graph.add("Cast", lines, to=TensorProto.FLOAT)
    luma = graph.floats(np.reshape(LUMA, (1, 1, 1, 3)) / 255)
    return graph.add("Conv", lines, luma, kernel_shape=[1, 3], strides=[1, 3])


def _projected(graph: _Graph, gray: str, px: int, basis: Array) -> list[str]:
    """Give x · basis of all descriptors x, of the image and its mirror image: [N, C, P] each."""
    cells = basis.reshape(GRID, GRID, ORIENTATIONS, -1).transpose(3, 2, 0, 1)
    kernels = [graph.floats(cells), graph.floats(cells[:, MIRRORED][..., ::-1])]
    by_side = {px: gray}
    found: list[list[tuple[str, str]]] = [[], []]
    for eighths, step in SCALES:
        side = px * eighths // 8
        if side not in by_side:
            twice = by_side.get(2 * side)
            by_side[side] = graph.pooled(twice, 2, 2) if twice else graph.resized(gray, side / px)
        energy = _energy(graph, by_side[side])
        count = (side - 2) // 2 - MARGIN
        for mirrored, kernel in enumerate(kernels):
            start = (count - 1) % step if mirrored else 0  # its last point is our first
            found[mirrored].append(
                _gathered(graph, energy, kernel, step, start, len(range(0, count, step)))
            )
    return [_scaled(graph, parts) for parts in found]


def _scaled(graph: _Graph, parts: list[tuple[str, str]]) -> str:
    whole = [graph.add("Concat", *some, axis=2) for some in zip(*parts, strict=True)]
    return graph.add("Mul", *whole)


def _energy(graph: _Graph, gray: str) -> tuple[str, str]:
    """Give the roots of all cells, [N, 8, y, x], and 1 / the root of each descriptor's sum."""
    across, down = _slope(graph, gray)
    squares = graph.add("Add", *(graph.add("Mul", side, side) for side in (across, down)))
    strength = graph.add("Sqrt", graph.add("Add", squares, graph.floats(1e-10)))
    eighth = strength
    for _ in range(3):
        eighth = graph.add("Sqrt", eighth)
    # (cosine · strength^⅛)^8 = cosine^8 · strength
    slope = graph.add("Concat", across, down, axis=1)
    unit = graph.add("Mul", slope, graph.add("Div", eighth, strength))
    turn = directions().transpose(3, 2, 0, 1).round(7)  # the cosine of 90 degrees is 0, not 6e-17
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


def _slope(graph: _Graph, gray: str) -> list[str]:
    """Do as `descriptors.gradient` does: differences along x and y, without the image's margin."""
    x, y, end = graph.whole(3), graph.whole(2), graph.whole(TO_THE_END)
    slopes = []
    for axis, other in ((x, y), (y, x)):
        lines = graph.add("Slice", gray, graph.whole(1), graph.whole(-1), other)
        after = graph.add("Slice", lines, graph.whole(2), end, axis)
        before = graph.add("Slice", lines, graph.whole(0), graph.whole(-2), axis)
        slopes.append(graph.add("Sub", after, before))
    return slopes


def _gathered(
    graph: _Graph, energy: tuple[str, str], kernel: str, step: int, start: int, count: int
) -> tuple[str, str]:
    """Project descriptors, yet to be scaled, on a grid that begins at column `start`.

    Gives [N, C, count²] and what to multiply them with, [N, 1, count²].
    """
    roots, scale = energy
    if start:
        roots = graph.add(
            "Slice", roots, graph.whole(start), graph.whole(TO_THE_END), graph.whole(3)
        )
    if step > 1:
        ends, axes = graph.whole(TO_THE_END, TO_THE_END), graph.whole(2, 3)
        begins, steps = graph.whole(0, start), graph.whole(step, step)
        scale = graph.add("Slice", scale, begins, ends, axes, steps)
    found = graph.add("Conv", roots, kernel, dilations=[CELL, CELL], strides=[step, step])
    line = graph.whole(0, 0, count * count)
    return graph.add("Reshape", found, line), graph.add("Reshape", scale, line)


def _places(fisher: FisherVector, px: int, mirrored: int) -> Array:
    """Give where descriptors stand, [P, 2]; a mirror image's come last column first."""
    places, at = [], 0
    for eighths, step in SCALES:
        count = len(range(0, (px * eighths // 8 - 2) // 2 - MARGIN, step))
        grid = fisher.places[at : at + count * count].reshape(count, count, 2)
        places.append((grid[:, ::-1] if mirrored else grid).reshape(-1, 2))
        at += count * count
    return np.concatenate(places)


def _vector(graph: _Graph, x: str, places: Array, batch: str, fisher: FisherVector) -> str:
    """[N, C, P] → [N, 2·(C + 2)·K], how descriptors differ from the mixture, root taken."""
    means, deviations, priors = (
        np.asarray(weight, np.float64).T
        for weight in (fisher.means, fisher.deviations, np.exp(fisher.log_priors))
    )  # [C + 2, K] twice, and [K]
    count = len(places)
    first, second, zeroth = _sums(graph, x, places, batch, fisher, means, deviations, priors)
    to_means = graph.add("Sub", first, graph.add("Mul", zeroth, graph.floats(means)))
    to_means = graph.add("Mul", to_means, graph.floats(1 / (deviations * np.sqrt(priors) * count)))
    spread = graph.add("Sub", second, graph.add("Mul", first, graph.floats(2 * means)))
    lifted = graph.add("Mul", zeroth, graph.floats(means**2 - deviations**2))
    spread = graph.add("Add", spread, lifted)
    spread = graph.add(
        "Mul", spread, graph.floats(1 / (deviations**2 * np.sqrt(2 * priors) * count))
    )
    both = graph.add("Concat", to_means, spread, axis=1)
    vector = graph.add("Reshape", both, graph.whole(0, 2 * means.size))
    size = graph.add("Max", graph.add("Abs", vector), graph.floats(1e-30))  # no 0 / 0
    return graph.add("Div", vector, graph.add("Sqrt", size))


def _sums(
    graph: _Graph,
    x: str,
    places: Array,
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
    known = np.concatenate([places.T, places.T**2, np.ones((1, len(places)))])[None]
    x = graph.add("Sub", x, graph.floats(np.asarray(fisher.offset)[:, None]))
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


def _embedding(
    graph: _Graph, vectors: list[str], fisher: FisherVector, dense: Any, output: str
) -> None:
    """Bring vectors to length one, project, add image and mirror image, to length one each time."""
    kernel, bias = (np.asarray(weight) for weight in dense.get_weights())
    wide = 2 * (fisher.components + 2)
    kernel = kernel.reshape(fisher.gaussians, wide, -1).transpose(1, 0, 2)  # as `_vector` has them
    both = graph.add("Concat", *vectors, axis=0)
    projected = graph.add("MatMul", both, graph.floats(kernel.reshape(-1, dense.units)))
    projected = graph.add("Div", projected, _length(graph, both))
    projected = graph.add("Add", projected, graph.floats(bias))
    projected = graph.add("Div", projected, _length(graph, projected))
    names = [f"{projected}_own", f"{projected}_mirrored"]
    sides = graph.split("Split", projected, names=names, axis=0, num_outputs=2)
    embedding = graph.add("Add", *sides)
    graph.add("Div", embedding, _length(graph, embedding), out=output)


def _length(graph: _Graph, rows: str) -> str:
    length = graph.add("ReduceL2", rows, graph.whole(1), keepdims=1)
    return graph.add("Max", length, graph.floats(1e-6))
