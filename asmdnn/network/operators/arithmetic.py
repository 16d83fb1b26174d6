"""Arithmetic, element by element, with numpy's broadcasting, which is ONNX's."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from asmdnn.definitions.elementwise import forward
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, broadcast, same_as_first


def unary(function: Callable[[Array], Any]) -> Operator:
    return Operator(lambda node, x: np.asarray(function(x), x.dtype), same_as_first)


def binary(function: Callable[[Array, Array], Any]) -> Operator:
    return Operator(lambda node, a, b: np.asarray(function(a, b), a.dtype), broadcast)


def folded(function: Callable[[Array, Array], Any]) -> Operator:
    """Of any number of operands."""
    return Operator(lambda node, *x: np.asarray(reduce(function, x), x[0].dtype), broadcast)


def divide(a: Array, b: Array) -> Any:
    """Integers towards zero, as in C."""
    if np.issubdtype(a.dtype, np.floating):
        return a / b
    quotient = a // b
    return quotient + ((b != 0) & (quotient * b != a) & ((a < 0) != (b < 0)))


def modulo(node: Node, a: Array, b: Array) -> Array:
    return np.asarray(np.fmod(a, b) if node.get("fmod", 0) else np.mod(a, b), a.dtype)


def mean(node: Node, *x: Array) -> Array:
    return np.asarray(reduce(np.add, x) / len(x), x[0].dtype)


def shifted(node: Node, a: Array, b: Array) -> Array:
    return a << b if node.get("direction") == "LEFT" else a >> b


UNARY: dict[str, Callable[[Array], Any]] = {
    "Abs": np.abs, "Neg": np.negative, "Sqrt": np.sqrt, "Exp": np.exp, "Log": np.log, "Floor": np.floor,
    "Ceil": np.ceil, "Round": np.rint, "Sign": np.sign, "Reciprocal": lambda x: 1 / x,
    "Erf": lambda x: forward("erf", x),
    "Sin": np.sin, "Cos": np.cos, "Tan": np.tan, "Asin": np.arcsin, "Acos": np.arccos, "Atan": np.arctan,
    "Sinh": np.sinh, "Cosh": np.cosh, "Asinh": np.arcsinh, "Acosh": np.arccosh, "Atanh": np.arctanh,
    "BitwiseNot": np.invert,
}  # fmt: skip
BINARY: dict[str, Callable[[Array, Array], Any]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": divide, "Pow": np.power,
    "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor,
}  # fmt: skip
OPERATORS = {
    **{op: unary(function) for op, function in UNARY.items()},
    **{op: binary(function) for op, function in BINARY.items()},
    "Max": folded(np.maximum),
    "Min": folded(np.minimum),
    "Sum": folded(np.add),
    "Mean": Operator(mean, broadcast),
    "Mod": Operator(modulo, broadcast),
    "BitShift": Operator(shifted, broadcast),
}
