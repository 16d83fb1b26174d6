"""Products with weights of 4 or 8 bits and scales by groups of k: what com.microsoft's MatMulNBits is read as.

Inputs: a f32 (.., k); octets u8, as primitives/quantized/octets.py has them; scales f32 (k / group, n); offsets, scales
times zero points, if these differ.  Attributes: bits, group, zero_point, and rounds, whether a is rounded to 8 bits by
groups.
"""

import numpy as np

from asmdnn.definitions.rounding import rounded_by_groups
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Type, Value
from asmdnn.primitives.quantized.octets import numbers_in


def product(node: Node, a: Array, octets: Array, scales: Array, offsets: Array | None = None) -> Array:
    """a (scales numbers - offsets), in a's type."""
    shift = scales * node.get("zero_point") if offsets is None else offsets
    x = rounded_by_groups(a, node.get("group")) if node.get("rounds") else a
    return np.asarray(x @ floats(node, octets, scales, -shift, a.dtype))


def largest_sums(node: Node, a: Array, octets: Array, scales: Array, offsets: Array | None = None) -> Array:
    """What is summed, without signs."""
    shift = scales * node.get("zero_point") if offsets is None else offsets
    return np.asarray(np.abs(a) @ floats(node, octets, np.abs(scales), np.abs(shift), a.dtype))


def floats(node: Node, octets: Array, scales: Array, shift: Array, dtype: np.dtype[np.generic]) -> Array:
    """scales numbers + shift, by groups."""
    numbers = numbers_in(octets, node.get("bits")).reshape(len(scales), node.get("group"), -1)
    found = numbers.astype(dtype) * scales[:, None] + shift[:, None]
    return np.asarray(found, dtype).reshape(-1, scales.shape[1])


def types(node: Node, a: Value, octets: Value, scales: Value, offsets: Value | None = None) -> list[Type]:
    k = len(scales.shape) and scales.shape[0] * node.get("group")
    if a.shape[-1:] != (k,) or a.dtype != scales.dtype:
        raise ValueError(f"its operand is {a.dtype} of dims {a.shape}, {scales.dtype} with {k} in the last one fit")
    return [((*a.shape[:-1], scales.shape[1]), a.dtype)]


OPERATORS = {"MatMulNBits": Operator(product, types)}
