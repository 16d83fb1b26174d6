"""Rules of resampling: the gradient that the primitive has; of other nodes a product for each axis, which is one with a
matrix of its taps, so that its adjoint is one with the transposed."""

from math import prod

import numpy as np

from asmdnn.definitions.resampling import along
from asmdnn.network.gradients.table import Gradients, Rule, given_of
from asmdnn.network.gradients.words import GradientWords
from asmdnn.network.graph import Node
from asmdnn.network.operators.resizing import (
    CROP,
    coordinates_of,
    placed_as,
    resize_inputs,
    resized,
    roundings_of,
    taps_of,
    why_no_kernel,
)


def resize(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Places say nothing of the loss.  Axis by axis from the last one on."""
    if coordinates_of(node) == CROP:
        raise w.asked.refused(f"{CROP} has none")
    d, dims = given_of(given), w.shape(node.inputs[0])
    data = [w.data_of(node, i) for i in range(1, len(node.inputs))]
    outputs, factors = resized(node, dims, *resize_inputs(node, tuple(data)))
    if not why_no_kernel(node, dims, outputs, factors):
        rounding = min(roundings_of(node, dims, outputs, factors), default="floor")
        coordinates = placed_as(node, dims, outputs, factors)
        words = {"mode": node.get("mode", "nearest"), "coordinates": coordinates, "rounding": rounding}
        found = w.own("ResizeGradient", d, image=dims, factors=tuple(factors[2:]), **words)
        return *found, *[None] * (len(node.inputs) - 1)
    for axis in reversed(range(len(dims))):
        n, wanted = dims[axis], outputs[axis]
        if (n, 1.0) != (wanted, factors[axis]):
            matrix = along(np.eye(n), 0, taps_of(node, n, wanted, factors[axis]))
            d = times(w, d, axis, matrix.T)
    return d, *[None] * (len(node.inputs) - 1)


def times(w: GradientWords, d: str, axis: int, matrix: np.ndarray) -> str:
    """A matrix times each column along an axis."""
    dims = w.shape(d)
    before, after = prod(dims[:axis]), prod(dims[axis + 1 :])
    made = (*dims[:axis], len(matrix), *dims[axis + 1 :])
    if after == 1:
        return w.reshaped(w("MatMul", w.reshaped(d, before, dims[axis]), w.constant(matrix.T)), *made)
    return w.reshaped(w("MatMul", w.constant(matrix), w.reshaped(d, before, dims[axis], after)), *made)


RULES: dict[str, Rule] = dict.fromkeys(("Resize", "Upsample"), resize)
