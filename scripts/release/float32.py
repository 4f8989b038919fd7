"""Cut the weights out of a network in float32, because the bundle's Keras file has them already."""

import io
import zipfile

import numpy as np

from facepairs.bundles.bundle import KERAS_WEIGHTS

LARGE = 4_096  # numbers in a tensor; smaller ones take little space
AS_ONNX = [3, 2, 0, 1]  # Keras's filters [y, x, in, out] as ONNX takes them


def cut_weights(network: bytes, keras_file: bytes) -> tuple[bytes, list[tuple[int, int, int]]]:
    """Return what is left of a network, and the pieces that `Bundle.read_float32` puts back.

    Args:
        network: Content of the ONNX file that `export_onnx` made of the Keras model.
        keras_file: Content of the model's `.keras` file.

    Returns:
        The network without its large tensors, and of each its place in these bytes, its place in
        Keras's file of weights, and its length.

    Raises:
        ValueError: A large tensor is not among the Keras weights.
    """
    import onnx
    from onnx import helper, numpy_helper

    with zipfile.ZipFile(io.BytesIO(keras_file)) as archive:
        weights = archive.read(KERAS_WEIGHTS)
    model = onnx.load_model_from_string(network)
    halves = {node.input[0]: node for node in model.graph.node if node.op_type == "Cast"}
    tensors, filters, tables = [], [], list[bytes]()
    for tensor in model.graph.initializer:
        values, name = numpy_helper.to_array(tensor), tensor.name
        if values.size < LARGE:
            tensors.append(tensor)
            continue
        if name in halves:  # stored in half precision: as it was before
            cast = halves[name]
            name = cast.output[0]
            model.graph.node.remove(cast)
        if values.ndim == len(AS_ONNX):
            values = values.transpose(np.argsort(AS_ONNX))
            as_keras = f"{name}/keras"
            filters.append(helper.make_node("Transpose", [as_keras], [name], perm=AS_ONNX))
            name = as_keras
        table = np.ascontiguousarray(values, "<f4")
        tables.append(table.tobytes())
        tensors.append(numpy_helper.from_array(table, name))
    nodes = [*filters, *model.graph.node]
    del model.graph.initializer[:], model.graph.node[:]
    model.graph.initializer.extend(tensors)
    model.graph.node.extend(nodes)
    return _cut(model.SerializeToString(), tables, weights)


def _cut(
    network: bytes, tables: list[bytes], weights: bytes
) -> tuple[bytes, list[tuple[int, int, int]]]:
    """Cut tables out of the bytes of a network, in which they stand in this order."""
    rest, pieces, at = b"", list[tuple[int, int, int]](), 0
    for table in tables:
        start = network.index(table, at)
        rest += network[at:start]
        pieces.append((len(rest), weights.index(table), len(table)))
        at = start + len(table)
    return rest + network[at:], pieces
