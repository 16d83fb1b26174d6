"""What a DequantizeLinear or QuantizeLinear says of integers: floats = scale (integers - zero)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.operators.definition import Value, normal
from asmdnn.network.quantized.weights import DEQUANTIZE
from asmdnn.network.static import StaticGraph
from asmdnn.planning.refusal import Refused
from asmdnn.records import dataclass

BYTES = (np.uint8, np.int8)


@dataclass(frozen=True, eq=False)
class Integers:
    """scale f64, zero i64: one number each, or one for each index of `axis`; dtype: of the integers."""

    scale: Array
    zero: Array
    axis: int
    dtype: np.dtype[Any]

    @property
    def is_common(self) -> bool:
        """Whether all elements have one scale, which is above 0, and one zero point."""
        return self.scale.size == self.zero.size == 1 and bool(self.scale.min() > 0)

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the largest integer."""
        found = np.iinfo(self.dtype)
        return int(found.min), int(found.max)

    @property
    def key(self) -> tuple[float, int, str]:
        """Of a common scale: equal for equal numbers."""
        return float(self.scale.ravel()[0]), int(self.zero.ravel()[0]), self.dtype.str


def quantization_of(values: Mapping[str, Value], node: Node) -> Integers:
    """Raises Refused unless they are constants, of bytes and f32, without blocks."""
    is_made = node.op == DEQUANTIZE
    integers, floats = (values[name] for name in (node.inputs[0], node.outputs[0])[:: 1 if is_made else -1])
    names = [name for name in node.inputs[1:] if name != NOTHING]
    data = [values[name].data for name in names]
    if integers.dtype not in BYTES or floats.dtype != np.float32:
        raise Refused(
            f"{integers.dtype.name} as {floats.dtype.name} has no kernel, only uint8 and int8 as float32 have"
        )
    if node.get("block_size", 0):
        raise Refused("blocks of one scale each have no kernel")
    if any(array is None for array in data):
        raise Refused(f"its scale {names[0]} or its zero point is no constant")
    scale, *zeros = (np.ravel(np.asarray(array)) for array in data)
    zero = zeros[0].astype(np.int64) if zeros else np.zeros(1, np.int64)
    axis = normal(node.get("axis", 1), len(integers.shape)) if scale.size > 1 else 0
    return Integers(scale.astype(np.float64), zero, axis, integers.dtype)


def common_numbers(values: Mapping[str, Value], node: Node) -> Integers | None:
    """Those of a node with one scale for all; None if there is no kernel for it."""
    try:
        found = quantization_of(values, node)
    except Refused:
        return None
    return found if found.is_common else None


def output_steps(graph: StaticGraph) -> dict[str, float]:
    """Of outputs that are bytes, or floats of bytes, what one step is: results may be rounded to either side."""
    makers = {name: node for node in graph.nodes for name in node.outputs}
    found = {name: 1.0 for name, value in graph.outputs.items() if graph.values[value].dtype in BYTES}
    for name, value in graph.outputs.items():
        node = makers.get(value)
        numbers = common_numbers(graph.values, node) if node is not None and node.op == DEQUANTIZE else None
        if numbers is not None:
            found[name] = float(numbers.scale.max())
    return found


def around_zero(integers: Array, numbers: Integers, axis: int) -> Array:
    """Bytes less their zero points, one or one for each index of an axis, as int16."""
    zero = numbers.zero.astype(np.int16)
    dims = [-1 if i == axis else 1 for i in range(integers.ndim)] if zero.size > 1 else []
    return integers.astype(np.int16) - zero.reshape(dims)
