"""How large the terms of gradients are that cancel: kernels round each of them, however small what is left."""

from collections.abc import Callable, Mapping

import numpy as np

from asmdnn.definitions.normalization import inverse_deviation, moments
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.own import OWN


def of_weights(node: Node, x: Array, d: Array) -> float:
    """Of a sum over images and pixels: of each product at most the largest."""
    pixels = d.size // max(1, d.shape[1])
    largest = np.abs(x).max(initial=len(node.outputs) - 1)  # a bias is multiplied by 1
    return float(largest * np.abs(d).max(initial=0) * np.sqrt(pixels))


def of_softmax(node: Node, y: Array, d: Array) -> float:
    axis = node.get("axis")
    if node.get("log"):
        return float(np.abs(d).sum(axis).max(initial=0))
    return float((np.abs(y) * (np.abs(d) + np.abs(d * y).sum(axis, keepdims=True))).max(initial=0))


def of_layer_norm(node: Node, x: Array, d: Array, scale: Array) -> float:
    """x is rounded, too, before its mean is taken away, and the sums over rows are of signed numbers."""
    centre, variance = moments(x, (1,), rms=bool(node.get("rms")))
    inverse = inverse_deviation(variance, node.get("epsilon"))
    h, g = (np.abs(x) + np.abs(centre)) * inverse, np.abs(d * scale)
    dx = (g + g.mean(-1, keepdims=True) + h * (g * h).mean(-1, keepdims=True)) * inverse
    return float(max(dx.max(initial=0), (np.abs(d) * h).sum(0).max(initial=0)))


def of_group_norm(node: Node, x: Array, d: Array, scale: Array) -> float:
    """As of rows that are groups, of a scale that is as large everywhere."""
    rows = (x.shape[0] * node.get("num_groups"), -1)
    return of_layer_norm(node, x.reshape(rows), d.reshape(rows), np.abs(scale).max(initial=0))


TERMS: Mapping[str, Callable[..., float]] = {
    f"{OWN}.ConvWeightsGradient": of_weights,
    f"{OWN}.SoftmaxGradient": of_softmax,
    f"{OWN}.LayerNormGradient": of_layer_norm,
    f"{OWN}.GroupNormGradient": of_group_norm,
}


def size_of_terms(node: Node, *inputs: Array) -> float:
    """0 for other operators."""
    return TERMS[node.key](node, *inputs) if node.key in TERMS else 0.0
