"""Convolutions of arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

from asmdnn.ops.arguments import AnyArray, AnyDataType, Padding
from asmdnn.ops.convolution_descs import ConvFunction, ConvWindow
from asmdnn.ops.convolving import convolve
from asmdnn.ops.quantized import NOTHING, ProductRequest
from asmdnn.primitives.attributes.post_ops import AnyPostOp
from asmdnn.primitives.core.engine import Engine
from asmdnn.types import AccumulationMode, ConvolutionAlgorithm, FpMathMode

CONV1D, CONV2D, CONV3D = (ConvFunction(f"conv{axes}d", axes) for axes in (1, 2, 3))
TRANSPOSE1D, TRANSPOSE2D, TRANSPOSE3D = (
    ConvFunction(f"conv_transpose{axes}d", axes, transposed=True) for axes in (1, 2, 3)
)


def conv1d(
    x: Any,
    weights: Any,
    bias: Any = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    scales: Mapping[str, Any] = NOTHING,
    zero_points: Mapping[str, Any] = NOTHING,
    fpmath_mode: FpMathMode = "strict",
    accumulation_mode: AccumulationMode = "strict",
    data_format: str | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """As conv2d with one spatial axis: x (n, c, w), weights (o, c / groups, kw).

    padding is one integer, or (left, right).
    """
    window = ConvWindow(stride, padding, dilation, groups, data_format=data_format)
    request = ProductRequest(post_ops, dtype, scales, zero_points, engine, (fpmath_mode, accumulation_mode))
    return convolve(CONV1D, (x, weights, bias), window, out, request)


def conv2d(
    x: Any,
    weights: Any,
    bias: Any = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    post_ops: Sequence[AnyPostOp | str] = (),
    algorithm: ConvolutionAlgorithm = "direct",
    dtype: AnyDataType | None = None,
    scales: Mapping[str, Any] = NOTHING,
    zero_points: Mapping[str, Any] = NOTHING,
    fpmath_mode: FpMathMode = "strict",
    accumulation_mode: AccumulationMode = "strict",
    data_format: str | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """2D convolution (cross-correlation, as in every deep-learning library) of arrays.

    x: (n, c, h, w); weights: (o, c / groups, kh, kw), or what `pack_conv_weights` made of it, once, instead of with
    every call; bias: (o,) or None.  stride, dilation (1 is dense): one integer or (height, width); padding: one, two,
    or (top, left, bottom, right), filled with zeros; "same", for results of x's size over the stride, rounded up; or
    "valid".  Each of `groups` groups of output channels is computed from its group of input channels.  post_ops run in
    order on the result, words for those without parameters, such as "relu"; `Sum` adds what `out` held, and tensors of
    a `PostOp` come with their data.  algorithm: "winograd" is for 3x3 with stride 1 and rounds more (docs/winograd.md),
    "auto" takes it where it is expected to be faster; weights that are packed for it need no word.
    Returns a new array (n, o, oh, ow), or `out`: anything that exports memory of these dims.  Arrays may be numpy's, or
    anything that speaks DLPack or the array interface.  x and out may lie anyhow, such as parts of larger ones; weights
    and bias are copied if not dense.  data_format: "NHWC" for x (n, h, w, c) and a result with channels last; weights
    stay as they are.
    Of other types than f32, and with scales and zero points of "x", "weights" and "out", see docs/low-precision.md:
    bf16 or f16 both, or u8 or s8 times s8.  The result has `dtype`; without it x's type, but s32 of integers, f32 with
    scales.  Pixels of padding count as x's zero point.  fpmath_mode: what f32 arrays may be rounded to before they are
    multiplied, see `Attr`: "bf16" is about twice as fast where the CPU multiplies it.
    Raises InvalidArguments for shapes that do not fit, Unimplemented without AVX2.
    """
    window = ConvWindow(stride, padding, dilation, groups, algorithm=algorithm, data_format=data_format)
    request = ProductRequest(post_ops, dtype, scales, zero_points, engine, (fpmath_mode, accumulation_mode))
    return convolve(CONV2D, (x, weights, bias), window, out, request)


def conv3d(
    x: Any,
    weights: Any,
    bias: Any = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    scales: Mapping[str, Any] = NOTHING,
    zero_points: Mapping[str, Any] = NOTHING,
    fpmath_mode: FpMathMode = "strict",
    accumulation_mode: AccumulationMode = "strict",
    data_format: str | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """As conv2d with three spatial axes: x (n, c, d, h, w), weights (o, c / groups, kd, kh, kw).

    padding is one integer, (depth, height, width), or all that comes before and then all that comes after.
    """
    window = ConvWindow(stride, padding, dilation, groups, data_format=data_format)
    request = ProductRequest(post_ops, dtype, scales, zero_points, engine, (fpmath_mode, accumulation_mode))
    return convolve(CONV3D, (x, weights, bias), window, out, request)


def conv_transpose1d(
    x: Any,
    weights: Any,
    bias: Any = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    output_padding: int | Sequence[int] = 0,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    scales: Mapping[str, Any] = NOTHING,
    zero_points: Mapping[str, Any] = NOTHING,
    fpmath_mode: FpMathMode = "strict",
    accumulation_mode: AccumulationMode = "strict",
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """As conv_transpose2d with one spatial axis: x (n, c, w), weights (c, o / groups, kw)."""
    window = ConvWindow(stride, padding, dilation, groups, output_padding)
    request = ProductRequest(post_ops, dtype, scales, zero_points, engine, (fpmath_mode, accumulation_mode))
    return convolve(TRANSPOSE1D, (x, weights, bias), window, out, request)


def conv_transpose2d(
    x: Any,
    weights: Any,
    bias: Any = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    output_padding: int | Sequence[int] = 0,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    scales: Mapping[str, Any] = NOTHING,
    zero_points: Mapping[str, Any] = NOTHING,
    fpmath_mode: FpMathMode = "strict",
    accumulation_mode: AccumulationMode = "strict",
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """2D transposed convolution, the adjoint of conv2d with the same arguments, of f32 arrays.

    x: (n, c, h, w); weights: (c, o / groups, kh, kw), as torch has it, or what `pack_conv_transpose_weights` made of
    it; bias: (o,) or None.  padding is cut off the result; output_padding, below the stride, adds pixels at its end, to
    make up for sizes that a convolution with strides rounds down: of an axis the result has (size - 1) * stride +
    (kernel - 1) * dilation + 1 - padding on both sides + output_padding pixels.  All else is as in conv2d.
    """
    window = ConvWindow(stride, padding, dilation, groups, output_padding)
    request = ProductRequest(post_ops, dtype, scales, zero_points, engine, (fpmath_mode, accumulation_mode))
    return convolve(TRANSPOSE2D, (x, weights, bias), window, out, request)


def conv_transpose3d(
    x: Any,
    weights: Any,
    bias: Any = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    output_padding: int | Sequence[int] = 0,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    scales: Mapping[str, Any] = NOTHING,
    zero_points: Mapping[str, Any] = NOTHING,
    fpmath_mode: FpMathMode = "strict",
    accumulation_mode: AccumulationMode = "strict",
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """As conv_transpose2d with three spatial axes: x (n, c, d, h, w), weights (c, o / groups, kd, kh, kw)."""
    window = ConvWindow(stride, padding, dilation, groups, output_padding)
    request = ProductRequest(post_ops, dtype, scales, zero_points, engine, (fpmath_mode, accumulation_mode))
    return convolve(TRANSPOSE3D, (x, weights, bias), window, out, request)
