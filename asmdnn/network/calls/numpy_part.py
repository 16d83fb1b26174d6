"""Nodes without a kernel, as a part of a network: computed by their definitions, on what is there before."""

from collections.abc import Mapping, Sequence

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.operators.evaluation import results_of


class NumpyPart:
    """known: dims and types of all that the nodes read and make, and the data of constants."""

    def __init__(self, known: Mapping[str, Value], nodes: Sequence[Node]) -> None:
        self.known, self.nodes = known, nodes

    def prepare(self) -> None:
        """There is nothing to be made."""

    def run(self, values: dict[str, Array], into: Mapping[str, Array] | None = None) -> None:
        """Raises InvalidArguments for data that a definition does not take, Unimplemented, OutOfMemory."""
        for node in self.nodes:
            inputs = [None if x == NOTHING else self.value(x, values) for x in node.inputs]
            for name, array in zip(node.outputs, results_of(node, inputs), strict=False):
                if name in self.known:
                    values[name] = as_planned(node, self.known[name], array)

    def value(self, name: str, values: Mapping[str, Array]) -> Array:
        known = self.known[name]
        if known.data is not None:
            return known.data
        with np.errstate(all="ignore"):  # of integers kernels make f32
            return values[name].astype(known.dtype, copy=False)


def as_planned(node: Node, planned: Value, array: Array) -> Array:
    """A result with the dims and the type that it was planned with, by which kernels read it."""
    if array.shape != planned.shape:
        raise InvalidArguments(f"{node} makes dims {array.shape} of this data, and was planned for {planned.shape}")
    with np.errstate(all="ignore"):
        return np.asarray(array, planned.dtype)
