"""Convolutions of arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.ops.arguments import F32, AnyArray, Array, as_f32, chain_of, image_dims, output, packed_or_plain, pads, pair
from asmdnn.ops.calls import ArrayCall, Packer, calls
from asmdnn.ops.packed import pack
from asmdnn.primitives.attributes.attr import AnyPostOp, Attr
from asmdnn.primitives.attributes.user_post_op import PostOp
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.descriptor import primitive_desc
from asmdnn.primitives.engine import Engine, engine_key
from asmdnn.primitives.primitive import Primitive
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.types import Algorithm, ConvolutionAlgorithm, f32

USUAL_PIXELS = 28  # height and width of dst that weights are packed for if no shape is given

find = calls.entries.get


def conv2d(
    x: Any,
    w: Any,
    b: Any = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    post_ops: Sequence[AnyPostOp] = (),
    algorithm: ConvolutionAlgorithm = "direct",
    out: Any = None,
    engine: Engine | None = None,
) -> Array:
    """2D convolution (cross-correlation, as in every deep-learning library) of f32 arrays.

    x: (n, c, h, w); w: (o, c, kh, kw), or what `pack_conv_weights` made of it, once, instead of with every call; b:
    (o,) or None.  stride, dilation (1 is dense): one integer or (height, width); padding: one, (height, width), or
    (top, left, bottom, right), filled with zeros.  post_ops run in order on the result; `Sum` adds what `out` held, and
    tensors of a `PostOp` come with their data.  algorithm: "winograd" is for 3x3 with stride 1 and rounds more
    (docs/winograd.md), "auto" takes it where it is expected to be faster; weights that are packed for it need no word.
    Returns a new array (n, o, oh, ow), or `out`: anything that exports dense memory of these dims.  Arrays may be
    numpy's, or anything that speaks DLPack or the array interface; they must be f32, and are copied only if not dense.
    Raises InvalidArguments for shapes that do not fit, Unimplemented without AVX2.
    """
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
    chain, window = chain_of(post_ops), window_of(stride, padding, dilation)
    key = ("conv2d", image.shape, image.strides, second, third, where, window, chain, algorithm, engine_key(engine))
    try:
        call = find(key)
    except TypeError:  # a post-op that cannot be hashed is none
        call = None
    if call is None:
        call = calls.put(key, prepare(arrays, w, third is not None, target, window, Attr(chain), algorithm, engine))
    if chain:
        arrays += [memory.array for op in chain if type(op) is PostOp for memory in op.data.values()]
    result = call(arrays, target)
    return result if out is None else out


def window_of(stride: Any, padding: Any, dilation: Any) -> tuple[Any, Any, Any]:
    """As they are given if they are plain integers, which True and 1.0 are not, though equal to one."""
    return (
        stride if type(stride) is int else pair("stride", stride, 1),
        padding if type(padding) is int else pads(padding),
        dilation if type(dilation) is int else pair("dilation", dilation, 1),
    )


def prepare(
    arrays: Sequence[AnyArray],
    w: Any,
    has_bias: bool,
    out: Array | None,
    window: tuple[Any, Any, Any],
    attr: Attr,
    algorithm: str,
    engine: Engine | None,
) -> ArrayCall:
    """The call for arrays of these shapes and strides.  Raises InvalidArguments, Unimplemented."""
    labels = ["x", "w", *["b"] * has_bias]
    packed = w.desc if type(w) is Memory else None
    for name, array, ndim in zip(labels, arrays, (4, 4, 1), strict=False):
        check_array(name, array, ndim, is_packed=name == "w" and packed is not None)
    kind = algorithm_of(algorithm)
    # Winograd's transform of the weights costs more than packing them: where it is with every call, the plan weighs it.
    tag = "any" if kind == Algorithm.convolution_direct else "oihw"
    wanted = packed or MemoryDesc(arrays[1].shape, f32, tag)
    bias = MemoryDesc(arrays[2].shape, f32, "a") if has_bias else None
    desc = description(arrays[0].shape, wanted, bias, window, kind)
    check_output(out, desc.dst, attr)
    primitive = Primitive(primitive_desc(desc, attr, engine))
    weights = primitive.pd.plan.tensors["weights"]
    packer = None
    if wanted.is_any:
        plain = MemoryDesc(weights.dims, f32, "oihw")
        packer = Packer(Primitive(primitive_desc(Reorder(plain, weights), engine=engine)), 1)
        wanted = plain
    data = attr.data()
    return ArrayCall(
        primitive,
        ["src", "weights", *["bias"] * has_bias, *data, "dst"],
        [*labels, *data, "out"],
        [desc.src, wanted, *[bias] * has_bias, *(memory.desc for memory in data.values()), desc.dst],  # type: ignore[list-item]
        [i for i, name in enumerate(labels) if not arrays[i].flags.c_contiguous],
        packer,
    )


def description(
    image: tuple[int, ...],
    weights: MemoryDesc,
    bias: MemoryDesc | None,
    window: tuple[Any, Any, Any],
    algorithm: Algorithm,
) -> ConvolutionForward:
    """The convolution of dense images.  Raises InvalidArguments."""
    (sh, sw), (top, left, bottom, right), (dh, dw) = (
        pair("stride", window[0], 1), pads(window[1]), pair("dilation", window[2], 1),
    )  # fmt: skip
    if len(image) != 4 or weights.ndims != 4:
        raise InvalidArguments(f"x has dims {image}, w {weights.dims}: both must have 4")
    (mb, _, ih, iw), (oc, _, kh, kw) = image, weights.dims
    oh = (ih + top + bottom - (kh - 1) * dh - 1) // sh + 1
    ow = (iw + left + right - (kw - 1) * dw - 1) // sw + 1
    if oh < 1 or ow < 1:
        raise InvalidArguments(f"weights of {kh}x{kw} exceed the padded x of {ih + top + bottom}x{iw + left + right}")
    return ConvolutionForward(
        src=MemoryDesc(image, f32, "nchw"),
        weights=weights,
        bias=bias,
        dst=MemoryDesc((mb, oc, oh, ow), f32, "nchw"),
        strides=(sh, sw),
        dilations=(dh - 1, dw - 1),
        padding_l=(top, left),
        padding_r=(bottom, right),
        algorithm=algorithm,
    )


def algorithm_of(name: str) -> Algorithm:
    """Raises InvalidArguments listing the names."""
    names = {algorithm.value.removeprefix("convolution_"): algorithm for algorithm in Algorithm}
    if not isinstance(name, str) or name not in names:
        raise InvalidArguments(f"algorithm {shown(name)} is not one of {', '.join(names)}")
    return names[name]


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
    elif out.shape != desc.dims or not out.flags.c_contiguous:
        raise InvalidArguments(f"out must be a dense float32 array of shape {desc.dims}")


def pack_conv_weights(
    w: Any,
    image: Sequence[int] | None = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    algorithm: ConvolutionAlgorithm = "direct",
    engine: Engine | None = None,
) -> Memory:
    """Weights (o, c, kh, kw) in a format that `conv2d` reads without packing them, for images of any size.

    `image` and the window are the dims (n, c, h, w) and so on for which the format should be the fastest; it serves all
    others too, a few percent slower where they would have chosen wider or narrower panels.  The result's `array` can be
    saved and mapped back, see `pack_weights`.  With an `algorithm` other than "direct" they may be transformed for
    Winograd's convolution, which then serves images of all sizes, with windows of stride 1 alone.
    Raises InvalidArguments.
    """
    plain = w if type(w) is np.ndarray and w.dtype is F32 else as_f32("w", w)
    dims = image_dims(image)
    window = (
        stride if type(stride) is int else pair("stride", stride, 1),
        padding if type(padding) is int else pads(padding),
        dilation if type(dilation) is int else pair("dilation", dilation, 1),
    )
    key = ("pack_conv_weights", plain.shape, plain.strides, dims, window, algorithm, engine_key(engine))
    return pack("w", plain, key, lambda: weights_desc(plain.shape, dims, window, algorithm, engine), engine)


def weights_desc(
    dims: tuple[int, ...],
    image: tuple[int, ...] | None,
    window: tuple[Any, Any, Any],
    algorithm: str,
    engine: Engine | None,
) -> MemoryDesc:
    """The format for images of these dims."""
    if len(dims) != 4 or not all(dims):
        raise InvalidArguments(f"w has dims {dims}, 4 are needed, none of them 0")
    if image is None:
        (sh, sw), (dh, dw) = pair("stride", window[0], 1), pair("dilation", window[2], 1)
        heights = [(USUAL_PIXELS - 1) * s + (k - 1) * d + 1 for s, k, d in ((sh, dims[2], dh), (sw, dims[3], dw))]
        image, window = (1, dims[1], *heights), (window[0], 0, window[2])
    desc = description(image, MemoryDesc(dims, f32, "any"), None, window, algorithm_of(algorithm))
    return primitive_desc(desc, engine=engine).plan.tensors["weights"]
