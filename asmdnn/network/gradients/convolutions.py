"""Rules of convolutions: by the source the adjoint, by the weights a sum over images and pixels."""

from typing import Any

from asmdnn.network.gradients.table import Gradients, Rule, given_of
from asmdnn.network.gradients.words import GradientWords
from asmdnn.network.graph import Node
from asmdnn.network.operators.geometry import window_of
from asmdnn.network.operators.products import transposed_window


def by_bias(w: GradientWords, node: Node, d: str) -> list[str]:
    """Sums over all but channels, if there is a bias."""
    axes = [i for i in range(len(w.shape(d))) if i != 1]
    return [w.reduced("ReduceSum", d, *axes, keepdims=False) for name in node.inputs[2:3] if name]


def conv(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Of the source a transposed convolution, padded after by what the strides left over."""
    d, (x, weights) = given_of(given), node.inputs[:2]
    dims, kernel = w.shape(x)[2:], w.shape(weights)[2:]
    window, groups = window_of(node, dims, kernel), node.get("group", 1)
    more = tuple(
        n + a + b - (o - 1) * s - (k - 1) * t - 1
        for n, o, k, s, t, a, b in zip(dims, w.shape(d)[2:], *window.fields(), strict=True)
    )
    named: dict[str, Any] = {
        "strides": window.strides,
        "dilations": window.dilations,
        "pads": (*window.before, *window.after),
    }
    dx = w("ConvTranspose", d, weights, group=groups, output_padding=more, **named)
    (dw,) = w.own("ConvWeightsGradient", x, d, group=groups, kernel_shape=kernel, **named)
    return dx, dw, *by_bias(w, node, d)


def conv_transpose(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Of the source a convolution; by the weights the same sum with both tensors exchanged."""
    d, (x, weights) = given_of(given), node.inputs[:2]
    dims, kernel = w.shape(x)[2:], w.shape(weights)[2:]
    window, outputs = transposed_window(node, dims, kernel)
    after = tuple(
        (n - 1) * s + (k - 1) * t + 1 - a - o
        for n, o, k, s, t, a in zip(dims, outputs, *window.fields()[:4], strict=True)
    )
    named: dict[str, Any] = {
        "strides": window.strides,
        "dilations": window.dilations,
        "pads": (*window.before, *after),
    }
    dx = w("Conv", d, weights, group=node.get("group", 1), **named)
    (dw,) = w.own("ConvWeightsGradient", d, x, group=node.get("group", 1), kernel_shape=kernel, **named)
    return dx, dw, *by_bias(w, node, d)


RULES: dict[str, Rule] = {"Conv": conv, "ConvTranspose": conv_transpose}
