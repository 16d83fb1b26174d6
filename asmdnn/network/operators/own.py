"""Operators that fusion makes and ONNX does not have: domain "asmdnn" in a graph, never in a file."""

from math import prod

import numpy as np

from asmdnn.definitions.moves import scattered, shuffled
from asmdnn.definitions.random_numbers import mixed, normals, uniforms
from asmdnn.definitions.softmax import attention as attended
from asmdnn.definitions.suppression import suppressed
from asmdnn.network.graph import Array, Node
from asmdnn.network.limits import COUNTED, too_many
from asmdnn.network.operators import few_bits, gradients, recurrent, selection, trained_recurrent, training, trees
from asmdnn.network.operators.definition import Operator, Type, Value, same_as_first
from asmdnn.network.operators.products import conv, conv_types, matmul_types

OWN = "asmdnn"
DRAWN = "RandomNumbers"  # of shape and kind, by no seed, or by one and a place
BOUNDED = ("NonZero", "Compress", "Unique", "NonMaxSuppression")  # of a model whose caller gives them bounds


def channel_shuffle(node: Node, x: Array) -> Array:
    """Axis 1, read as a matrix of `groups` rows, transposed."""
    return shuffled(x, 1, node.get("groups"))


def attention(node: Node, query: Array, key: Array, value: Array, mask: Array | None = None) -> Array:
    """softmax(query key^T scale + mask) value for every head."""
    return attended(query, key, value, node.get("scale"), 0 if mask is None else mask)


def one_hot_rows(node: Node, indices: Array, table: Array) -> Array:
    """Rows of all but the last one, which stands for indices that choose none of them."""
    last = len(table) - 1
    return np.asarray(table[np.where((indices >= 0) & (indices < last), indices, last)])


def rows_types(node: Node, indices: Value, table: Value) -> list[Type]:
    return [((*indices.shape, table.shape[1]), table.dtype)]


def suppressed_boxes(node: Node, corners: Array, scores: Array) -> Array:
    """Of each class the numbers of `most` boxes, -1 after the last."""
    return suppressed(corners, scores, node.get("most"), node.get("overlap"), node.get("least")).astype(np.int64)


def suppressed_types(node: Node, corners: Value, scores: Value) -> list[Type]:
    return [((*scores.shape[:2], node.get("most")), np.int64)]


def scatter_rows(node: Node, x: Array, indices: Array, updates: Array) -> Array:
    """Rows of a matrix by the numbers of a vector: ONNX's scatters of flattened operands."""
    return scattered(x, indices, updates, 0, node.get("reduction"))


def counted_from_the_start(node: Node, x: Array) -> Array:
    """Indices along an axis of `limit` elements, from `least` on.  Raises ValueError for one out of range, but for
    those that are `ignored`."""
    limit, least = node.get("limit"), node.get("least", -node.get("limit"))
    if node.get("axis") == COUNTED and x.max() >= limit:
        raise ValueError(too_many(f"places of {node.get('of')}", int(x.max()), limit - 1))
    used = x if node.get("ignored") is None else x[x != node.get("ignored")]
    if used.size and not least <= used.min() <= used.max() < limit:
        raise ValueError(f"indices from {used.min()} to {used.max()} of {limit} elements along axis {node.get('axis')}")
    return np.asarray(np.where(x < 0, x + limit, x) if least < 0 else x)


def integer_types(node: Node, x: Value) -> list[Type]:
    return [(x.shape, np.int64)]


def sums_of_products(node: Node, a: Array, b: Array, zero: Array) -> Array:
    """(a - zero) b of integers, as floats; ONNX's MatMulInteger after a Cast."""
    return np.asarray((a.astype(np.float64) - zero.reshape(())) @ b.astype(np.float64), np.float32)


def sums_of_windows(node: Node, x: Array, w: Array, zero: Array) -> Array:
    """The convolution of x - zero by w, of integers, as floats; ONNX's ConvInteger after a Cast."""
    return np.asarray(conv(node, x.astype(np.float64) - zero.reshape(()), w.astype(np.float64)), np.float32)


def random_numbers(node: Node, seed: Array | None = None) -> Array:
    """By a seed and the node's place the same, without one others in every call."""
    if seed is not None:
        numbers = uniforms if node.get("kind") == "Uniform" else normals
        bits = mixed(int(seed.reshape(-1)[0]), 0, node.get("place")) % 2**32
        return numbers(bits, prod(node.get("shape"))).reshape(node.get("shape"))
    generator = np.random.default_rng()
    draw = generator.random if node.get("kind") == "Uniform" else generator.standard_normal
    return np.asarray(draw(node.get("shape"), np.float32))


OPERATORS = {
    **gradients.OPERATORS,
    **training.OPERATORS,
    **trained_recurrent.OPERATORS,
    **few_bits.OPERATORS,
    **trees.OPERATORS,
    **{op: selection.OPERATORS[op] for op in BOUNDED},
    "Index": Operator(counted_from_the_start, same_as_first),
    "LookedAt": Operator(lambda node, x, integers: x, same_as_first),
    "Number": Operator(lambda node, x: x.astype(np.float32), lambda node, x: [(x.shape, np.float32)]),
    "Integers": Operator(lambda node, x: x.astype(np.int64), integer_types),
    DRAWN: Operator(random_numbers, lambda node, *_: [(node.get("shape"), np.float32)]),
    "Written": Operator(lambda node, x: x, same_as_first),
    "OneHotRows": Operator(one_hot_rows, rows_types),
    "ScatterRows": Operator(scatter_rows, same_as_first),
    "Suppressed": Operator(suppressed_boxes, suppressed_types),
    "ChannelShuffle": Operator(channel_shuffle, same_as_first),
    "Attention": Operator(attention),
    "MatMulInteger": Operator(
        sums_of_products, lambda node, a, b, zero: [(matmul_types(node, a, b)[0][0], np.float32)]
    ),
    "DynamicQuantizeLSTM": Operator(recurrent.dynamic_layer, recurrent.dynamic_types),
    "ConvInteger": Operator(sums_of_windows, lambda node, x, w, zero: [(conv_types(node, x, w)[0][0], np.float32)]),
}
