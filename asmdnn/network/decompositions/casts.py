"""CastLike as the Cast to the type that its second operand has; constant integers times a scale that is data."""

from math import prod

import numpy as np

from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.element_types import CODES
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.definition import normal
from asmdnn.network.operators.quantisation import check_parameters


def cast_like(w: Decomposer, node: Node, x: str, like: str) -> tuple[str, ...]:
    return (w("Cast", x, to=CODES[w.value(like).dtype.name], **node.attributes),)


def dequantized(w: Decomposer, node: Node, x: str, scale: str, zero: str = NOTHING) -> tuple[str, ...] | None:
    """(x - zero) scale, as of weights whose scale is trained; None where the scale is constant or of blocks, or others
    are data.  A type that is not the scale's is a Cast."""
    code = node.get("output_dtype", 0)
    if code:
        given = (x, scale) if zero == NOTHING else (x, scale, zero)
        attributes = {name: value for name, value in node.attributes.items() if name != "output_dtype"}
        return (w("Cast", w("DequantizeLinear", *given, **attributes), to=code),)
    numbers, offset = w.data(x), w.data(zero)
    if numbers is None or w.data(scale) is not None or w.value(scale).dtype != np.float32 or node.get("block_size", 0):
        return None
    check_parameters(node, w.value(x), w.value(scale), w.value(zero) if zero != NOTHING else None, numbers.dtype)
    dims, count = w.shape(x), prod(w.shape(scale))
    axis = normal(node.get("axis", 1), len(dims)) if count != 1 else -1
    beside = [count if i == axis else 1 for i in range(len(dims))]
    wide = numbers.astype(np.float32)
    if zero != NOTHING:
        if offset is None:
            return None
        wide = wide - offset.astype(np.float32).reshape(beside)
    return (w("Mul", w.constant(wide), w.reshaped(scale, *beside)),)


DECOMPOSITIONS = {"CastLike": cast_like, "DequantizeLinear": dequantized}
