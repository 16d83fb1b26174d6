"""Products with weights of 4 or 8 bits and scales by groups of k: what com.microsoft's MatMulNBits is read as.

Inputs: a f32 (.., k); octets u8, as primitives/quantized/octets.py has them; scales f32 (k / group, n); offsets, scales
times zero points, if these differ.  Attributes: bits, group, zero_point, and rounds, whether a is rounded to 8 bits by
groups.
"""

import numpy as np

from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Type, Value
from asmdnn.primitives.quantized.octets import numbers_in

MOST = 127


def product(node: Node, a: Array, octets: Array, scales: Array, offsets: Array | None = None) -> Array:
    """a (scales numbers - offsets), in a's type."""
    shift = scales * node.get("zero_point") if offsets is None else offsets
    x = rounded(a, node.get("group")) if node.get("rounds") else a
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


def rounded(a: Array, group: int) -> Array:
    """As f32 rounds; a group of zeros stays what it is."""
    x = a.astype(np.float32).reshape(*a.shape[:-1], -1, group)
    most = np.abs(x).max(-1, keepdims=True)
    octets = np.rint(x * (np.float32(MOST) / np.where(most == 0, np.float32(1), most)))
    scales = (most * np.float32(1 / MOST)).astype(a.dtype)
    return np.asarray(octets.astype(a.dtype) * scales).reshape(a.shape)


def types(node: Node, a: Value, octets: Value, scales: Value, offsets: Value | None = None) -> list[Type]:
    return [((*a.shape[:-1], scales.shape[1]), a.dtype)]


OPERATORS = {"MatMulNBits": Operator(product, types)}
