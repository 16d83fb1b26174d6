"""Operators that make tensors of shapes, types and attributes; all are gone before a network runs, but for Cast."""

from collections.abc import Callable
from typing import Any

import numpy as np

from asmdnn.network.element_types import element_type
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Type, Value, bounded, ints

VALUES: dict[str, Callable[[Any], Any]] = {
    "value": np.asarray,
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
}


def constant(node: Node) -> Array:
    for name, make in VALUES.items():
        if name in node.attributes:
            return np.asarray(make(node.get(name)))
    raise ValueError(f"no value, but {', '.join(node.attributes) or 'nothing'}")


def constant_of_shape(node: Node, shape: Array) -> Array:
    fill = np.asarray(node.get("value", np.zeros(1, np.float32))).ravel()
    return np.broadcast_to(fill[0], bounded(ints(shape))).astype(fill.dtype)


def arange(node: Node, start: Array, limit: Array, delta: Array) -> Array:
    first, last, step = (np.asarray(x).ravel()[0] for x in (start, limit, delta))
    bounded((max(0, int(np.ceil((float(last) - float(first)) / float(step)))),))
    return np.arange(first, last, step, dtype=np.asarray(start).dtype)


def eye_like(node: Node, x: Array) -> Array:
    dtype = element_type(node.get("dtype"), "dtype") if "dtype" in node.attributes else x.dtype
    rows, columns = x.shape
    return np.asarray(np.eye(rows, columns, int(node.get("k", 0)), dtype))


def cast_types(node: Node, x: Value) -> list[Type]:
    return [(x.shape, element_type(node.get("to", 0), "Cast"))]


def cast(node: Node, x: Array) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(x).astype(element_type(node.get("to", 0), "Cast"))


def dropped(node: Node, x: Array, ratio: Array | None = None, training: Array | None = None) -> tuple[Array, ...]:
    """As it is: networks are run, not trained."""
    if training is not None and np.any(training) and (ratio is None or np.any(ratio)):
        raise ValueError("training_mode is true: networks are run, not trained")
    return x, np.ones(x.shape, bool)


OPERATORS = {
    "Constant": Operator(constant),
    "Shape": Operator(lambda node, x: np.array(x.shape[node.get("start", 0) : node.get("end")], np.int64)),
    "Size": Operator(lambda node, x: np.array(x.size, np.int64)),
    "ConstantOfShape": Operator(constant_of_shape, None, (0,)),
    "Range": Operator(arange, None, (0, 1, 2)),
    "EyeLike": Operator(eye_like),
    "Cast": Operator(cast, cast_types),
    "CastLike": Operator(
        lambda node, x, like: np.asarray(x).astype(like.dtype), lambda node, x, like: [(x.shape, like.dtype)]
    ),
    "Dropout": Operator(dropped, lambda node, x, *_: [(x.shape, x.dtype), (x.shape, np.bool_)]),
    "NonZero": Operator(lambda node, x: np.stack(np.nonzero(np.atleast_1d(x))).astype(np.int64), None, (0,)),
}
