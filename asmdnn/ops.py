"""Operations on arrays, for callers who do not care for formats: planned once for every shape, then only executed."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.foreign import as_array
from asmdnn.memory.tags import LETTERS, MAX_NDIMS
from asmdnn.primitives.attributes.attr import AnyPostOp, Attr
from asmdnn.primitives.convolution.description import MAX_SIZE, ConvolutionForward
from asmdnn.primitives.descriptor import primitive_desc
from asmdnn.primitives.engine import Engine, engine_or_default
from asmdnn.primitives.primitive import Primitive
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.reordering import reorder
from asmdnn.types import f32

Array = npt.NDArray[np.float32]
KEPT_PRIMITIVES = 256


@dataclass(frozen=True, slots=True)
class ConvKey:
    """What a convolution's primitive depends on."""

    src: tuple[int, ...]
    weights: tuple[int, ...]
    bias: tuple[int, ...] | None
    strides: tuple[int, int]
    padding: tuple[int, int, int, int]
    dilations: tuple[int, int]
    attr: Attr
    engine: Engine


@lru_cache(KEPT_PRIMITIVES)
def conv_primitive(key: ConvKey) -> Primitive:
    """The primitive of a shape, its weights in the format that it likes best."""
    (mb, _, ih, iw), (oc, _, kh, kw) = key.src, key.weights
    (sh, sw), (dh, dw), (top, left, bottom, right) = key.strides, key.dilations, key.padding
    oh = (ih + top + bottom - (kh - 1) * dh - 1) // sh + 1
    ow = (iw + left + right - (kw - 1) * dw - 1) // sw + 1
    if oh < 1 or ow < 1:
        raise InvalidArguments(f"weights of {kh}x{kw} exceed the padded x of {ih + top + bottom}x{iw + left + right}")
    desc = ConvolutionForward(
        src=MemoryDesc(key.src, f32, "nchw"),
        weights=MemoryDesc(key.weights, f32, "any"),
        bias=MemoryDesc(key.bias, f32, "a") if key.bias else None,
        dst=MemoryDesc((mb, oc, oh, ow), f32, "nchw"),
        strides=key.strides,
        dilations=(dh - 1, dw - 1),
        padding_l=(top, left),
        padding_r=(bottom, right),
    )
    return Primitive(primitive_desc(desc, key.attr, key.engine))


def conv2d(
    x: Any,
    w: Any,
    b: Any = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    post_ops: Sequence[AnyPostOp] = (),
    out: Array | None = None,
    engine: Engine | None = None,
) -> Array:
    """2D convolution (cross-correlation, as in every deep-learning library) of f32 arrays.

    x: (n, c, h, w); w: (o, c, kh, kw); b: (o,) or None.  stride, dilation (1 is dense): one integer or (height, width);
    padding: one, (height, width), or (top, left, bottom, right), filled with zeros.  post_ops run in order on the
    result; `Sum` adds what `out` held, and tensors of a `PostOp` come with their data.
    Returns `out`, or a new array (n, o, oh, ow).  Arrays may be numpy's, or
    anything that speaks DLPack or the array interface; they must be f32, and are copied only if not dense.
    Raises InvalidArguments for shapes that do not fit, Unimplemented without AVX2.
    """
    x, w = as_f32("x", x, 4), as_f32("w", w, 4)
    bias = None if b is None else as_f32("b", b, 1)
    key = ConvKey(
        x.shape,
        w.shape,
        None if bias is None else bias.shape,
        pair("stride", stride, 1),
        pads(padding),
        pair("dilation", dilation, 1),
        Attr(post_ops),
        engine_or_default(engine),
    )
    primitive = conv_primitive(key)
    dst = output(out, primitive.pd.dst_desc, key.attr)
    memories = {"src": Memory(primitive.pd.src_desc, x), "dst": Memory(primitive.pd.dst_desc, dst)}
    plain = Memory(MemoryDesc(w.shape, f32, "oihw"), w)
    memories["weights"] = reorder(plain, primitive.pd.plan.tensors["weights"], key.engine)
    if bias is not None:
        memories["bias"] = Memory(primitive.pd.plan.tensors["bias"], bias)
    primitive.execute(None, **memories, **key.attr.data())
    return dst


@lru_cache(KEPT_PRIMITIVES)
def matmul_primitive(desc: MatMul, attr: Attr, engine: Engine) -> Primitive:
    """The primitive of a product, for the strides of its arrays."""
    return Primitive(primitive_desc(desc, attr, engine))


def matmul(
    a: Any,
    b: Any,
    bias: Any = None,
    *,
    post_ops: Sequence[AnyPostOp] = (),
    out: Array | None = None,
    engine: Engine | None = None,
) -> Array:
    """The matrix product of f32 arrays of 2 to 12 dims, batch dims broadcast as numpy.matmul does.

    a: (.., m, k); b: (.., k, n), or what `pack_weights` made of a matrix; bias: broadcast to the result.  Arrays may
    have any strides that are not negative; others are copied.  post_ops run in order on the result; `Sum` adds what
    `out` held.  Returns `out`, which may be strided too, or a new array.
    Raises InvalidArguments for shapes that do not fit, Unimplemented without AVX2.
    """
    x, attr, engine = strided("a", a), Attr(post_ops), engine_or_default(engine)
    y = b if isinstance(b, Memory) else strided("b", b)
    c = None if bias is None else strided("bias", bias, least=0)
    ndim = max(len(x.desc.dims), len(y.desc.dims))
    try:
        batch = np.broadcast_shapes(x.desc.dims[:-2], y.desc.dims[:-2])
    except ValueError:
        raise InvalidArguments(f"a has dims {x.desc.dims}, b {y.desc.dims}: batch dims must be equal or 1") from None
    dims = (*batch, x.desc.dims[-2], y.desc.dims[-1])
    if out is None:
        out = output(None, MemoryDesc(dims, f32, LETTERS[:ndim]), attr)
    dst = strided("out", out, copy=False)
    memories = {"src": widened("a", x, ndim), "weights": widened("b", y, ndim), "dst": dst}
    if c is not None:
        memories["bias"] = widened("bias", c, ndim)
    desc = MatMul(**{name: memory.desc for name, memory in memories.items()})
    matmul_primitive(desc, attr, engine).execute(None, **memories)
    return out


