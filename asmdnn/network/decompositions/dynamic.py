"""Integers whose scale and zero point are made of the data at hand, in ONNX's other operators.

    DynamicQuantizeLinear(x): scale = (max(x, 0) - min(x, 0)) / 255,  zero = round(-min(x, 0) / scale),
                              y = QuantizeLinear(x, scale, zero)

Source: https://onnx.ai/onnx/operators.
"""

from typing import Any

import numpy as np

from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import Node
from asmdnn.network.operators.mapped import MAP
from asmdnn.network.quantized.weights import QUANTIZE
from asmdnn.primitives.attributes.functions import maximum, minimum, where

Names = tuple[str, ...]
STEPS = 255.0  # between the least and the largest of uint8


def scale_of_range(least: Any, most: Any) -> Any:
    """Of the range with 0 in it; 1 if there is no other number.  Divided, not multiplied by 1 / 255: other bits."""
    width = maximum(most, 0.0) - minimum(least, 0.0)
    return where(width > 0.0, width / STEPS, 1.0)


def below_zero(least: Any) -> Any:
    """How far the range goes below 0."""
    return 0.0 - minimum(least, 0.0)


def quantize(w: Decomposer, node: Node, x: str) -> Names:
    if 0 in w.shape(x):
        raise ValueError(f"dims {w.shape(x)} have no least element")
    axes = range(len(w.shape(x)))
    least, most = (
        w.reshaped(w.reduced(op, x, *axes, keepdims=False) if axes else x) for op in ("ReduceMin", "ReduceMax")
    )
    scale = w(MAP, least, most, function=scale_of_range)
    zero = w(QUANTIZE, w(MAP, least, function=below_zero), scale, w.constant(0, np.uint8))
    return w(QUANTIZE, x, scale, zero), scale, zero


DECOMPOSITIONS = {"DynamicQuantizeLinear": quantize}
