"""Activation functions, element by element."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from asmdnn.definitions.elementwise import above, elu, forward, logistic, prelu, softsign
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Type, Value, broadcast_dims, same_as_first

GELUS = {"none": "erf", "tanh": "tanh"}
CLIP_BY_INPUTS = 11  # the operator set since which Clip's bounds are inputs


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


def selu(node: Node, x: Array) -> Any:
    alpha, gamma = node.get("alpha", 1.67326319217681884765625), node.get("gamma", 1.05070102214813232421875)
    return gamma * forward("elu", x, alpha)


def celu(node: Node, x: Array) -> Any:
    alpha = node.get("alpha", 1.0)
    return elu(x, alpha, alpha)


def sloped(node: Node, x: Value, slope: Value) -> list[Type]:
    if broadcast_dims(x.shape, slope.shape) != x.shape:
        raise ValueError(f"slopes of dims {slope.shape} are not broadcast to {x.shape}")
    return [(x.shape, x.dtype)]


def map_of(function: Callable[[Node, Array], Any]) -> Operator:
    return Operator(lambda node, x: np.asarray(function(node, x), x.dtype), same_as_first)


OPERATORS = {
    **{
        op: map_of(function)
        for op, function in {
            "Relu": lambda node, x: forward("relu", x),
            "LeakyRelu": lambda node, x: forward("relu", x, node.get("alpha", 0.01)),
            "ThresholdedRelu": lambda node, x: above(x, node.get("alpha", 1.0)),
            "Elu": lambda node, x: forward("elu", x, node.get("alpha", 1.0)),
            "Selu": selu, "Celu": celu, "Shrink": shrink,
            "Gelu": lambda node, x: forward(f"gelu_{GELUS[node.get('approximate', 'none')]}", x),
            "Sigmoid": lambda node, x: forward("logistic", x),
            "Tanh": lambda node, x: forward("tanh", x),
            "HardSigmoid": lambda node, x: forward("hardsigmoid", x, node.get("alpha", 0.2), node.get("beta", 0.5)),
            "HardSwish": lambda node, x: forward("hardswish", x, 1 / 6, 0.5),
            "Swish": lambda node, x: forward("swish", x, node.get("alpha", 1.0)),
            "Mish": lambda node, x: forward("mish", x),
            "Softplus": lambda node, x: forward("soft_relu", x, 1.0),
            "Softsign": lambda node, x: softsign(x),
        }.items()
    },
    "Clip": Operator(lambda node, x, *bounds: np.asarray(clip(node, x, *bounds), x.dtype), clip_types),
    "SwiGLU": Operator(
        lambda node, a, b: np.asarray(a * logistic(node.get("alpha", 1.0) * a) * b, a.dtype), same_as_first
    ),
    "PRelu": Operator(lambda node, x, slope: np.asarray(prelu(x, slope), x.dtype), sloped),
}  # fmt: skip
