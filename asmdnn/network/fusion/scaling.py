"""A product with a number for each channel in front of a convolution becomes scales of its operand.

    conv(x s) with s (n or 1, c, 1, ...)

is what ends squeeze-and-excite.  The primitive multiplies its weights for each image, or x on a way that it takes
anyhow (docs/convolution.md), so that x has no pass of its own; each product is rounded once, as before, or with the
weight instead of x.  Where the product can join the kernel that makes x it does: maps.py asks for those that are left.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from asmdnn.network.graph import NOTHING
from asmdnn.network.operators.definition import Shape
from asmdnn.network.static import StaticGraph


def scaled_by(
    graph: StaticGraph, number: int, users: Mapping[str, Sequence[int]], readers: Mapping[str, int]
) -> int | None:
    """The convolution of constant weights whose operand a node scales, and nobody else reads."""
    node = graph.nodes[number]
    if node.op != "Mul" or node.domain or operands_of(graph, node.inputs, graph.shape(node.outputs[0])) is None:
        return None
    (result,) = node.outputs
    found = users.get(result, ())
    reader = graph.nodes[found[0]] if len(found) == 1 and readers[result] == 1 else None
    is_conv = reader is not None and reader.op == "Conv" and not reader.domain and reader.inputs[0] == result
    is_conv = is_conv and all(graph.is_constant(name) for name in reader.inputs[1:] if name != NOTHING)  # type: ignore[union-attr]
    return found[0] if is_conv and graph.values[result].dtype == np.float32 else None


def operands_of(graph: StaticGraph, names: Sequence[str], dims: tuple[int, ...]) -> tuple[str, str] | None:
    """(x, scales) of the two."""
    for x, scales in (names, names[::-1]):
        if are_of_channels(graph.shape(scales), dims) and graph.shape(x) == dims and not graph.is_constant(scales):
            return x, scales
    return None


def are_of_channels(shape: Shape, dims: Shape) -> bool:
    """Whether a tensor has a number for each channel of images of these dims, which are larger than a pixel.  Dims that
    stand for several are asked about last, and not at all where the tensor is an image of the same size."""
    if not len(shape) == len(dims) > 2 or all(own is n for own, n in zip(shape[2:], dims[2:], strict=True)):
        return False
    is_scale = shape[1] == dims[1] and all(n == 1 for n in shape[2:]) and any(n > 1 for n in dims[2:])
    return is_scale and (shape[0] is dims[0] or shape[0] in (1, dims[0]))
