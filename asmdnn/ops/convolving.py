"""How a convolution of f32 arrays comes to its primitive: kept calls, and the packing of weights."""

from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, counted
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.ops.arguments import F32, AnyArray, Array, aligned, as_f32, chain_of, output, packed_or_plain
from asmdnn.ops.calls import ArgumentPacker, ArrayCall, calls, desc_of, kept_call, layout_of
from asmdnn.ops.convolution_descs import ConvFunction, ConvWindow, any_format, description, plain_weights, result_dims
from asmdnn.ops.data_format import channels_second, into_last, is_last
from asmdnn.ops.quantized import ProductRequest, attr_of, is_plain, needs_types
from asmdnn.ops.typed import kind_of, numpy_type, result_type, typed
from asmdnn.ops.typed_conv import typed_convolution
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.user_post_op import PostOp
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine, engine_key
from asmdnn.primitives.core.primitive import Primitive
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.records import dataclass, replace
from asmdnn.types import f32


def convolve(
    kind: ConvFunction, inputs: tuple[Any, Any, Any], window: ConvWindow, out: Any, request: ProductRequest
) -> AnyArray:
    """The call for x, weights and bias, looked up by all that it depends on."""
    (x, weights, b), engine = inputs, request.engine
    if window.data_format is not None and is_last(window.data_format, kind.axes):
        return convolve_last(kind, inputs, window._replace(data_format=None), out, request)
    if not is_plain(request.dtype, request.scales, request.zero_points) or needs_types(x, weights, b, out):
        return typed_convolution(kind, inputs, window, out, request)
    image = x if type(x) is np.ndarray and x.dtype is F32 else as_f32("x", x)
    plain, second = packed_or_plain("weights", weights)
    arrays: list[AnyArray] = [image, plain]
    third = None
    if b is not None:
        bias = b if type(b) is np.ndarray and b.dtype is F32 else as_f32("bias", b)
        third = (bias.shape, bias.strides)
        arrays.append(bias)
    target = where = None
    if out is not None:
        target = out if type(out) is np.ndarray and out.dtype is F32 else output("out", out)
        where = (target.shape, target.strides)
    numbers = window.plain(kind)
    chain = chain_of(request.post_ops)
    asked = chain, request.modes, engine_key(engine)
    key = (kind.name, image.shape, image.strides, second, third, where, numbers, asked)
    call = kept_call(key)
    if call is None:
        labels = ("x", "weights", "bias")[: len(arrays)]
        packed = weights.desc if type(weights) is Memory else None
        given = ConvArrays(kind, dict(zip(labels, arrays, strict=True)), packed, window)
        call = calls.put(key, prepare(given, target, attr_of(chain, request.modes), engine))
    if chain:
        arrays += [memory.array for op in chain if type(op) is PostOp for memory in op.data.values()]
    result = call(arrays, target)
    return result if out is None else out


def convolve_last(
    kind: ConvFunction, inputs: tuple[Any, Any, Any], window: ConvWindow, out: Any, request: ProductRequest
) -> AnyArray:
    """`convolve` of an image with channels last, into a result with channels last: on views with channels second."""
    x, weights, b = inputs
    image = typed("x", x)
    if image.ndim != kind.axes + 2:
        raise InvalidArguments(f"x has {counted(image.ndim, 'dim')}, {kind.axes + 2} are needed")
    image, numbers = channels_second(image), window.plain(kind)
    desc = weights.desc if type(weights) is Memory else plain_weights(kind, np.shape(weights), window.groups)
    dims = result_dims(kind, image.shape, desc.dims, ConvWindow(*numbers))
    given = [x.dtype for x in (image, weights) if isinstance(x, np.ndarray)]
    dtype = numpy_type(result_type(request.dtype, None, request.usual_type(kind_of(image))), given)
    made, _ = into_last(lambda view: convolve(kind, (image, weights, b), window, view, request), dims, dtype, out)
    return made  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False, slots=True)
class ConvArrays:
    """Arrays by their labels, and the format of weights that are packed."""

    kind: ConvFunction
    arrays: dict[str, AnyArray]
    packed: MemoryDesc | None
    window: ConvWindow


def prepare(given: ConvArrays, out: Array | None, attr: Attr, engine: Engine | None) -> ArrayCall:
    """The call for arrays of these shapes and strides.  Raises InvalidArguments, Unimplemented."""
    kind, arrays, packed, window = given.kind, given.arrays, given.packed, given.window
    for name, array in arrays.items():
        is_packed = name == "weights" and packed is not None
        check_array(name, array, 1 if name == "bias" else kind.axes + 2, is_packed)
    plain = None if packed else plain_weights(kind, arrays["weights"].shape, window.groups)
    # Winograd's transform of the weights costs more than packing them: where it is with every call, the plan weighs it.
    wanted = packed or (any_format(plain) if window.algorithm == "direct" else plain)
    bias = MemoryDesc(arrays["bias"].shape, f32, "a") if "bias" in arrays else None
    assert wanted is not None
    image, is_copied = layout_of("x", arrays["x"])
    desc = description(kind, image, wanted, bias, window)
    check_output(out, desc.dst, attr)
    if out is not None:
        desc = replace(desc, dst=desc_of("out", out))
    primitive = Primitive(primitive_desc(desc, attr, engine))
    packer = None
    if plain is not None and wanted.is_any:
        weights = primitive.pd.plan.tensors["weights"]
        packer = ArgumentPacker(Primitive(primitive_desc(Reorder(plain, weights), engine=engine)), 1)
    data = attr.data()
    tensors = [desc.src, packed or plain, *[bias] * ("bias" in arrays)]
    return ArrayCall(
        primitive,
        ["src", "weights", *["bias"] * ("bias" in arrays), *data, "dst"],
        [*arrays, *data, "out"],
        [*tensors, *(memory.desc for memory in data.values()), desc.dst],  # type: ignore[list-item]
        [i for i, array in enumerate(arrays.values()) if (not array.flags.c_contiguous if i else is_copied)],
        packer,
    )


def check_array(name: str, array: AnyArray, ndim: int, is_packed: bool) -> None:
    """Rank and alignment of an input, or InvalidArguments."""
    if not is_packed and array.ndim != ndim:
        raise InvalidArguments(f"{name} has {counted(array.ndim, 'dim')}, {ndim} are needed")
    aligned(name, array)


def check_output(out: Array | None, desc: MemoryDesc, attr: Attr) -> None:
    """`out` fits, or may be left out; else InvalidArguments."""
    if out is None:
        if attr.reads_dst():
            raise InvalidArguments("out must be given, post-op Sum adds what it holds")
    elif out.shape != desc.dims:
        raise InvalidArguments(f"out has dims {out.shape}, the result has {desc.dims}")
