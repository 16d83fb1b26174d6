"""Gradients of convolutions of arrays, of 1, 2 and 3 spatial axes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.memory.allocation import allocated
from asmdnn.ops.arguments import AnyArray, pads, per_axis
from asmdnn.ops.convolution_descs import ConvFunction, ConvWindow, plain_weights
from asmdnn.ops.gradients import Descs, floats, given_dims, gradient, gradients
from asmdnn.ops.typed import kind_of
from asmdnn.primitives.convolution.description import AXES
from asmdnn.primitives.convolution_backward.description import (
    BackwardData,
    BackwardWeights,
    ConvolutionBackwardData,
    ConvolutionBackwardWeights,
    DeconvolutionBackwardData,
    DeconvolutionBackwardWeights,
)
from asmdnn.primitives.core.engine import Engine
from asmdnn.types import ConvolutionAlgorithm

MOST_AXES = 3


def conv_input_gradient(
    dy: Any,
    weights: Any,
    dims: Sequence[int],
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    algorithm: ConvolutionAlgorithm = "direct",
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """The gradient of x of conv1d, conv2d or conv3d (the rank says which), for the gradient dy of their result.

    weights and the window as they were in the forward pass; dims: those of x, (n, c, h, w) and so on.  algorithm: as in
    conv2d.  dy, weights: f32, bf16 or f16; the result has dy's type, or that of out: anything that exports memory of
    x's dims.  Raises InvalidArguments, Unimplemented.
    """
    dst, weights = floats("dy", dy), allocated(np.ascontiguousarray, floats("weights", weights))
    kind = function_of("conv", dst)
    window = ConvWindow(stride, padding, dilation, groups, 0, algorithm)
    key = (kind.name, "input", window.plain(kind))
    dims, plain = (
        given_dims("dims", dims, kind.axes + 2),
        plain_weights(kind, weights.shape, groups, kind_of(weights)),
    )

    def describe(descs: Descs) -> BackwardData:
        fields = {**window_of(kind, window), "algorithm": algorithm}
        return ConvolutionBackwardData(descs["diff_src"], plain, descs["diff_dst"], **fields)

    inputs = {"diff_dst": ("dy", dst), "weights": ("weights", weights)}
    return gradient(key, inputs, ("diff_src", dims), describe, out, engine)


def conv_transpose_input_gradient(
    dy: Any,
    weights: Any,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """The gradient of x of conv_transpose1d, 2d or 3d for the gradient dy of their result: a convolution of dy.

    weights and the window as they were in the forward pass, but output_padding, which follows from the dims of dy.
    Raises InvalidArguments, Unimplemented.
    """
    dst, weights = floats("dy", dy), allocated(np.ascontiguousarray, floats("weights", weights))
    kind = function_of("conv_transpose", dst)
    window = ConvWindow(stride, padding, dilation, groups)
    key, plain = (kind.name, "input", window.plain(kind)), plain_weights(kind, weights.shape, groups, kind_of(weights))
    fields, sizes = transposed_window(kind, window, dst.shape, weights.shape)

    def describe(descs: Descs) -> BackwardData:
        return DeconvolutionBackwardData(descs["diff_src"], plain, descs["diff_dst"], **fields)

    inputs = {"diff_dst": ("dy", dst), "weights": ("weights", weights)}
    dims = (len(dst), len(weights), *sizes)
    return gradient(key, inputs, ("diff_src", dims), describe, out, engine)


def conv_weight_gradient(
    x: Any,
    dy: Any,
    kernel: int | Sequence[int],
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    engine: Engine | None = None,
) -> tuple[AnyArray, AnyArray]:
    """(dw, db): the gradients of weights and bias of conv1d, conv2d or conv3d, for the gradient dy of their result.

    x and the window as they were in the forward pass; kernel: one integer or (height, width) of weights.  dw is dense,
    (o, c / groups, kh, kw); db is (o,), the sums of dy.  Raises InvalidArguments, Unimplemented.
    """
    return weight_gradient("conv", x, dy, kernel, ConvWindow(stride, padding, dilation, groups), engine)


def conv_transpose_weight_gradient(
    x: Any,
    dy: Any,
    kernel: int | Sequence[int],
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    engine: Engine | None = None,
) -> tuple[AnyArray, AnyArray]:
    """(dw, db) of conv_transpose1d, 2d or 3d: dw is dense, (c, o / groups, kh, kw), as weights are there.

    All else is as in conv_weight_gradient; output_padding follows from the dims of x and dy.
    """
    return weight_gradient("conv_transpose", x, dy, kernel, ConvWindow(stride, padding, dilation, groups), engine)


def weight_gradient(
    name: str, x: Any, dy: Any, kernel: int | Sequence[int], window: ConvWindow, engine: Engine | None
) -> tuple[AnyArray, AnyArray]:
    src, dst = floats("x", x), floats("dy", dy)
    kind = function_of(name, dst)
    if src.ndim != dst.ndim:
        raise InvalidArguments(f"x has dims {src.shape}, dy {dst.shape}: both must have {dst.ndim}")
    sizes, numbers = per_axis("kernel", kernel, kind.axes, 1), window.plain(kind)
    ends = (src.shape[1], dst.shape[1]) if kind.transposed else (dst.shape[1], src.shape[1])
    shape = (ends[0], ends[1] // window.groups, *sizes)
    plain = plain_weights(kind, shape, window.groups, kind_of(dst))
    fields = window_of(kind, window)
    if kind.transposed:
        fields, _ = transposed_window(kind, window, dst.shape, shape)

    def describe(descs: Descs) -> BackwardWeights:
        form = DeconvolutionBackwardWeights if kind.transposed else ConvolutionBackwardWeights
        return form(descs["src"], plain, descs["diff_dst"], descs["diff_bias"], **fields)

    inputs = {"src": ("x", src), "diff_dst": ("dy", dst)}
    results = {"diff_bias": (dst.shape[1],), "diff_weights": shape}
    db, dw = gradients((kind.name, "weight", sizes, numbers), inputs, results, describe, None, engine)
    return dw, db


def function_of(name: str, dy: AnyArray) -> ConvFunction:
    """The function that dy is a result of.  Raises InvalidArguments."""
    axes = dy.ndim - 2
    if not 1 <= axes <= MOST_AXES:
        raise InvalidArguments(f"dy has dims {dy.shape}, 3 to 5 are needed: (n, o, ...)")
    return ConvFunction(f"{name}{axes}d", axes, transposed=name == "conv_transpose")


def window_of(kind: ConvFunction, window: ConvWindow) -> dict[str, Any]:
    """The window's fields of a description.  Raises InvalidArguments."""
    numbers = pads(window.padding, kind.axes)
    return {
        "strides": per_axis("stride", window.stride, kind.axes, 1),
        "dilations": tuple(d - 1 for d in per_axis("dilation", window.dilation, kind.axes, 1)),
        "padding_l": numbers[: kind.axes],
        "padding_r": numbers[kind.axes :],
    }


def transposed_window(
    kind: ConvFunction, window: ConvWindow, dst: tuple[int, ...], weights: tuple[int, ...]
) -> tuple[dict[str, Any], tuple[int, ...]]:
    """The fields of a transposed convolution with a result of these dims, and the pixels of its source: as many as fit,
    what is left being output padding.  Raises InvalidArguments."""
    fields = window_of(kind, window)
    before, after = fields["padding_l"], fields["padding_r"]
    extents = [(k - 1) * (d + 1) + 1 for k, d in zip(weights[2:], fields["dilations"], strict=True)]
    rooms = [n + p + q - extent for n, p, q, extent in zip(dst[2:], before, after, extents, strict=True)]
    for name, n, room in zip(AXES[-kind.axes :], dst[2:], rooms, strict=True):
        if room < 0:
            raise InvalidArguments(f"dy's {name} is {n}, a single pixel of x makes {n - room}: give a larger dy")
    steps = [divmod(room, stride) for room, stride in zip(rooms, fields["strides"], strict=True)]
    fields["padding_r"] = tuple(q - more for q, (_, more) in zip(after, steps, strict=True))
    return fields, tuple(1 + whole for whole, _ in steps)
