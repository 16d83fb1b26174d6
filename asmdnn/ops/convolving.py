"""How a convolution of arrays comes to its primitive: the window's numbers, the description, the packing of weights."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.ops.arguments import F32, AnyArray, Array, as_f32, chain_of, output, packed_or_plain, pads, per_axis
from asmdnn.ops.calls import ArgumentPacker, ArrayCall, calls, desc_of, layout_of
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.user_post_op import PostOp
from asmdnn.primitives.convolution.description import ConvolutionForward, DeconvolutionForward
from asmdnn.primitives.convolution.words import algorithm_of
from asmdnn.primitives.descriptor import primitive_desc
from asmdnn.primitives.engine import Engine, engine_key
from asmdnn.primitives.primitive import Primitive
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.primitives.windows import MAX_SIZE
from asmdnn.types import f32

Convolution = ConvolutionForward | DeconvolutionForward
find = calls.entries.get


@dataclass(frozen=True, slots=True)
class ConvFunction:
    """An array function: its name, its spatial axes, and whether it is the adjoint."""

    name: str
    axes: int
    transposed: bool = False

    @property
    def primitive(self) -> str:
        return "deconvolution" if self.transposed else "convolution"


class ConvWindow(NamedTuple):
    """stride, dilation (1 is dense), padding and output_padding as callers give them; groups of channels."""

    stride: Any
    padding: Any
    dilation: Any
    groups: Any = 1
    output_padding: Any = 0
    algorithm: Any = "direct"

    def plain(self, kind: ConvFunction) -> tuple[Any, ...]:
        """As they are given if they are plain integers, which True and 1.0 are not, though equal to one; else tuples.

        Raises InvalidArguments.
        """
        stride, padding, dilation, groups, more, algorithm = self
        if type(groups) is not int or not 1 <= groups <= MAX_SIZE:
            raise InvalidArguments(f"groups must be an integer of at least 1, below 2**31, not {shown(groups)}")
        if type(algorithm) is not str:
            algorithm_of(kind.primitive, algorithm)
        if type(stride) is type(padding) is type(dilation) is type(more) is int:
            return self
        axes = kind.axes
        return (
            stride if type(stride) is int else per_axis("stride", stride, axes, 1),
            padding if type(padding) is int else pads(padding, axes),
            dilation if type(dilation) is int else per_axis("dilation", dilation, axes, 1),
            groups,
            more if type(more) is int else per_axis("output_padding", more, axes, 0),
            algorithm,
        )


def convolve(
    kind: ConvFunction, inputs: tuple[Any, Any, Any], window: ConvWindow, post_ops: Any, out: Any, engine: Engine | None
) -> Array:
    """The call for x, w and b, looked up by all that it depends on."""
    x, w, b = inputs
    image = x if type(x) is np.ndarray and x.dtype is F32 else as_f32("x", x)
    weights, second = packed_or_plain("w", w)
    arrays: list[AnyArray] = [image, weights]
    third = None
    if b is not None:
        bias = b if type(b) is np.ndarray and b.dtype is F32 else as_f32("b", b)
        third = (bias.shape, bias.strides)
        arrays.append(bias)
    target = where = None
    if out is not None:
        target = out if type(out) is np.ndarray and out.dtype is F32 else output("out", out)
        where = (target.shape, target.strides)
    numbers = window.plain(kind)
    chain = chain_of(post_ops)
    key = (kind.name, image.shape, image.strides, second, third, where, numbers, chain, engine_key(engine))
    try:
        call = find(key)
    except Exception:  # what cannot be hashed or compared is nothing that prepare() takes
        call = None
    if call is None:
        labels = ("x", "w", "b")[: len(arrays)]
        request = ConvRequest(
            kind, dict(zip(labels, arrays, strict=True)), w.desc if type(w) is Memory else None, window
        )
        call = calls.put(key, prepare(request, target, Attr(chain), engine))
    if chain:
        arrays += [memory.array for op in chain if type(op) is PostOp for memory in op.data.values()]
    result = call(arrays, target)
    return result if out is None else out


@dataclass(frozen=True, eq=False, slots=True)
class ConvRequest:
    """Arrays by their labels, and the format of weights that are packed."""

    kind: ConvFunction
    arrays: dict[str, AnyArray]
    packed: MemoryDesc | None
    window: ConvWindow


def prepare(request: ConvRequest, out: Array | None, attr: Attr, engine: Engine | None) -> ArrayCall:
    """The call for arrays of these shapes and strides.  Raises InvalidArguments, Unimplemented."""
    kind, arrays, packed = request.kind, request.arrays, request.packed
    for name, array in arrays.items():
        check_array(name, array, 1 if name == "b" else kind.axes + 2, is_packed=name == "w" and packed is not None)
    plain = None if packed else plain_weights(kind, arrays["w"].shape, request.window.groups)
    # Winograd's transform of the weights costs more than packing them: where it is with every call, the plan weighs it.
    wanted = packed or (any_format(plain) if request.window.algorithm == "direct" else plain)
    bias = MemoryDesc(arrays["b"].shape, f32, "a") if "b" in arrays else None
    assert wanted is not None
    image, is_copied = layout_of("x", arrays["x"])
    desc = description(kind, image, wanted, bias, request.window)
    check_output(out, desc.dst, attr)
    if out is not None:
        desc = replace(desc, dst=desc_of("out", out))
    primitive = Primitive(primitive_desc(desc, attr, engine))
    packer = None
    if plain is not None and wanted.is_any:
        weights = primitive.pd.plan.tensors["weights"]
        packer = ArgumentPacker(Primitive(primitive_desc(Reorder(plain, weights), engine=engine)), 1)
    data = attr.data()
    tensors = [desc.src, packed or plain, *[bias] * ("b" in arrays)]
    return ArrayCall(
        primitive,
        ["src", "weights", *["bias"] * ("b" in arrays), *data, "dst"],
        [*arrays, *data, "out"],
        [*tensors, *(memory.desc for memory in data.values()), desc.dst],  # type: ignore[list-item]
        [i for i, array in enumerate(arrays.values()) if (not array.flags.c_contiguous if i else is_copied)],
        packer,
    )


def any_format(desc: MemoryDesc | None) -> MemoryDesc:
    assert desc is not None
    return MemoryDesc(desc.dims, f32, "any")


def plain_weights(kind: ConvFunction, shape: tuple[int, ...], groups: int) -> MemoryDesc:
    """Dense weights as a primitive describes them: (o, c / groups, ...), of an adjoint (c, o / groups, ...)."""
    if len(shape) != kind.axes + 2:
        raise InvalidArguments(f"w has dims {shape}, {kind.axes + 2} are needed")
    if not all(shape):
        raise InvalidArguments(f"w has an empty dim, every one must be at least 1: {shape}")
    first, second, *window = shape
    if first % groups:
        raise InvalidArguments(f"w has dims {shape}: the first must be a multiple of groups, {groups}")
    dims, letters = (groups, first // groups, second, *window), "abcdef"[: kind.axes + 3]
    if kind.transposed:
        dims, letters = (groups, second, first // groups, *window), "acb" + letters[3:]
    if groups > 1:
        return MemoryDesc(dims, f32, letters)
    return MemoryDesc(dims[1:], f32, "".join(chr(ord(letter) - 1) for letter in letters[1:]))


def description(
    kind: ConvFunction, src: MemoryDesc, weights: MemoryDesc, bias: MemoryDesc | None, window: ConvWindow
) -> Convolution:
    """The convolution with a dense result.  Raises InvalidArguments."""
    image = src.dims
    axes, groups = kind.axes, weights.dims[0] if weights.ndims == kind.axes + 3 else 1
    if len(image) != axes + 2 or weights.ndims not in (axes + 2, axes + 3):
        raise InvalidArguments(f"x has dims {image}, w {weights.dims}: both must have {axes + 2}")
    if groups != window.groups:
        raise InvalidArguments(f"groups is {window.groups}, w was packed for {groups}")
    strides, dilations = (
        per_axis(name, value, axes, 1) for name, value in (("stride", window.stride), ("dilation", window.dilation))
    )
    padding, kernel = pads(window.padding, axes), weights.dims[-axes:]
    low, high = padding[:axes], padding[axes:]
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if kind.transposed:
        more = per_axis("output_padding", window.output_padding, axes, 0)
        high = tuple(h - m for h, m in zip(high, more, strict=True))
        if any(h <= -s for h, s in zip(high, strides, strict=True)):
            raise InvalidArguments(
                f"output_padding is {shown(window.output_padding)}, it must be below the stride, {words(strides)}"
            )
        cut = [before + behind for before, behind in zip(low, high, strict=True)]
        sizes = [(i - 1) * s + e - c for i, s, e, c in zip(image[2:], strides, extents, cut, strict=True)]
    else:
        padded = [sum(sizes) for sizes in zip(image[2:], low, high, strict=True)]
        sizes = [(p - e) // s + 1 for p, e, s in zip(padded, extents, strides, strict=True)]
        if min(sizes) < 1:
            reach = f", which reach over {words(extents)}" if max(dilations) > 1 else ""
            raise InvalidArguments(f"weights of {words(kernel)}{reach} exceed the padded x of {words(padded)}")
    if min(sizes) < 1:
        raise InvalidArguments(f"padding leaves nothing of the result of x with dims {image}")
    form = DeconvolutionForward if kind.transposed else ConvolutionForward
    return form(
        src=src,
        weights=weights,
        bias=bias,
        dst=MemoryDesc((image[0], groups * weights.dims[groups > 1], *sizes), f32, "abx"),
        strides=strides,
        dilations=tuple(d - 1 for d in dilations),
        padding_l=low,
        padding_r=high,
        algorithm=algorithm_of(kind.primitive, window.algorithm),
    )


def words(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes))


def check_array(name: str, array: AnyArray, ndim: int, is_packed: bool) -> None:
    """Rank and alignment of an input, or InvalidArguments."""
    if not is_packed and array.ndim != ndim:
        raise InvalidArguments(f"{name} has {array.ndim} dims, {ndim} are needed")
    if not array.flags.aligned:
        raise InvalidArguments(f"{name} is not aligned to the element's 4 bytes: copy it")


def check_output(out: Array | None, desc: MemoryDesc, attr: Attr) -> None:
    """`out` fits, or may be left out; else InvalidArguments."""
    if out is None:
        if attr.reads_dst():
            raise InvalidArguments("out must be given, post-op Sum adds what it holds")
    elif out.shape != desc.dims:
        raise InvalidArguments(f"out has dims {out.shape}, the result has {desc.dims}")
