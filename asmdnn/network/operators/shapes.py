"""Operators that keep parts of tensors by their place: triangles, centres; and bits as another type."""

import numpy as np

from asmdnn.network.element_types import element_type
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Type, Value, axes_of, bounded, ints, number


def triangle(node: Node, x: Array, k: Array | None = None) -> Array:
    """The upper or lower triangle of matrices, from the k-th diagonal on."""
    diagonal = 0 if k is None else int(number(k))
    return np.asarray(np.triu(x, diagonal) if node.get("upper", 1) else np.tril(x, diagonal), x.dtype)


def centre(node: Node, x: Array, sizes: Array) -> Array:
    """Cut or padded with zeros to sizes, as much on both sides; what is odd goes after, and is cut in front less."""
    wanted = sizes_by_axis(node, x.ndim, sizes)
    for axis, size in wanted.items():
        n = x.shape[axis]
        before = abs(size - n) // 2
        if size < n:
            x = np.take(x, range(before, before + size), axis)
        else:
            x = np.pad(x, [(before, size - n - before) if i == axis else (0, 0) for i in range(x.ndim)])
    return x


def triangle_types(node: Node, x: Value, k: Value | None = None) -> list[Type]:
    if len(x.shape) < 2 or (k is not None and k.data is not None and np.size(k.data) != 1):
        raise ValueError(f"dims {x.shape} are not those of matrices, or k is no number")
    return [(x.shape, x.dtype)]


def sizes_by_axis(node: Node, ndim: int, sizes: Array | None) -> dict[int, int]:
    axes = axes_of(node, None, ndim) or tuple(range(ndim))
    return dict(zip(axes, ints(sizes), strict=True))


def centre_types(node: Node, x: Value, sizes: Value) -> list[Type]:
    wanted = sizes_by_axis(node, len(x.shape), sizes.data)
    return [(bounded(tuple(wanted.get(axis, n) for axis, n in enumerate(x.shape))), x.dtype)]


def bit_types(node: Node, x: Value) -> list[Type]:
    dtype = element_type(node.get("to", 0), "BitCast")
    if dtype.itemsize != x.dtype.itemsize:
        raise ValueError(f"{x.dtype} and {dtype} have different sizes")
    return [(x.shape, dtype)]


def det_types(node: Node, x: Value) -> list[Type]:
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"dims {x.shape} are not those of square matrices")
    return [(x.shape[:-2], x.dtype)]


OPERATORS = {
    "Trilu": Operator(triangle, triangle_types),
    "CenterCropPad": Operator(centre, centre_types, (1,)),
    "BitCast": Operator(
        lambda node, x: np.ascontiguousarray(x).view(bit_types(node, Value(x.shape, x.dtype))[0][1]).reshape(x.shape),
        bit_types,
    ),
    "Det": Operator(lambda node, x: np.asarray(np.linalg.det(x), x.dtype), det_types),
}
