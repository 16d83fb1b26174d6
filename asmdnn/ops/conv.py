"""Convolutions of arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asmdnn.memory import Memory, MemoryDesc
from asmdnn.ops.arguments import F32, Array, as_f32, image_dims, per_axis
from asmdnn.ops.convolving import ConvFunction, ConvWindow, any_format, convolve, description, plain_weights
from asmdnn.ops.packed import pack
from asmdnn.primitives.attributes.attr import AnyPostOp
from asmdnn.primitives.descriptor import primitive_desc
from asmdnn.primitives.engine import Engine, engine_key
from asmdnn.types import ConvolutionAlgorithm, f32

USUAL_PIXELS = 28  # of an axis of dst that weights are packed for if no shape is given
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
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    post_ops: Sequence[AnyPostOp] = (),
    out: Any = None,
    engine: Engine | None = None,
) -> Array:
    """As conv2d with one spatial axis: x (n, c, w), w (o, c / groups, kw).

    padding is one integer, or (left, right).
    """
    window = ConvWindow(stride, padding, dilation, groups)
    return convolve(CONV1D, (x, w, b), window, post_ops, out, engine)


def conv2d(
    x: Any,
    w: Any,
    b: Any = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    post_ops: Sequence[AnyPostOp] = (),
    algorithm: ConvolutionAlgorithm = "direct",
    out: Any = None,
    engine: Engine | None = None,
) -> Array:
    """2D convolution (cross-correlation, as in every deep-learning library) of f32 arrays.

    x: (n, c, h, w); w: (o, c / groups, kh, kw), or what `pack_conv_weights` made of it, once, instead of with every
    call; b: (o,) or None.  stride, dilation (1 is dense): one integer or (height, width); padding: one, two, or (top,
    left, bottom, right), filled with zeros.  Each of `groups` groups of output channels is computed from its group of
    input channels.  post_ops run in order on the result; `Sum` adds what `out` held, and tensors of a `PostOp` come
    with their data.  algorithm: "winograd" is for 3x3 with stride 1 and rounds more (docs/winograd.md), "auto" takes it
    where it is expected to be faster; weights that are packed for it need no word.
    Returns a new array (n, o, oh, ow), or `out`: anything that exports memory of these dims.  Arrays may be numpy's, or
    anything that speaks DLPack or the array interface; they must be f32.  x and out may lie anyhow, such as images with
    channels last (x.transpose(0, 3, 1, 2)) and parts of larger ones; w and b are copied if not dense.
    Raises InvalidArguments for shapes that do not fit, Unimplemented without AVX2.
    """
    window = ConvWindow(stride, padding, dilation, groups, algorithm=algorithm)
    return convolve(CONV2D, (x, w, b), window, post_ops, out, engine)


def conv3d(
    x: Any,
    w: Any,
    b: Any = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    post_ops: Sequence[AnyPostOp] = (),
    out: Any = None,
    engine: Engine | None = None,
) -> Array:
    """As conv2d with three spatial axes: x (n, c, d, h, w), w (o, c / groups, kd, kh, kw).

    padding is one integer, (depth, height, width), or all that comes before and then all that comes behind.
    """
    window = ConvWindow(stride, padding, dilation, groups)
    return convolve(CONV3D, (x, w, b), window, post_ops, out, engine)


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
    post_ops: Sequence[AnyPostOp] = (),
    out: Any = None,
    engine: Engine | None = None,
) -> Array:
    """As conv_transpose2d with one spatial axis: x (n, c, w), w (c, o / groups, kw)."""
    window = ConvWindow(stride, padding, dilation, groups, output_padding)
    return convolve(TRANSPOSE1D, (x, w, b), window, post_ops, out, engine)


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
    post_ops: Sequence[AnyPostOp] = (),
    out: Any = None,
    engine: Engine | None = None,
) -> Array:
    """2D transposed convolution, the adjoint of conv2d with the same arguments, of f32 arrays.

    x: (n, c, h, w); w: (c, o / groups, kh, kw), as torch has it, or what `pack_conv_transpose_weights` made of it; b:
    (o,) or None.  padding is cut off the result; output_padding, below the stride, adds pixels at its end, to make up
    for sizes that a convolution with strides rounds down: of an axis the result has (size - 1) * stride +
    (kernel - 1) * dilation + 1 - padding on both sides + output_padding pixels.  All else is as in conv2d.
    """
    window = ConvWindow(stride, padding, dilation, groups, output_padding)
    return convolve(TRANSPOSE2D, (x, w, b), window, post_ops, out, engine)


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
    post_ops: Sequence[AnyPostOp] = (),
    out: Any = None,
    engine: Engine | None = None,
) -> Array:
    """As conv_transpose2d with three spatial axes: x (n, c, d, h, w), w (c, o / groups, kd, kh, kw)."""
    window = ConvWindow(stride, padding, dilation, groups, output_padding)
    return convolve(TRANSPOSE3D, (x, w, b), window, post_ops, out, engine)


def pack_conv_weights(
    w: Any,
    image: Sequence[int] | None = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    algorithm: ConvolutionAlgorithm = "direct",
    engine: Engine | None = None,
) -> Memory:
    """Weights (o, c / groups, ...) in a format that conv1d, 2d or 3d reads without packing them, for any images.

    `image` and the window are the dims (n, c, h, w) and so on for which the format should be the fastest; it serves all
    others too, a few percent slower where they would have chosen wider or narrower panels.  The result's `array` can be
    saved and mapped back, see `pack_weights`.  With an `algorithm` other than "direct" they may be transformed for
    Winograd's convolution, which then serves images of all sizes, with windows of stride 1 alone.
    Raises InvalidArguments.
    """
    window = ConvWindow(stride, padding, dilation, groups, algorithm=algorithm)
    return packed(w, image, window, transposed=False, engine=engine)


def pack_conv_transpose_weights(
    w: Any,
    image: Sequence[int] | None = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    engine: Engine | None = None,
) -> Memory:
    """The same of weights (c, o / groups, ...), for conv_transpose1d, 2d and 3d."""
    return packed(w, image, ConvWindow(stride, padding, dilation, groups), transposed=True, engine=engine)


def packed(w: Any, image: Sequence[int] | None, window: ConvWindow, transposed: bool, engine: Engine | None) -> Memory:
    plain = w if type(w) is np.ndarray and w.dtype is F32 else as_f32("w", w)
    kind = ConvFunction(
        "pack_conv_transpose" if transposed else "pack_conv", min(max(plain.ndim - 2, 1), 3), transposed
    )
    dims = image_dims(image, kind.axes + 2)
    key = (kind, plain.shape, plain.strides, dims, window.plain(kind), engine_key(engine))
    weights = plain_weights(kind, plain.shape, window.groups)
    return pack("w", plain, key, lambda: weights_desc(kind, weights, dims, window, engine), engine, weights)


def weights_desc(
    kind: ConvFunction, plain: MemoryDesc, image: tuple[int, ...] | None, window: ConvWindow, engine: Engine | None
) -> MemoryDesc:
    """The format for images of these dims."""
    strides, dilations = (
        per_axis(name, n, kind.axes, 1) for name, n in (("stride", window.stride), ("dilation", window.dilation))
    )
    kernel, channels = plain.dims[-kind.axes :], window.groups * plain.dims[-kind.axes - 1]
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if kind.transposed:  # parts of one kernel position are all alike, however many there are
        image = image or (1, channels, *[USUAL_PIXELS] * kind.axes)
        window = window._replace(padding=0, output_padding=0, stride=tuple(map(min, strides, extents)))
    elif image is None:
        pixels = [(USUAL_PIXELS - 1) * s + extent for s, extent in zip(strides, extents, strict=True)]
        image, window = (1, channels, *pixels), window._replace(padding=0)
    desc = description(kind, MemoryDesc(image, f32, "abx"), any_format(plain), None, window)
    return primitive_desc(desc, engine=engine).plan.tensors["weights"]
