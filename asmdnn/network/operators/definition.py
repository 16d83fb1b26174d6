"""The definition of an operator: how it is computed on arrays, and what is known of its results without computing.

Definitions follow https://onnx.ai/onnx/operators, for all versions from operator set 7 on; they work on f32 and f64
arrays alike, so that a verification can compute in double precision.
"""

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from asmdnn.memory.traced import is_integer
from asmdnn.network.graph import Array, Node
from asmdnn.network.passing import is_half
from asmdnn.records import dataclass

Shape = tuple[int, ...]
Results = Array | tuple[Array, ...]
MOST_ELEMENTS = 1 << 28  # of what numpy computes: 1 GiB of f32

KEEP_TYPES = {
    "Cast",
    "CastLike",
    "BitCast",
    "DequantizeLinear",
    "QuantizeLinear",
}  # whose results have own types
AXES_MOVED = 13  # the operator set since which axes, splits and the like are inputs instead of attributes


class Value(NamedTuple):
    """What is known of a tensor before the network runs: its data only if it is a constant."""

    shape: Shape
    dtype: np.dtype[Any]
    data: Array | None = None


Type = tuple[Shape, Any]  # of a result: dims, and what np.dtype takes
Infer = Callable[..., list[Type]]


@dataclass(frozen=True, slots=True)
class Operator:
    """evaluate(node, *arrays): the results, None standing for an input that is left out.

    infer(node, *values): dims and types of the results; None: they are those that zeros lead to.  needs: the inputs
    on whose data the dims of results depend.
    """

    evaluate: Callable[..., Results]
    infer: Infer | None = None
    needs: tuple[int, ...] = ()

    def types(self, node: Node, *values: Value | None) -> list[Type]:
        """Dims and types of the results.  Raises whatever wrong operands lead to."""
        if self.infer is not None:
            return self.infer(node, *values)
        results = self.results(node, *(zeros_like(value) for value in values))
        return [(result.shape, result.dtype) for result in results]

    def results(self, node: Node, *arrays: Array | None) -> tuple[Array, ...]:
        """What is computed; of floats of 16 bits in f32, and rounded once."""
        own = next((x.dtype for x in arrays if x is not None and is_half(x.dtype)), None)
        if own is None or node.op in KEEP_TYPES:
            return listed(self.evaluate(node, *arrays))
        wide = (x.astype(np.float32) if x is not None and is_half(x.dtype) else x for x in arrays)
        found = listed(self.evaluate(node, *wide))
        declared = [own] * len(found)
        if self.infer is not None:
            given = (None if x is None else Value(x.shape, x.dtype, x) for x in arrays)
            declared = [np.dtype(dtype) for _, dtype in self.infer(node, *given)]
        with np.errstate(over="ignore"):  # what is too large becomes infinite
            narrow = zip(found, declared, strict=False)
            return tuple(x.astype(dtype) if x.dtype == np.float32 else x for x, dtype in narrow)


def zeros_like(value: Value | None) -> Array | None:
    """The data, or as many zeros, which take no memory."""
    if value is None or value.data is not None:
        return None if value is None else value.data
    bounded(value.shape)
    return np.broadcast_to(np.zeros((), value.dtype), value.shape)


def listed(results: Results) -> tuple[Array, ...]:
    return results if isinstance(results, tuple) else (results,)


def bounded(shape: Shape) -> Shape:
    """The shape, if numpy may make such an array.  Raises ValueError."""
    if prod(shape) > MOST_ELEMENTS or any(n < 0 for n in shape):
        raise ValueError(f"dims {shape} have more than {MOST_ELEMENTS} elements, or a negative size")
    return shape


def same_as_first(node: Node, first: Value, *_: Value | None) -> list[Type]:
    return [(first.shape, first.dtype)]


def broadcast_dims(*shapes: Shape) -> Shape:
    """As numpy's, in a third of its time, and also of dims that stand for several: whether such a one is 1 is asked
    only where it matters.  Raises ValueError."""
    found: list[Any] = [1] * max(map(len, shapes), default=0)
    for shape in shapes:
        missing = len(found) - len(shape)
        for axis, n in enumerate(shape, missing):
            known = found[axis]
            if is_one(known):
                found[axis] = n
            elif n is not known and not is_one(n) and n != known:
                if n == 1:
                    continue
                if known != 1:
                    raise ValueError(f"dims {', '.join(map(str, shapes))} cannot be broadcast to each other")
                found[axis] = n
    return tuple(found)


def is_one(n: object) -> bool:
    """Whether a dim is 1 for every shape."""
    return type(n) is int and n == 1


def broadcast(node: Node, *values: Value | None) -> list[Type]:
    """Of operators that compute element by element and keep the type."""
    given = [value for value in values if value is not None]
    return [(broadcast_dims(*[value.shape for value in given]), given[0].dtype)]


def broadcast_bool(node: Node, *values: Value) -> list[Type]:
    return [(broadcast_dims(*[value.shape for value in values]), np.bool_)]


def ints(array: Any) -> tuple[int, ...]:
    """An input that is a list of numbers."""
    return tuple([n if is_integer(n) else int(n) for n in np.asarray(array).ravel().tolist()])


def number(array: Any) -> Any:
    """An input that is one number.  Raises ValueError."""
    found = np.asarray(array).ravel()
    if len(found) != 1:
        raise ValueError(f"dims {np.shape(array)} where one number is wanted")
    return found[0]


def axes_of(node: Node, given: Any, ndim: int) -> tuple[int, ...] | None:
    """The axes of an input, or of the attribute of older versions; from 0; None if there are neither."""
    axes = node.get("axes") if given is None else ints(given)
    return None if axes is None else tuple(normal(axis, ndim) for axis in axes)


def axis_of(node: Node, ndim: int, default: int) -> int:
    """The attribute axis, from 0, of a tensor that has some.  Raises ValueError."""
    if not ndim:
        raise ValueError("a tensor without dims has no axis")
    return normal(node.get("axis", default), ndim)


def normal(axis: int, ndim: int) -> int:
    """An axis counted from 0.  Raises ValueError."""
    if not -ndim <= axis < max(ndim, 1):
        raise ValueError(f"axis {axis} is none of {ndim}")
    return axis % ndim if ndim else 0


def size_along(dims: tuple[int, ...], axis: int) -> int:
    """How many elements there are along an axis; a scalar has one.  Raises ValueError."""
    at = normal(axis, len(dims))
    return dims[at] if dims else 1
