"""Matrix products of arrays."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, counted
from asmdnn.forking import importing
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.tags import LETTERS, MAX_NDIMS
from asmdnn.ops.arguments import (
    F32,
    AnyArray,
    AnyDataType,
    Array,
    as_f32,
    chain_of,
    check_product_out,
    output,
    packed_or_plain,
    product_dims,
    widened,
)
from asmdnn.ops.calls import ArrayCall, calls, desc_of, kept_call, layout_of
from asmdnn.ops.packed import pack
from asmdnn.ops.quantized import NOTHING, ProductRequest, attr_of, is_plain, is_typed, needs_types
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.attributes.post_ops import AnyPostOp
from asmdnn.primitives.attributes.user_post_op import PostOp
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine, engine_key
from asmdnn.primitives.core.primitive import Primitive
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.products.plan import THRICE
from asmdnn.types import AccumulationMode, FpMathMode, f32

MANY_ROWS = 512  # that pay for what is done to each of them


def matmul(
    a: Any,
    b: Any,
    bias: Any = None,
    *,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    scales: Mapping[str, Any] = NOTHING,
    zero_points: Mapping[str, Any] = NOTHING,
    fpmath_mode: FpMathMode = "strict",
    accumulation_mode: AccumulationMode = "strict",
    out: Any = None,
    engine: Engine | None = None,
) -> Any:
    """The matrix product of arrays of 2 to 12 dims, batch dims broadcast as numpy.matmul does.

    a: (.., m, k); b: (.., k, n), or what `pack_weights` or `pack_quantized_weights` made of a matrix; bias: broadcast
    to the result.  Arrays may have any strides that are not negative; others are copied.  post_ops run in order on the
    result; `Sum` adds what `out` held.  Returns a new array, or `out`: anything that exports memory of the result's
    dims, strided too.  Of other types than f32, with scales and zero points of "a", "b" and "out", and of fpmath_mode,
    which lets f32 be rounded, see docs/low-precision.md: bf16 or f16 both, or u8 or s8 times s8.  The result has
    `dtype`; without it a's type, but s32 of integers, f32 with scales.
    Raises InvalidArguments for shapes that do not fit, Unimplemented without AVX2.
    """
    modes = fpmath_mode, accumulation_mode
    if not is_plain(dtype, scales, zero_points) or needs_types(a, b, bias, out):
        return of_types()(a, b, bias, out, ProductRequest(post_ops, dtype, scales, zero_points, engine, modes))
    x = a if type(a) is np.ndarray and a.dtype is F32 else as_f32("a", a)
    y, second = packed_or_plain("b", b)
    arrays: list[AnyArray] = [x, y]
    third = None
    if bias is not None:
        z = bias if type(bias) is np.ndarray and bias.dtype is F32 else as_f32("bias", bias)
        third = (z.shape, z.strides)
        arrays.append(z)
    target = where = None
    if out is not None:
        target = out if type(out) is np.ndarray and out.dtype is F32 else output("out", out)
        where = (target.shape, target.strides)
    chain = chain_of(post_ops)
    key = ("matmul", x.shape, x.strides, second, third, where, chain, modes, engine_key(engine))
    call = kept_call(key)
    if call is None:
        call = calls.put(key, prepare(arrays, b, third is not None, target, attr_of(chain, modes), engine))
    if chain:
        arrays += [memory.array for op in chain if type(op) is PostOp for memory in op.data.values()]
    result = call(arrays, target)
    return result if out is None else out


@cache
def of_types() -> Callable[[Any, Any, Any, Any, ProductRequest], AnyArray]:
    """The product of other types than f32, whose modules others do not import."""
    with importing():
        from asmdnn.ops.typed_matmul import typed_matmul

    return typed_matmul


def prepare(
    arrays: Sequence[AnyArray], b: Any, has_bias: bool, out: Array | None, attr: Attr, engine: Engine | None
) -> ArrayCall:
    """The call for arrays of these shapes and strides.  Raises InvalidArguments, Unimplemented."""
    names = ["a", "b", *["bias"] * has_bias]
    arguments = dict(zip(("src", "weights", "bias"), arrays, strict=False))
    layouts = {}
    for name, (argument, array) in zip(names, arguments.items(), strict=True):
        if argument == "weights" and type(b) is Memory:
            layouts[argument] = b.desc, False
        else:
            layouts[argument] = layout_of(name, checked_rank(name, array, 0 if name == "bias" else 2))
    descs = {argument: desc for argument, (desc, _) in layouts.items()}
    descs["dst"] = result_desc(descs["src"], descs["weights"], out, attr)
    ndim = descs["dst"].ndims
    wide = {argument: widened(argument, desc, ndim) for argument, desc in descs.items()}
    primitive = Primitive(primitive_desc(MatMul(**wide), attr, engine))
    data = attr.data()
    return ArrayCall(
        primitive,
        [*layouts, *data, "dst"],
        [*names, *data, "out"],
        [*(wide[argument] for argument in layouts), *(memory.desc for memory in data.values()), wide["dst"]],
        [i for i, (_, is_copied) in enumerate(layouts.values()) if is_copied],
    )


def result_desc(src: MemoryDesc, weights: MemoryDesc, out: Array | None, attr: Attr) -> MemoryDesc:
    """That of `out`, or of a new array."""
    dims = product_dims(src.dims, weights.dims)
    if out is not None:
        check_product_out(checked_rank("out", out, 2).shape, dims)
        return desc_of("out", out)
    if attr.reads_dst():
        raise InvalidArguments("out must be given, post-op Sum adds what it holds")
    return MemoryDesc(dims, f32, LETTERS[: len(dims)])


def checked_rank(name: str, array: Array, least: int) -> Array:
    """An array of at least so many dims; a scalar becomes a vector."""
    if not least <= array.ndim <= MAX_NDIMS:
        raise InvalidArguments(f"{name} has {counted(array.ndim, 'dim')}, it must have {least} to {MAX_NDIMS}")
    return array if array.ndim else array.reshape(1)


def pack_weights(b: Any, engine: Engine | None = None, *, fpmath_mode: FpMathMode = "strict") -> Memory:
    """A matrix (k, n) in the format that `matmul` reads fastest, for any number of rows of the other operand.

    The result's `array` can be saved, `packed.array.tofile(path)`, and mapped back: Memory(packed.desc,
    numpy.memmap(path, numpy.float32, "r"), padding_is_zero=True).  Of bf16 and f16 it is for an `a` of that type, of
    s8 for u8 and s8; packed with an fpmath_mode, which may make bf16 or f16 of f32, for f32 and that mode.  Raises
    InvalidArguments.
    """
    if is_typed(b):
        with importing():
            from asmdnn.ops.typed_matmul import packed_typed

        return packed_typed(b, engine)
    plain = b if type(b) is np.ndarray and b.dtype is F32 else as_f32("b", b)
    attr = Attr(fpmath_mode=fpmath_mode)
    key = ("pack_weights", plain.shape, plain.strides, attr, engine_key(engine))
    return pack("b", plain, key, lambda: weights_desc(plain.shape, engine, attr), engine)


def weights_desc(dims: tuple[int, ...], engine: Engine | None, attr: Attr = NO_ATTR) -> MemoryDesc:
    """The format for any number of rows; for many, where several products of fewer bits pay with these alone."""
    if len(dims) != 2 or not all(dims):
        raise InvalidArguments(f"b has dims {dims}, a matrix with elements is needed")
    (k, n), rows = dims, MANY_ROWS if attr.fpmath_mode == THRICE else 1
    source, result = (MemoryDesc(size, f32, "ab") for size in ((rows, k), (rows, n)))
    pd = primitive_desc(MatMul(source, MemoryDesc((k, n), f32, "any"), result), attr, engine)
    return pd.plan.tensors["weights"]
