"""Weights of convolutions, packed once."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asmdnn.memory import Memory
from asmdnn.ops.arguments import F32, Padding, as_f32, image_dims
from asmdnn.ops.convolution_descs import ConvFunction, ConvWindow, packing_desc, plain_weights
from asmdnn.ops.packed import pack
from asmdnn.ops.quantized import is_typed
from asmdnn.ops.typed_conv import packed_typed
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine, engine_key
from asmdnn.types import ConvolutionAlgorithm, FpMathMode


def pack_conv_weights(
    weights: Any,
    dims: Sequence[int] | None = None,
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

    dims, of x, (n, c, h, w) and so on, and the window are those for which the format should be the fastest; it serves
    all others too, a few percent slower where they would have chosen wider or narrower panels.  The result's `array`
    can be saved and mapped back, see `pack_weights`.  With an `algorithm` other than "direct" they may be transformed
    for Winograd's convolution, which then serves images of all sizes, with windows of stride 1 alone.  Packed with an
    fpmath_mode, which may make bf16 of f32, they are for f32 images and the same mode.
    Raises InvalidArguments.
    """
    window = ConvWindow(stride, padding, dilation, groups, algorithm=algorithm)
    return packed(weights, dims, window, False, Attr(fpmath_mode=fpmath_mode), engine)


def pack_conv_transpose_weights(
    weights: Any,
    dims: Sequence[int] | None = None,
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
    return packed(weights, dims, window, True, Attr(fpmath_mode=fpmath_mode), engine)


def packed(
    weights: Any, dims: Sequence[int] | None, window: ConvWindow, transposed: bool, attr: Attr, engine: Engine | None
) -> Memory:
    """Weights of any type for a convolution with this attribute, or its adjoint."""
    if is_typed(weights):
        axes = weights.desc.ndims - 2 if isinstance(weights, Memory) else min(max(np.ndim(weights) - 2, 1), 3)
        return packed_typed(ConvFunction("pack", axes, transposed), weights, dims, window, engine)
    plain = weights if type(weights) is np.ndarray and weights.dtype is F32 else as_f32("weights", weights)
    kind = ConvFunction(
        "pack_conv_transpose" if transposed else "pack_conv", min(max(plain.ndim - 2, 1), 3), transposed
    )
    dims = image_dims(dims, kind.axes + 2)
    key = (kind, plain.shape, plain.strides, dims, window.plain(kind), attr, engine_key(engine))
    desc = plain_weights(kind, plain.shape, window.groups)
    return pack("weights", plain, key, lambda: packing_desc(kind, desc, dims, window, (attr, engine)), engine, desc)
