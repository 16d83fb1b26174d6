"""Quantised integers and floats of 8 and 4 bits: folded where they are constants, such as weights of a file."""

from math import prod
from typing import Any

import numpy as np

from asmdnn.network.element_types import element_type
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.conversion import POWERS, SATURATING, SMALL_INTEGERS, converted
from asmdnn.network.operators.definition import Operator, Shape, Type, Value, normal
from asmdnn.network.operators.products import conv, conv_types, matmul_types
from asmdnn.network.passing import HALVES

SCALES = ("float32", *HALVES, POWERS)
RESULTS = ("float32", "float64", *HALVES)  # of DequantizeLinear; f64 where the definition is computed in it
ONE: tuple[Shape, ...] = ((), (1,))  # dims of one number
SMALL_FLOATS = (*SATURATING, "float4_e2m1fn")
FLOAT = 1  # ONNX's number of f32
LARGEST_BYTES = 2  # of what QuantizeLinear makes


def spread(node: Node, values: Array, shape: tuple[int, ...]) -> Array:
    """A scale or zero point for every element: of the tensor, of indices along an axis, or of blocks along it."""
    if values.size == 1:
        return values.reshape(())
    axis, block = normal(node.get("axis", 1), len(shape)), node.get("block_size", 0)
    if block:
        wide = np.repeat(values, block, axis)
        return wide[tuple(slice(n) for n in shape)]
    return values.reshape([-1 if i == axis else 1 for i in range(len(shape))])


