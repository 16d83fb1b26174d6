"""Convolutions of arrays of other types than f32, and quantised ones; kept calls of f32 are in convolving.py."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, counted
from asmdnn.memory import Memory
from asmdnn.memory.allocation import allocated
from asmdnn.ops.arguments import AnyArray, image_dims
from asmdnn.ops.calls import memory_at, readable
from asmdnn.ops.convolution_descs import ConvFunction, ConvWindow, description, packing_desc, plain_weights
from asmdnn.ops.quantized import Arguments, ProductRequest, check_typed_output, execute, packed_source
from asmdnn.ops.typed import named, typed
from asmdnn.primitives.attributes.attr import NO_ATTR
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.reordering import reorder
from asmdnn.records import replace

TENSORS = {"x": "src", "weights": "weights", "out": "dst"}  # and what the primitive calls them


def typed_convolution(
    kind: ConvFunction, inputs: tuple[Any, Any, Any], window: ConvWindow, out: Any, request: ProductRequest
) -> AnyArray:
    """The convolution of arrays of any types that a level multiplies.  Raises InvalidArguments, Unimplemented."""
    x, given, b = inputs
    window.plain(kind)
    image = typed("x", x)
    if image.ndim != kind.axes + 2:
        raise InvalidArguments(f"x has {counted(image.ndim, 'dim')}, {kind.axes + 2} are needed")
    memories = {"src": readable("x", image), "weights": weights_of(kind, given, window.groups)}
    if b is not None:
        memories["bias"] = readable("bias", allocated(np.ascontiguousarray, typed("bias", b)))
    src, weights = memories["src"].desc, memories["weights"].desc
    bias = memories["bias"].desc if b is not None else None
    desc = description(kind, src, weights, bias, window)
    of_groups = weights.ndims > src.ndims  # scales are of groups and their channels
    channels = desc.dst.dims[1]
    others = {"x": (src.dims[1], "input channels", 0b10), "out": (channels, "output channels", 0b10)}
    arguments = Arguments(TENSORS, "weights", "output channels", channels, 0b11 if of_groups else 0b1, others=others)
    arguments.check(request)
    check_typed_output(out, request)
    result: AnyArray = out
    if out is None:
        dtype, numpy = request.result(src.dtype, [image, *[given] * isinstance(given, np.ndarray)])
        result = allocated(np.empty, desc.dst.dims, numpy)
    elif out.shape != desc.dst.dims:
        raise InvalidArguments(f"out has dims {out.shape}, the result has {desc.dst.dims}")
    memories["dst"] = memory_at("out", typed("out", out) if out is not None else named(result, dtype))
    execute(replace(desc, dst=memories["dst"].desc), memories, arguments, request)
    return result


def weights_of(kind: ConvFunction, given: Any, groups: int) -> Memory:
    """As a primitive describes them: packed ones as they are."""
    if isinstance(given, Memory) and given.desc.inner_blocks:
        return given
    dense = memory_at("weights", allocated(np.ascontiguousarray, typed("weights", given)))
    return Memory(plain_weights(kind, dense.desc.dims, groups, dense.desc.dtype), dense.array)


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