def pack_weights(b: Any, engine: Engine | None = None) -> Memory:
    """A matrix (k, n) in the format that `matmul` reads fastest, for any number of rows of the other operand.

    The result's `array` can be saved, `packed.array.tofile(path)`, and mapped back: Memory(packed.desc,
    numpy.memmap(path, numpy.float32, "r"), padding_is_zero=True).  Raises InvalidArguments.
    """
    plain, engine = strided("b", b), engine_or_default(engine)
    (k, n), any_rows = matrix_dims(plain.desc), 1
    source, result = (MemoryDesc(dims, f32, "ab") for dims in ((any_rows, k), (any_rows, n)))
    pd = primitive_desc(MatMul(source, MemoryDesc((k, n), f32, "any"), result), engine=engine)
    return reorder(plain, pd.plan.tensors["weights"], engine)


def matrix_dims(desc: MemoryDesc) -> tuple[int, int]:
    if desc.ndims != 2 or not all(desc.dims):
        raise InvalidArguments(f"b has dims {desc.dims}, a matrix with elements is needed")
    return desc.dims[0], desc.dims[1]


def strided(name: str, value: Any, least: int = 2, copy: bool = True) -> Memory:
    """A float32 array as Memory, with its strides if they are those of a tensor."""
    array = as_array(name, value) if copy else value
    if not isinstance(array, np.ndarray) or array.dtype != np.float32:
        found = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise InvalidArguments(f"{name} must be a float32 array, not {found}")
    if not least <= array.ndim <= MAX_NDIMS:
        raise InvalidArguments(f"{name} has {array.ndim} dims, it must have {least} to {MAX_NDIMS}")
    if copy and array.ndim == 0:
        array = array.reshape(1)
    try:
        return Memory.from_array(array)
    except InvalidArguments:
        if not copy:
            raise
        return Memory.from_array(np.ascontiguousarray(array))


def widened(name: str, memory: Memory, ndim: int) -> Memory:
    """The same with so many dims, the new ones in front and of size 1."""
    desc, new = memory.desc, ndim - memory.desc.ndims
    if new == 0:
        return memory
    if new < 0:
        raise InvalidArguments(f"{name} has {desc.ndims} dims, the result has {ndim}")
    blocks = [(dim + new, size) for dim, size in desc.inner_blocks]
    wide = MemoryDesc((1,) * new + desc.dims, f32, strides=(0,) * new + desc.strides, inner_blocks=blocks)
    return Memory(wide, memory.array, padding_is_zero=True)


def as_f32(name: str, value: Any, ndim: int) -> Array:
    """`value` as a dense numpy array, or InvalidArguments; other dtypes are refused, not converted."""
    array = as_array(name, value)
    if array.dtype != np.float32:
        raise InvalidArguments(f"{name} has dtype {array.dtype}, convert it to float32")
    if array.ndim != ndim:
        raise InvalidArguments(f"{name} has {array.ndim} dims, {ndim} are needed")
    return np.ascontiguousarray(array)


def output(out: Array | None, desc: MemoryDesc, attr: Attr) -> Array:
    """The array to write: `out` if it fits, else a new one."""
    if out is None:
        if attr.reads_dst():
            raise InvalidArguments("out must be given, post-op Sum adds what it holds")
        return np.empty(desc.dims, np.float32)
    if (
        not isinstance(out, np.ndarray)
        or out.dtype != np.float32
        or out.shape != desc.dims
        or not out.flags.c_contiguous
    ):
        raise InvalidArguments(f"out must be a dense float32 array of shape {desc.dims}")
    return out


def pair(name: str, value: int | Sequence[int], least: int) -> tuple[int, int]:
    """(height, width) from one integer or two."""
    numbers = integers(name, value)
    if len(numbers) == 1:
        numbers *= 2
    if len(numbers) != 2 or not all(least <= n <= MAX_SIZE for n in numbers):
        wanted = f"one or two integers of at least {least}, below 2**31"
        raise InvalidArguments(f"{name} must be {wanted}, not {shown(value)}")
    return numbers[0], numbers[1]


def pads(value: int | Sequence[int]) -> tuple[int, int, int, int]:
    """(top, left, bottom, right) from one integer, two or four."""
    numbers = integers("padding", value)
    numbers = {1: numbers * 4, 2: numbers * 2}.get(len(numbers), numbers)
    if len(numbers) != 4 or not all(0 <= n <= MAX_SIZE for n in numbers):
        raise InvalidArguments(f"padding must be one, two or four integers from 0 to 2**31 - 1, not {shown(value)}")
    return numbers[0], numbers[1], numbers[2], numbers[3]


def integers(name: str, value: int | Sequence[int]) -> tuple[int, ...]:
    """One integer, or a sequence of them, as a tuple."""
    try:
        numbers = tuple(value) if isinstance(value, Sequence) else (value,)
        if not any(isinstance(n, bool) for n in numbers):
            return tuple(index(n) for n in numbers)  # numpy's integers too
    except Exception:  # whatever the caller's object does
        pass
    raise InvalidArguments(f"{name} must be integers, not {shown(value)}")