def check_parameters(node: Node, x: Value, scale: Value, zero: Value | None, quantized: Any) -> None:
    """Raise ValueError unless scales and zero points fit the tensor and one another; quantized: the integers' type."""
    dims, block, (_, name, *points) = x.shape, node.get("block_size", 0), node.inputs
    is_bias = x.dtype == np.int32 and x.data is not None
    check_scale(name, scale, may_be_zero=node.op == "DequantizeLinear" and (block > 0 or is_bias))
    axis = normal(node.get("axis", 1), len(dims)) if prod(scale.shape) != 1 else 0
    blocks = tuple(-(-n // block) if i == axis else n for i, n in enumerate(dims)) if block > 0 else ()
    wanted = blocks or dims[axis : axis + 1]
    if block < 0:
        raise ValueError(f"block_size is {block}, it must be above 0, or 0 for no blocks")
    if scale.shape not in (*ONE, wanted):
        raise ValueError(f"its scale {name} has dims {scale.shape}, one number or dims {wanted} fit")
    if zero is None:
        return
    if zero.shape != scale.shape and not (zero.shape in ONE and scale.shape in ONE):
        raise ValueError(f"its zero point {points[0]} has dims {zero.shape}, its scale {scale.shape}: make them equal")
    if zero.dtype != quantized:
        types = f"{zero.dtype}, its integers are {np.dtype(quantized)}"
        raise ValueError(f"its zero point {points[0]} is {types}: they must be equal")
    if zero.data is not None:
        check_shift(zero.data)


def check_scale(name: str, scale: Value, may_be_zero: bool = False) -> None:
    """Raise ValueError for a type that scales have not, and for constants that divide by 0 or are not finite.

    may_be_zero: of blocks of weights, all of which are 0, and of biases, where the product of two scales is too small
    for f32."""
    if scale.dtype.name not in SCALES:
        raise ValueError(f"its scale {name} is {scale.dtype}, it must be a float: one of {', '.join(SCALES)}")
    if scale.data is None:
        return
    numbers = wide(scale.data)
    if not np.isfinite(numbers).all():
        raise ValueError(f"its scale {name} is not finite, and 0 times it no number: quantise the model without it")
    if not (may_be_zero or numbers.all()):
        raise ValueError(f"its scale {name} has an element that is 0: every one divides")


def check_shift(zero: Array) -> None:
    """Raise ValueError for zero points of floats of 8 bits that shift: there are only some of 0."""
    if zero.dtype.name in SATURATING and wide(zero).any():
        raise ValueError(f"its zero point of {zero.dtype.name} has an element that is not 0, which has no meaning")


def wide(x: Array) -> Array:
    """As f32, and f64 as it is."""
    return x if x.dtype == np.float64 else x.astype(np.float32)


def dequantized_types(node: Node, x: Value, scale: Value, zero: Value | None = None) -> list[Type]:
    if not is_quantized(x.dtype):
        raise ValueError(f"its operand is {x.dtype}, it must be integers, or floats of 8 or 4 bits")
    check_parameters(node, x, scale, zero, x.dtype)
    return [(x.shape, dequantized_type(node, scale.dtype))]


def dequantized_type(node: Node, scale: np.dtype[Any]) -> np.dtype[Any]:
    """That of the scale, unless the node says another.  Raises ValueError."""
    code = node.get("output_dtype", 0)
    found = element_type(code, "output_dtype") if code else scale
    if found.name not in RESULTS:
        raise ValueError(f"output_dtype is {found}, it must be one of {', '.join(RESULTS)}")
    return found


def dequantized(node: Node, x: Array, scale: Array, zero: Array | None = None) -> Array:
    """(x - zero) scale."""
    floats = x.astype(np.float32)
    if zero is not None:
        check_shift(zero)
        floats = floats - spread(node, zero.astype(np.float32), x.shape)
    return np.asarray(floats * spread(node, wide(scale), x.shape), dequantized_type(node, scale.dtype))


def quantized(node: Node, x: Array, scale: Array, zero: Array | None = None) -> Array:
    """round(x / scale) + zero, to even, saturated; of floats x / scale + zero, rounded to one of them."""
    dtype = target_of(node, zero)
    quotient = wide(x) / spread(node, wide(scale), x.shape)
    if dtype.name in SMALL_FLOATS:
        if zero is not None:
            check_shift(zero)
            quotient = quotient + spread(node, zero.astype(np.float32), x.shape)
        return converted(node, quotient, dtype)
    offset = 0 if zero is None else spread(node, zero.astype(np.int64), x.shape)
    return saturated(np.rint(quotient) + offset, dtype)


def target_of(node: Node, zero: Any) -> np.dtype[Any]:
    """The type of the zero point, or what the node says.  Raises ValueError."""
    if node.get("precision", 0) not in (0, FLOAT):
        raise ValueError(f"precision is {node.get('precision')}, 0 and {FLOAT} are defined: it divides in float32")
    code = node.get("output_dtype", 0)
    said = element_type(code, "output_dtype") if code else np.dtype(np.uint8)
    found = said if zero is None else zero.dtype
    if code and found != said:
        raise ValueError(f"output_dtype is {said}, its zero point is {found}: they must be equal")
    if not is_quantized(found) or found.itemsize > LARGEST_BYTES:
        raise ValueError(f"type {found} is no integer of up to 16 bits, and no float of 8 or 4 bits")
    return np.dtype(found)


def is_quantized(dtype: np.dtype[Any]) -> bool:
    return is_integer(dtype) or dtype.name in SMALL_FLOATS


def is_integer(dtype: np.dtype[Any]) -> bool:
    """Of 4 and 2 bits, too."""
    return dtype.kind in "iu" or dtype.name in SMALL_INTEGERS


def saturated(x: Array, dtype: np.dtype[Any]) -> Array:
    """Integers at the ends of their type where they are beyond them; what is no number is the least one."""
    found = SMALL_INTEGERS.get(dtype.name)
    least, most = found or (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return np.where(np.isnan(x), least, np.clip(x, least, most)).astype(dtype)


def quantized_types(node: Node, x: Value, scale: Value, zero: Value | None = None) -> list[Type]:
    target = target_of(node, zero)
    check_parameters(node, x, scale, zero, target)
    return [(x.shape, target)]


def dynamically(node: Node, x: Array) -> tuple[Array, Array, Array]:
    """(uint8, scale, zero): from the least to the largest element and 0."""
    least, most = min(0.0, float(x.min())), max(0.0, float(x.max()))
    scale = np.float32((most - least) / 255) if most > least else np.float32(1)
    zero = saturated(np.rint(-least / scale), np.dtype(np.uint8))
    return saturated(np.rint(x / scale) + zero, np.dtype(np.uint8)), np.asarray(scale), zero


def integer_matmul(node: Node, a: Array, b: Array, za: Array | None = None, zb: Array | None = None) -> Array:
    """(a - za) (b - zb) modulo 2^32, za for every row, zb for every column.

    In double precision, which BLAS multiplies and numpy's integers go without: factors of 9 bits leave sums of 10^11
    products exact.
    """
    left, right = a.astype(np.float64), b.astype(np.float64)
    if za is not None:
        left -= za if za.size == 1 else za.reshape(-1, 1)
    if zb is not None:
        right -= zb if zb.size == 1 else zb.ravel()
    return np.asarray((left @ right).astype(np.int64).astype(np.int32))


def integer_conv(node: Node, x: Array, w: Array, zx: Array | None = None, zw: Array | None = None) -> Array:
    """The convolution of x - zx by w - zw modulo 2^32, zw for every output channel; padding counts as zx."""
    left, right = x.astype(np.float64), w.astype(np.float64)
    if zx is not None:
        left -= zx.reshape(())
    if zw is not None:
        right -= zw.reshape(-1, *[1] * (w.ndim - 1))
    return np.asarray(conv(node, left, right).astype(np.int64).astype(np.int32))


def integer_conv_types(node: Node, x: Value, w: Value, zx: Value | None = None, zw: Value | None = None) -> list[Type]:
    for one, of, most in ((zx, x, 1), (zw, w, w.shape[0])):
        if one is not None and (one.shape not in (*ONE, (most,)) or one.dtype != of.dtype):
            raise ValueError(f"a zero point of {one.dtype}, dims {one.shape}, for {of.dtype} of dims {of.shape}")
    return [(conv_types(node, x, w)[0][0], np.int32)]


def integer_matmul_types(
    node: Node, a: Value, b: Value, za: Value | None = None, zb: Value | None = None
) -> list[Type]:
    for one, of, most in ((za, a, a.shape[-2:-1]), (zb, b, b.shape[-1:])):
        if one is not None and (prod(one.shape) not in (1, *most) or one.dtype != of.dtype):
            raise ValueError(f"a zero point of {one.dtype}, dims {one.shape}, for {of.dtype} of dims {of.shape}")
    return [(matmul_types(node, a, b)[0][0], np.int32)]


OPERATORS = {
    "DequantizeLinear": Operator(dequantized, dequantized_types),
    "QuantizeLinear": Operator(quantized, quantized_types),
    "DynamicQuantizeLinear": Operator(
        dynamically, lambda node, x: [(x.shape, np.uint8), ((), np.float32), ((), np.uint8)]
    ),
    "MatMulInteger": Operator(integer_matmul, integer_matmul_types),
    "ConvInteger": Operator(integer_conv, integer_conv_types),
}
