"""Convolutions of arrays of other types than f32, and quantised ones; kept calls of f32 are in convolving.py."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, counted
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.allocation import allocated
from asmdnn.ops.applied import Descs
from asmdnn.ops.arguments import AnyArray, image_dims
from asmdnn.ops.calls import memory_at
from asmdnn.ops.convolution_descs import (
    ConvFunction,
    Convolution,
    ConvWindow,
    description,
    packing_desc,
    plain_weights,
    result_dims,
)
from asmdnn.ops.quantized import Arguments, ProductRequest, packed_source
from asmdnn.ops.typed import typed
from asmdnn.ops.typed_calls import NONE, Multiplication, multiplied, numbers_of
from asmdnn.primitives.attributes.attr import NO_ATTR
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.reordering import reorder
from asmdnn.records import replace

TENSORS = {"x": "src", "weights": "weights", "out": "dst"}  # and what the primitive calls them


def typed_convolution(
    kind: ConvFunction, inputs: tuple[Any, Any, Any], window: ConvWindow, out: Any, request: ProductRequest
) -> AnyArray:
    """The convolution of arrays of any types that a level multiplies.  Raises InvalidArguments, Unimplemented."""
    x, weights, bias = inputs
    window = ConvWindow(*window.plain(kind))
    image = typed("x", x)
    if image.ndim != kind.axes + 2:
        raise InvalidArguments(f"x has {counted(image.ndim, 'dim')}, {kind.axes + 2} are needed")
    is_packed = isinstance(weights, Memory) and bool(weights.desc.inner_blocks)
    given = {"src": ("x", image), "weights": ("weights", weights if is_packed else dense("weights", weights))}
    if bias is not None:
        given["bias"] = "bias", dense("bias", bias)

    def describe(descs: Descs) -> Convolution:
        return replace(convolution(descs), dst=descs["dst"])

    def convolution(descs: Descs) -> Convolution:
        format = descs["weights"]
        if not is_packed:
            format = plain_weights(kind, format.dims, window.groups, format.dtype)
        return description(kind, descs["src"], format, descs.get("bias"), window)

    what = Multiplication((kind.name, window), lambda descs: convolution(descs).dst.dims, describe)
    numbers = NONE
    if request.has_numbers:
        desc = weights.desc if is_packed else plain_weights(kind, given["weights"][1].shape, window.groups)
        numbers = numbers_of(arguments_of(kind, image.shape, desc, window), request)
    return multiplied(what, given, numbers, out, request)


def arguments_of(kind: ConvFunction, image: tuple[int, ...], weights: MemoryDesc, window: ConvWindow) -> Arguments:
    """What has scales and zero points, and how many."""
    of_groups = weights.ndims > len(image)  # scales are of groups and their channels
    channels = result_dims(kind, image, weights.dims, window)[1]
    others = {"x": (image[1], "input channels", 0b10), "out": (channels, "output channels", 0b10)}
    return Arguments(TENSORS, "weights", "output channels", channels, 0b11 if of_groups else 0b1, others=others)


def dense(name: str, value: Any) -> AnyArray:
    """An array without gaps, in row-major order."""
    array = typed(name, value)
    return array if array.flags.c_contiguous else allocated(np.ascontiguousarray, array)


def weights_of(kind: ConvFunction, given: Any, groups: int) -> Memory:
    """As a primitive describes them: packed ones as they are."""
    if isinstance(given, Memory) and given.desc.inner_blocks:
        return given
    plain = memory_at("weights", dense("weights", given))
    return Memory(plain_weights(kind, plain.desc.dims, groups, plain.desc.dtype), plain.array)


def packed_typed(
    kind: ConvFunction, given: Any, dims: Sequence[int] | None, window: ConvWindow, engine: Engine | None
) -> Memory:
    """Weights of other types than f32 in the format that convolutions read fastest: of src of their own type, or, if
    they are s8, of u8 or s8."""
    window.plain(kind)
    weights = weights_of(kind, given, window.groups)
    dims, dtype = image_dims(dims, kind.axes + 2), weights.desc.dtype
    planned = NO_ATTR, engine
    target = packing_desc(kind, weights.desc, dims, window, planned, packed_source(dtype))
    return reorder(weights, target, engine=engine)
