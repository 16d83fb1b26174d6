"""Convolutions of arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from asmdnn.memory import Memory
from asmdnn.ops.arguments import F32, AnyArray, Padding, as_f32, image_dims
from asmdnn.ops.convolution_descs import ConvFunction, ConvWindow, packing_desc, plain_weights
from asmdnn.ops.convolving import convolve
from asmdnn.ops.packed import pack
from asmdnn.ops.quantized import NOTHING, ProductRequest, is_typed
from asmdnn.ops.typed_conv import packed_typed
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.post_ops import AnyPostOp
from asmdnn.primitives.core.engine import Engine, engine_key
from asmdnn.types import AccumulationMode, ConvolutionAlgorithm, DataType, FpMathMode

CONV1D, CONV2D, CONV3D = (ConvFunction(f"conv{axes}d", axes) for axes in (1, 2, 3))
TRANSPOSE1D, TRANSPOSE2D, TRANSPOSE3D = (
    ConvFunction(f"conv_transpose{axes}d", axes, transposed=True) for axes in (1, 2, 3)
)


def conv1d(
    x: Any,
    w: Any,
    b: Any = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: DataType | None = None,
    scales: Mapping[str, Any] = NOTHING,
    zero_points: Mapping[str, Any] = NOTHING,
    fpmath_mode: FpMathMode = "strict",
    accumulation_mode: AccumulationMode = "strict",
    data_format: str | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """As conv2d with one spatial axis: x (n, c, w), w (o, c / groups, kw).

    padding is one integer, or (left, right).
    """
    window = ConvWindow(stride, padding, dilation, groups, data_format=data_format)
    modes = fpmath_mode, accumulation_mode
    request = ProductRequest(post_ops, dtype, scales, zero_points, engine, modes)
    return convolve(CONV1D, (x, w, b), window, out, request)


def conv2d(
    x: Any,
    w: Any,
    b: Any = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    post_ops: Sequence[AnyPostOp | str] = (),
    algorithm: ConvolutionAlgorithm = "direct",
    dtype: DataType | None = None,
    scales: Mapping[str, Any] = NOTHING,
    zero_points: Mapping[str, Any] = NOTHING,
    fpmath_mode: FpMathMode = "strict",
    accumulation_mode: AccumulationMode = "strict",
    data_format: str | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """2D convolution (cross-correlation, as in every deep-learning library) of arrays.

    x: (n, c, h, w); w: (o, c / groups, kh, kw), or what `pack_conv_weights` made of it, once, instead of with every
    call; b: (o,) or None.  stride, dilation (1 is dense): one integer or (height, width); padding: one, two, or (top,
    left, bottom, right), filled with zeros; "same", for results of x's size over the stride, rounded up; or "valid".
    Each of `groups` groups of output channels is computed from its group of input channels.  post_ops run in order on
    the result, words for those without parameters, such as "relu"; `Sum` adds what `out` held, and tensors of a
    `PostOp` come with their data.  algorithm: "winograd" is for 3x3 with stride 1 and rounds more (docs/winograd.md),
    "auto" takes it where it is expected to be faster; weights that are packed for it need no word.
    Returns a new array (n, o, oh, ow), or `out`: anything that exports memory of these dims.  Arrays may be numpy's, or
    anything that speaks DLPack or the array interface.  x and out may lie anyhow, such as parts of larger ones; w and b
    are copied if not dense.  data_format: "NHWC" for x (n, h, w, c) and a result with channels last; w stays as it is.
    Of other types than f32, and with scales and zero points of "x", "w" and "out", see docs/low-precision.md: bf16 or
    f16 both, or u8 or s8 times s8.  The result has `dtype`; without it x's type, but s32 of integers, f32 with scales.
    Pixels of padding count as x's zero point.  fpmath_mode: what f32 arrays may be rounded to before they are
    multiplied, see `Attr`: "bf16" is about twice as fast where the CPU multiplies it.
    Raises InvalidArguments for shapes that do not fit, Unimplemented without AVX2.
    """
    window = ConvWindow(stride, padding, dilation, groups, algorithm=algorithm, data_format=data_format)
    modes = fpmath_mode, accumulation_mode
    request = ProductRequest(post_ops, dtype, scales, zero_points, engine, modes)
    return convolve(CONV2D, (x, w, b), window, out, request)


def conv3d(
    x: Any,
    w: Any,
    b: Any = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: DataType | None = None,
    scales: Mapping[str, Any] = NOTHING,
    zero_points: Mapping[str, Any] = NOTHING,
    fpmath_mode: FpMathMode = "strict",
    accumulation_mode: AccumulationMode = "strict",
    data_format: str | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """As conv2d with three spatial axes: x (n, c, d, h, w), w (o, c / groups, kd, kh, kw).

    padding is one integer, (depth, height, width), or all that comes before and then all that comes after.
    """
    window = ConvWindow(stride, padding, dilation, groups, data_format=data_format)
    modes = fpmath_mode, accumulation_mode
    request = ProductRequest(post_ops, dtype, scales, zero_points, engine, modes)
    return convolve(CONV3D, (x, w, b), window, out, request)


def conv_transpose1d(
    x: Any,
    w: Any,
    b: Any = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    output_padding: int | Sequence[int] = 0,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: DataType | None = None,
    scales: Mapping[str, Any] = NOTHING,
    zero_points: Mapping[str, Any] = NOTHING,
    fpmath_mode: FpMathMode = "strict",
    accumulation_mode: AccumulationMode = "strict",
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """As conv_transpose2d with one spatial axis: x (n, c, w), w (c, o / groups, kw)."""
    window = ConvWindow(stride, padding, dilation, groups, output_padding)
    modes = fpmath_mode, accumulation_mode
    request = ProductRequest(post_ops, dtype, scales, zero_points, engine, modes)
    return convolve(TRANSPOSE1D, (x, w, b), window, out, request)


def conv_transpose2d(
    x: Any,
    w: Any,
    b: Any = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    output_padding: int | Sequence[int] = 0,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: DataType | None = None,
    scales: Mapping[str, Any] = NOTHING,
    zero_points: Mapping[str, Any] = NOTHING,
    fpmath_mode: FpMathMode = "strict",
    accumulation_mode: AccumulationMode = "strict",
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """2D transposed convolution, the adjoint of conv2d with the same arguments, of f32 arrays.

    x: (n, c, h, w); w: (c, o / groups, kh, kw), as torch has it, or what `pack_conv_transpose_weights` made of it; b:
    (o,) or None.  padding is cut off the result; output_padding, below the stride, adds pixels at its end, to make up
    for sizes that a convolution with strides rounds down: of an axis the result has (size - 1) * stride +
    (kernel - 1) * dilation + 1 - padding on both sides + output_padding pixels.  All else is as in conv2d.
    """
    window = ConvWindow(stride, padding, dilation, groups, output_padding)
    modes = fpmath_mode, accumulation_mode
    request = ProductRequest(post_ops, dtype, scales, zero_points, engine, modes)
    return convolve(TRANSPOSE2D, (x, w, b), window, out, request)


def conv_transpose3d(
    x: Any,
    w: Any,
    b: Any = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    output_padding: int | Sequence[int] = 0,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: DataType | None = None,
    scales: Mapping[str, Any] = NOTHING,
    zero_points: Mapping[str, Any] = NOTHING,
    fpmath_mode: FpMathMode = "strict",
    accumulation_mode: AccumulationMode = "strict",
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """As conv_transpose2d with three spatial axes: x (n, c, d, h, w), w (c, o / groups, kd, kh, kw)."""
    window = ConvWindow(stride, padding, dilation, groups, output_padding)
    modes = fpmath_mode, accumulation_mode
    request = ProductRequest(post_ops, dtype, scales, zero_points, engine, modes)
    return convolve(TRANSPOSE3D, (x, w, b), window, out, request)


def pack_conv_weights(
    w: Any,
    image: Sequence[int] | None = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    algorithm: ConvolutionAlgorithm = "direct",
    fpmath_mode: FpMathMode = "strict",
    engine: Engine | None = None,
) -> Memory:
    """Weights (o, c / groups, ...) in a format that conv1d, 2d or 3d reads without packing them, for any images.

    `image` and the window are the dims (n, c, h, w) and so on for which the format should be the fastest; it serves all
    others too, a few percent slower where they would have chosen wider or narrower panels.  The result's `array` can be
    saved and mapped back, see `pack_weights`.  With an `algorithm` other than "direct" they may be transformed for
    Winograd's convolution, which then serves images of all sizes, with windows of stride 1 alone.  Packed with an
    fpmath_mode, which may make bf16 of f32, they are for f32 images and the same mode.
    Raises InvalidArguments.
    """
    window = ConvWindow(stride, padding, dilation, groups, algorithm=algorithm)
    return packed(w, image, window, False, Attr(fpmath_mode=fpmath_mode), engine)


def pack_conv_transpose_weights(
    w: Any,
    image: Sequence[int] | None = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    fpmath_mode: FpMathMode = "strict",
    engine: Engine | None = None,
) -> Memory:
    """The same of weights (c, o / groups, ...), for conv_transpose1d, 2d and 3d."""
    window = ConvWindow(stride, padding, dilation, groups)
    return packed(w, image, window, True, Attr(fpmath_mode=fpmath_mode), engine)


def packed(
    w: Any, image: Sequence[int] | None, window: ConvWindow, transposed: bool, attr: Attr, engine: Engine | None
) -> Memory:
    """Weights of any type for a convolution with this attribute, or its adjoint."""
    if is_typed(w):
        axes = min(max(np.ndim(w) - 2, 1), 3) if not isinstance(w, Memory) else w.desc.ndims - 2
        return packed_typed(ConvFunction("pack", axes, transposed), w, image, window, engine)
    plain = w if type(w) is np.ndarray and w.dtype is F32 else as_f32("w", w)
    kind = ConvFunction(
        "pack_conv_transpose" if transposed else "pack_conv", min(max(plain.ndim - 2, 1), 3), transposed
    )
    dims = image_dims(image, kind.axes + 2)
    key = (kind, plain.shape, plain.strides, dims, window.plain(kind), attr, engine_key(engine))
    weights = plain_weights(kind, plain.shape, window.groups)
    return pack("w", plain, key, lambda: packing_desc(kind, weights, dims, window, (attr, engine)), engine, weights)
