"""Inner products of arrays: fully connected layers, of every type that a level multiplies."""

from collections.abc import Mapping, Sequence
from typing import Any

from asmdnn.errors import InvalidArguments, counted
from asmdnn.memory import Memory
from asmdnn.ops.applied import Descs
from asmdnn.ops.arguments import AnyArray, AnyDataType
from asmdnn.ops.quantized import NOTHING, Arguments, ProductRequest
from asmdnn.ops.typed import typed
from asmdnn.ops.typed_calls import NONE, Multiplication, multiplied, numbers_of
from asmdnn.primitives.attributes.post_ops import AnyPostOp
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.inner_product.inner_product import MOST_DIMS, InnerProductForward
from asmdnn.types import AccumulationMode, FpMathMode

TENSORS = {"x": "src", "weights": "weights", "out": "dst"}  # and what the primitive calls them
CHANNELS = 1  # the mask of weights' output channels


def inner_product(
    x: Any,
    weights: Any,
    bias: Any = None,
    *,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    scales: Mapping[str, Any] = NOTHING,
    zero_points: Mapping[str, Any] = NOTHING,
    fpmath_mode: FpMathMode = "strict",
    accumulation_mode: AccumulationMode = "strict",
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """A fully connected layer: out[n, o] = bias[o] + the sum over c and positions of x[n, c, ..] * weights[o, c, ..].

    x: (n, c) with up to three spatial dims; weights: (o, c) with the same ones, or a Memory in any format of the
    primitive's; bias: (o,) or None.  Arrays may have any strides that are not negative; others are copied.  post_ops
    run in order on the result; `Sum` adds what `out` held.  Returns a new array (n, o), or `out`: anything that exports
    memory of these dims, strided too.
    Types are those of `matmul`, and so are the modes; scales and zero points are of "x", "weights" and "out", those of
    weights for each of o, or one.  The result has `dtype`; without it x's type, but s32 of integers, f32 with scales.
    Raises InvalidArguments for what does not fit, Unimplemented for types that the level does not multiply.
    """
    array, rows = typed("x", x), weights if isinstance(weights, Memory) else typed("weights", weights)
    given: dict[str, tuple[str, Any]] = {"src": ("x", array), "weights": ("weights", rows)}
    if bias is not None:
        given["bias"] = "bias", typed("bias", bias)
    channels = check_dims(array.shape, rows.desc.dims if isinstance(rows, Memory) else rows.shape)
    modes = fpmath_mode, accumulation_mode
    request = ProductRequest(post_ops, dtype, scales, zero_points, engine, modes)
    numbers = NONE
    if request.has_numbers:
        numbers = numbers_of(Arguments(TENSORS, "weights", "output channels", channels, CHANNELS), request)
    return multiplied(PRODUCT, given, numbers, out, request)


def check_dims(x: tuple[int, ...], weights: tuple[int, ...]) -> int:
    """The output channels.  Raises InvalidArguments unless weights are for such an x."""
    if not 2 <= len(x) <= MOST_DIMS:
        raise InvalidArguments(f"x has {counted(len(x), 'dim')}, it must have 2 to {MOST_DIMS}")
    if len(weights) != len(x) or weights[1:] != x[1:]:
        raise InvalidArguments(f"weights has dims {weights}, x {x}: all but the first must be equal")
    return weights[0]


def dims_of(descs: Descs) -> tuple[int, ...]:
    return descs["src"].dims[0], descs["weights"].dims[0]


def describe(descs: Descs) -> InnerProductForward:
    (_, channels), bias = descs["dst"].dims, descs.get("bias")
    if bias is not None and bias.dims != (channels,):
        raise InvalidArguments(f"bias has dims {bias.dims}, it must be ({channels},), one for each row of weights")
    return InnerProductForward(descs["src"], descs["weights"], descs["dst"], bias)


PRODUCT = Multiplication(("inner_product",), dims_of, describe)
