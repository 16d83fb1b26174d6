"""Activation functions, element by element."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.arithmetic import error_function
from asmdnn.network.operators.definition import Operator, Type, Value, same_as_first

CLIP_BY_INPUTS = 11  # the operator set since which Clip's bounds are inputs


def logistic(x: Array) -> Any:
    """1 / (1 + e**-x), without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def softplus(x: Array) -> Array:
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def gelu(node: Node, x: Array) -> Any:
    if node.get("approximate", "none") == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + error_function(x / np.sqrt(2)))


def clip(node: Node, x: Array, least: Array | None = None, most: Array | None = None) -> Array:
    if node.opset < CLIP_BY_INPUTS:
        least, most = node.get("min"), node.get("max")
    x = x if least is None else np.maximum(x, least)
    return np.asarray(x if most is None else np.minimum(x, most))


def clip_types(node: Node, x: Value, *bounds: Value | None) -> list[Type]:
    if any(bound is not None and prod(bound.shape) != 1 for bound in bounds):
        raise ValueError("a bound is no number")
    return [(x.shape, x.dtype)]


def shrink(node: Node, x: Array) -> Array:
    bias, bound = node.get("bias", 0.0), node.get("lambd", 0.5)
    return np.where(x < -bound, x + bias, np.where(x > bound, x - bias, 0))


def elu(node: Node, x: Array) -> Array:
    return np.where(x > 0, x, node.get("alpha", 1.0) * np.expm1(np.minimum(x, 0)))


def selu(node: Node, x: Array) -> Any:
    alpha, gamma = node.get("alpha", 1.67326319217681884765625), node.get("gamma", 1.05070102214813232421875)
    return gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def celu(node: Node, x: Array) -> Array:
    alpha = node.get("alpha", 1.0)
    return np.asarray(np.maximum(x, 0) + alpha * np.expm1(np.minimum(x, 0) / alpha))


def sloped(node: Node, x: Value, slope: Value) -> list[Type]:
    if np.broadcast_shapes(x.shape, slope.shape) != x.shape:
        raise ValueError(f"slopes of dims {slope.shape} are not broadcast to {x.shape}")
    return [(x.shape, x.dtype)]


def map_of(function: Callable[[Node, Array], Any]) -> Operator:
    return Operator(lambda node, x: np.asarray(function(node, x), x.dtype), same_as_first)


OPERATORS = {
    **{
        op: map_of(function)
        for op, function in {
            "Relu": lambda node, x: np.maximum(x, 0),
            "LeakyRelu": lambda node, x: np.where(x < 0, node.get("alpha", 0.01) * x, x),
            "ThresholdedRelu": lambda node, x: np.where(x > node.get("alpha", 1.0), x, 0),
            "Elu": elu, "Selu": selu, "Celu": celu, "Gelu": gelu, "Shrink": shrink,
            "Sigmoid": lambda node, x: logistic(x),
            "Tanh": lambda node, x: np.tanh(x),
            "HardSigmoid": lambda node, x: np.clip(node.get("alpha", 0.2) * x + node.get("beta", 0.5), 0, 1),
            "HardSwish": lambda node, x: x * np.clip(x / 6 + 0.5, 0, 1),
            "Swish": lambda node, x: x * logistic(node.get("alpha", 1.0) * x),
            "Mish": lambda node, x: x * np.tanh(softplus(x)),
            "Softplus": lambda node, x: softplus(x),
            "Softsign": lambda node, x: x / (1 + np.abs(x)),
        }.items()
    },
    "Clip": Operator(lambda node, x, *bounds: np.asarray(clip(node, x, *bounds), x.dtype), clip_types),
    "SwiGLU": Operator(
        lambda node, a, b: np.asarray(a * logistic(node.get("alpha", 1.0) * a) * b, a.dtype), same_as_first
    ),
    "PRelu": Operator(lambda node, x, slope: np.where(x < 0, slope * x, x).astype(x.dtype), sloped),
}  # fmt: skip
