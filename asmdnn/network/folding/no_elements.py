"""Results without elements: they are constants, as there is nothing to compute."""

from collections.abc import Sequence

import numpy as np

from asmdnn.network.declaring import integer_dims
from asmdnn.network.graph import Node
from asmdnn.network.operators.definition import Type, Value

# Whose kernels make some elements; others may make none.
OPERATORS = {"Slice", "Tile", "Gather", "GatherElements", "TopK", "Hardmax", "QuantizeLinear", "DequantizeLinear"}


def is_nothing(node: Node, types: Sequence[Type]) -> bool:
    return not node.domain and node.op in OPERATORS and any(n == 0 for n in types[0][0])


def nothing(types: Sequence[Type]) -> list[Value]:
    """Of results of these dims."""
    arrays = [np.empty(integer_dims(shape), dtype) for shape, dtype in types]
    return [Value(array.shape, array.dtype, array) for array in arrays]
