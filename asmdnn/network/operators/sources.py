"""Operators that make tensors of shapes, types and attributes; all are gone before a network runs, but for Cast."""

from collections.abc import Callable
from typing import Any

import numpy as np

from asmdnn.network.element_types import element_type
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.conversion import converted
from asmdnn.network.operators.definition import Operator, Type, Value, bounded, ints, number

MASKS_OF_TRUTHS = 10  # the operator set since which masks of Dropout are bools
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


def filled(node: Node, shape: Array) -> Array:
    fill = number(node.get("value", np.float32(0)))
    return np.full(ints(shape), fill, fill.dtype)


def filled_types(node: Node, shape: Value) -> list[Type]:
    return [(bounded(ints(shape.data)), number(node.get("value", np.float32(0))).dtype)]


def arange(node: Node, start: Array, limit: Array, delta: Array) -> Array:
    return np.arange(*map(number, (start, limit, delta)), dtype=np.asarray(start).dtype)


def arange_types(node: Node, start: Value, limit: Value, delta: Value) -> list[Type]:
    first, last, step = (number(x.data).item() for x in (start, limit, delta))
    count = -(-(last - first) // step) if start.dtype.kind in "iu" else int(np.ceil((last - first) / step))
    return [(bounded((max(0, count),)), start.dtype)]


def eye_like(node: Node, x: Array) -> Array:
    dtype = element_type(node.get("dtype"), "dtype") if "dtype" in node.attributes else x.dtype
    rows, columns = x.shape
    return np.eye(rows, columns, max(-rows, min(columns, int(node.get("k", 0)))), dtype)


def eye_types(node: Node, x: Value) -> list[Type]:
    if len(x.shape) != 2:
        raise ValueError(f"dims {x.shape}, which must be two")
    return [(bounded(x.shape), element_type(node.get("dtype"), "dtype") if "dtype" in node.attributes else x.dtype)]


def cast_types(node: Node, x: Value) -> list[Type]:
    return [(x.shape, element_type(node.get("to", 0), "Cast"))]


def cast(node: Node, x: Array) -> Array:
    return converted(node, x, element_type(node.get("to", 0), "Cast"))


def dropped(node: Node, x: Array, ratio: Array | None = None, training: Array | None = None) -> tuple[Array, ...]:
    """As it is: networks are run, not trained."""
    if training is not None and np.any(training) and (ratio is None or np.any(ratio)):
        raise ValueError("training_mode is true: networks are run, not trained")
    return x, mask_of_all(node, x)


def mask_of_all(node: Node, x: Array | Value) -> Array:
    """Dropout's mask where nothing is dropped: of bools, and of x's numbers before there were such."""
    return np.broadcast_to(np.ones((), mask_type(node, x.dtype)), x.shape)


def mask_type(node: Node, dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.bool_) if node.opset >= MASKS_OF_TRUTHS else dtype


OPERATORS = {
    "Constant": Operator(constant),
    "Shape": Operator(lambda node, x: np.array(x.shape[node.get("start", 0) : node.get("end")], np.int64)),
    "Size": Operator(lambda node, x: np.array(x.size, np.int64)),
    "ConstantOfShape": Operator(filled, filled_types, (0,)),
    "Range": Operator(arange, arange_types, (0, 1, 2)),
    "EyeLike": Operator(eye_like, eye_types),
    "Cast": Operator(cast, cast_types),
    "CastLike": Operator(
        lambda node, x, like: converted(node, x, like.dtype), lambda node, x, like: [(x.shape, like.dtype)]
    ),
    "Dropout": Operator(dropped, lambda node, x, *_: [(x.shape, x.dtype), (x.shape, mask_type(node, x.dtype))]),
}
