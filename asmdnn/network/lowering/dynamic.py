"""Integers whose scale or zero point is data: how they are made, and products of them whose sums are floats."""

from math import prod
from typing import Any

import numpy as np

from asmdnn.network.descriptors import any_format, channels_last, is_row_major, row_major, stored
from asmdnn.network.format_choice import CHANNELS_LAST
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING, Array
from asmdnn.network.joining.place import Place
from asmdnn.network.lowering.convolutions import convolution
from asmdnn.network.lowering.integer_tail import tail_of
from asmdnn.network.lowering.products import folded
from asmdnn.network.lowering.sources import cheapest
from asmdnn.network.operators.own import OWN
from asmdnn.network.quantized.numbers import BYTES
from asmdnn.network.quantized.weights import QUANTIZE
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.functions import rint
from asmdnn.primitives.attributes.user_post_op import PostOp
from asmdnn.primitives.elementwise.eltwise import EltwiseForward
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.shapes.formats import dense_like
from asmdnn.types import PropKind, s8, s32


def integers_of(x: Any, scale: Any, zero: Any = 0.0) -> Any:
    """The definition; what stores it saturates."""
    return rint(x / scale) + zero


def lower_quantize(steps: Steps, group: Group) -> None:
    """By one scale, and one zero point, that are data.  Raises Refused for several."""
    node = group.node
    x, scale, zero = (*node.inputs, NOTHING)[:3]
    shape, result = steps.shape(x) or (1,), steps.value(group.result)
    names = {"scale": scale, "zero": zero} if zero != NOTHING else {"scale": scale}
    if result.dtype not in BYTES or any(prod(steps.shape(name)) != 1 for name in names.values()):
        raise Refused(f"{result.dtype.name} with scales of dims {steps.shape(scale)} has no kernel, bytes of one have")
    dtype, ones = stored(result), (1,) * len(shape)
    source = steps.kept(x)
    tensors = {name: steps.viewed(value, ones, steps.kept(value).desc.dtype) for name, value in names.items()}
    dst = steps.result_format(shape, dtype)
    if dst.is_any:
        is_image = len(shape) > CHANNELS_LAST and is_row_major(source.desc)
        dst = channels_last(shape, dtype) if is_image else dense_like(source.desc, row_major(shape, dtype))
    desc = EltwiseForward(PropKind.forward_inference, "linear", source.desc, dst, 1.0, -0.0)
    attr = Attr([PostOp(integers_of, **{name: place.desc for name, place in tensors.items()})])
    places = {"src": source, **{f"{name}_0": place for name, place in tensors.items()}}
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result}, attr=attr)


def zero_point(steps: Steps, name: str) -> tuple[dict[str, Place], dict[str, tuple[str, Array]]]:
    """The argument that a product takes it by: of data, or of a constant."""
    data = steps.value(name).data
    if data is not None:
        return {}, {"src_zero_points": (name, data.astype(np.int64).reshape(1))}
    return {"src_zero_points": steps.viewed(name, (1,), s32)}, {}


def lower_matmul(steps: Steps, group: Group) -> None:
    """All rows of all batches are rows of one product, by one matrix; by several each batch has its own."""
    node = group.node
    a, b, zero = node.inputs
    left, weights = steps.shape(a), steps.value(b).data
    assert weights is not None, "as fusion has made it"
    if len(left) < 2:
        raise Refused("a vector as an operand has no kernel, a matrix of one row has")
    result, plain = steps.shape(group.result), steps.plain_bytes(a)
    is_matrix = weights.ndim == len("kn")
    rows = (prod(left[:-1]), left[-1]) if is_matrix else (1,) * (len(result) - len(left)) + left
    src = Place(plain.buffer, plain.desc.reshape(rows))
    weights = weights.reshape((1,) * (len(rows) - weights.ndim) + weights.shape)
    tail = tail_of(steps, group, (lambda dims: folded(dims, result)) if is_matrix else None, reads_bytes=True)
    points, constants = zero_point(steps, zero)
    dst = row_major((*rows[:-1], weights.shape[-1]) if is_matrix else result, steps.type_of(group.result))
    desc = MatMul(src.desc, any_format(weights.shape, s8), dst)
    attr = Attr(tail.post_ops(), zero_points={"src": 0})
    constants = {"weights": (b, weights), **constants}
    places = {"src": src, **points, **tail.places()}
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result}, constants=constants, attr=attr)


def lower_conv(steps: Steps, group: Group) -> None:
    """Padding counts as the zero point."""
    node = group.node
    x, w, zero = node.inputs
    weights, tail = steps.value(w).data, tail_of(steps, group, reads_bytes=True)
    assert weights is not None, "as fusion has made it"
    desc = convolution(steps, node)
    formats = {
        "src": any_format(desc.src.dims, stored(steps.value(x))),
        "weights": any_format(desc.weights.dims, s8),
        "dst": steps.result_format(desc.dst.dims, stored(steps.value(group.result))),
        "bias": None,
    }
    points, constants = zero_point(steps, zero)
    desc, attr = desc.with_formats(formats), Attr(tail.post_ops(), zero_points={"src": 0})  # type: ignore[arg-type]
    place = cheapest(steps, x, steps.bytes_of(x), desc, attr)
    desc = desc.with_formats({"src": place.desc})
    constants = {"weights": (w, weights.reshape(desc.weights.dims)), **constants}
    places = {"src": place, **points, **tail.places()}
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result}, constants=constants, attr=attr)


LOWERINGS = {
    QUANTIZE: lower_quantize,
    f"{OWN}.MatMulInteger": lower_matmul,
    f"{OWN}.ConvInteger": lower_conv,
}
