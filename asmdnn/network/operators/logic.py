"""Comparisons, logic, and what they choose."""

from collections.abc import Callable
from typing import Any

import numpy as np

from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Type, Value, broadcast_bool, broadcast_dims


def chosen(node: Node, condition: Value, a: Value, b: Value) -> list[Type]:
    return [(broadcast_dims(condition.shape, a.shape, b.shape), a.dtype)]


def is_infinite(node: Node, x: Array) -> Array:
    found = np.zeros(x.shape, bool)
    for name, infinity in (("detect_positive", np.inf), ("detect_negative", -np.inf)):
        if node.get(name, 1):
            found |= x == infinity
    return found


def truth(function: Callable[..., Any]) -> Operator:
    return Operator(lambda node, *x: np.asarray(function(*x)), broadcast_bool)


OPERATORS = {
    **{
        op: truth(function)
        for op, function in {
            "Equal": np.equal, "Less": np.less, "LessOrEqual": np.less_equal, "Greater": np.greater,
            "GreaterOrEqual": np.greater_equal, "And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor,
            "Not": np.logical_not, "IsNaN": np.isnan,
        }.items()
    },
    "IsInf": Operator(is_infinite, broadcast_bool),
    "Where": Operator(lambda node, condition, a, b: np.where(condition, a, b), chosen),
}  # fmt: skip
