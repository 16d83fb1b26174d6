"""CastLike as the Cast to the type that its second operand has; integers times scales that are data."""

from math import prod

from asmdnn.network.decompositions.words import F32, Decomposer
from asmdnn.network.element_types import CODES
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.definition import Shape, normal
from asmdnn.network.operators.quantization import RESULTS, check_parameters, target_of
from asmdnn.network.passing import is_half


def cast_like(w: Decomposer, node: Node, x: str, like: str) -> tuple[str, ...]:
    return (w("Cast", x, to=CODES[w.value(like).dtype.name], **node.attributes),)


def dequantized(w: Decomposer, node: Node, x: str, scale: str, zero: str = NOTHING) -> tuple[str, ...] | None:
    """(x - zero) scale where scales or zero points are data, of constants, as of weights whose scale is trained, or by
    blocks; None for what else there is.  A type that is not the scale's is a Cast."""
    code, dtype = node.get("output_dtype", 0), w.value(scale).dtype
    if code and dtype.name in RESULTS:
        given = (x, scale) if zero == NOTHING else (x, scale, zero)
        attributes = {name: value for name, value in node.attributes.items() if name != "output_dtype"}
        return (w("Cast", w("DequantizeLinear", *given, **attributes), to=code),)
    numbers, parameters = w.data(x), [name for name in (scale, zero) if name != NOTHING]
    are_known = all(w.data(name) is not None for name in parameters)
    is_plain = numbers is None and not node.get("block_size", 0)
    if are_known or is_plain or not (dtype == F32 or is_half(dtype)) or w.value(x).dtype.kind not in "iu":
        return None
    check_parameters(node, w.value(x), w.value(scale), w.value(zero) if zero != NOTHING else None, w.value(x).dtype)
    floats = w.constant(numbers) if numbers is not None else w("DequantizeLinear", x, w.constant(1))
    if zero != NOTHING:
        floats = w("Sub", floats, beside(w, node, w("DequantizeLinear", zero, w.constant(1)), w.shape(x)))
    y = w("Mul", floats, beside(w, node, w.number(scale), w.shape(x)))
    return (y if dtype == F32 else w("Cast", y, to=CODES[dtype.name]),)


def quantized(w: Decomposer, node: Node, x: str, scale: str, zero: str = NOTHING) -> tuple[str, ...] | None:
    """round(x / scale) + zero by blocks that are data; None for what else there is."""
    parameters, own = [name for name in (scale, zero) if name != NOTHING], w.value(x).dtype
    are_known = all(w.data(name) is not None for name in parameters)
    if are_known or not node.get("block_size", 0) or not (own == F32 or is_half(own)):
        return None
    points = w.value(zero) if zero != NOTHING else None
    dtype = target_of(node, points)
    check_parameters(node, w.value(x), w.value(scale), points, dtype)
    if dtype.kind not in "iu":
        return None
    steps = w("Round", w("Div", w.number(x), beside(w, node, w.number(scale), w.shape(x))))
    if zero != NOTHING:
        steps = w("Add", steps, beside(w, node, w("DequantizeLinear", zero, w.constant(1)), w.shape(x)))
    return (w("QuantizeLinear", steps, w.constant(1), w.constant(0, dtype)),)


def beside(w: Decomposer, node: Node, name: str, dims: Shape) -> str:
    """Scales or zero points with dims that broadcast to these: one, along an axis, or repeated in blocks of one."""
    shape, block = w.shape(name), node.get("block_size", 0)
    if prod(shape) == 1:
        return w.reshaped(name, *[1] * len(dims))
    axis = normal(node.get("axis", 1), len(dims))
    if not block:
        return w.reshaped(name, *(n if i == axis else 1 for i, n in enumerate(dims)))
    before, count, after = shape[:axis], shape[axis], shape[axis + 1 :]
    repeated = w.expanded(w.reshaped(name, *before, count, 1, *after), *before, count, block, *after)
    return w.part(w.reshaped(repeated, *before, count * block, *after), axis, 0, dims[axis])


DECOMPOSITIONS = {"CastLike": cast_like, "DequantizeLinear": dequantized, "QuantizeLinear": quantized}
