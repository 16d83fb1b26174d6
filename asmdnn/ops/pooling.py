"""Pooling of arrays, with torch's names, defaults and sizes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.ops.arguments import AnyArray, Array, as_f32, chain_of, integers, output
from asmdnn.ops.calls import ArrayCall, calls, layout_of
from asmdnn.primitives.attributes.attr import AnyPostOp, Attr
from asmdnn.primitives.descriptor import primitive_desc
from asmdnn.primitives.engine import Engine, engine_key
from asmdnn.primitives.pooling.description import AdaptivePooling, Pooling, PoolingForward
from asmdnn.primitives.primitive import Primitive
from asmdnn.types import PoolingAlgorithm, f32, s32

Sizes = int | Sequence[int]
Describe = Callable[[MemoryDesc, MemoryDesc, MemoryDesc | None], Pooling]


def max_pool(
    x: Any,
    kernel: Sizes,
    *,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
    post_ops: Sequence[AnyPostOp] = (),
    out: Any = None,
    engine: Engine | None = None,
) -> Any:
    """The largest number of each window of an f32 array (n, c, [d, [h,]] w), as torch.nn.functional.max_pool1d to 3d.

    kernel, stride (default: the kernel), padding (on both sides), dilation (1 is dense): an integer, or one for each
    axis.  ceil_mode: windows may end behind the padding, if they begin before it.  NaN is passed over.
    Returns a new array, or `out`; with return_indices also an int64 array: the number of each maximum's element in its
    plane, of the first one where several are equal.  Raises InvalidArguments.
    """
    sizes = Window(x, kernel, stride, padding, dilation, ceil_mode)

    def describe(src: MemoryDesc, dst: MemoryDesc, indices: MemoryDesc | None) -> PoolingForward:
        return sizes.describe("max", src, dst, indices)

    key = ("max_pool", sizes.key, return_indices)
    return pool(sizes.x, sizes.result, key, describe, return_indices, post_ops, out, engine)


def avg_pool(
    x: Any,
    kernel: Sizes,
    *,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    post_ops: Sequence[AnyPostOp] = (),
    out: Any = None,
    engine: Engine | None = None,
) -> Array:
    """The mean of each window of an f32 array (n, c, [d, [h,]] w), as torch.nn.functional.avg_pool1d to 3d.

    Arguments as those of max_pool; count_include_pad: padding counts as zeros.  Raises InvalidArguments.
    """
    sizes = Window(x, kernel, stride, padding, 1, ceil_mode)
    alg: PoolingAlgorithm = "avg_include_padding" if count_include_pad else "avg_exclude_padding"

    def describe(src: MemoryDesc, dst: MemoryDesc, indices: MemoryDesc | None) -> PoolingForward:
        return sizes.describe(alg, src, dst, indices)

    result: Array = pool(sizes.x, sizes.result, (alg, sizes.key), describe, False, post_ops, out, engine)
    return result


def adaptive_max_pool(
    x: Any,
    size: Sizes,
    *,
    return_indices: bool = False,
    post_ops: Sequence[AnyPostOp] = (),
    out: Any = None,
    engine: Engine | None = None,
) -> Any:
    """Maxima of windows such that the result has `size`, as torch.nn.functional.adaptive_max_pool1d to 3d.

    x: f32 (n, c, [d, [h,]] w); size: an integer, or one for each axis.  Results as those of max_pool.
    """
    return adaptive("max", x, size, return_indices, post_ops, out, engine)


def adaptive_avg_pool(
    x: Any, size: Sizes, *, post_ops: Sequence[AnyPostOp] = (), out: Any = None, engine: Engine | None = None
) -> Array:
    """Means of windows such that the result has `size`, 1 being the mean of the plane; see adaptive_max_pool."""
    result: Array = adaptive("avg", x, size, False, post_ops, out, engine)
    return result


class Window:
    """Arguments of a pooling, checked as far as the result's size needs it."""

    def __init__(
        self, x: Any, kernel: Sizes, stride: Sizes | None, padding: Sizes, dilation: Sizes, ceil_mode: bool
    ) -> None:
        self.x = image(x)
        axes = self.x.ndim - 2
        self.kernel = each("kernel", kernel, axes, 1)
        self.stride = self.kernel if stride is None else each("stride", stride, axes, 1)
        self.padding, self.dilation = each("padding", padding, axes, 0), each("dilation", dilation, axes, 1)
        self.key = (self.kernel, self.stride, self.padding, self.dilation, bool(ceil_mode))
        self.result = (*self.x.shape[:2], *(self.size(axis, bool(ceil_mode)) for axis in range(axes)))

    def size(self, axis: int, ceil_mode: bool) -> int:
        """Of the result along an axis."""
        size, padding, stride = self.x.shape[2 + axis], self.padding[axis], self.stride[axis]
        room = size + 2 * padding - (self.kernel[axis] - 1) * self.dilation[axis] - 1
        if room < 0:
            raise InvalidArguments(f"kernel {self.kernel} exceeds the padded sizes of x, {self.x.shape[2:]}")
        made = (-(-room // stride) if ceil_mode else room // stride) + 1
        return made - (ceil_mode and (made - 1) * stride >= size + padding)

    def describe(
        self, alg: PoolingAlgorithm, src: MemoryDesc, dst: MemoryDesc, indices: MemoryDesc | None
    ) -> PoolingForward:
        dilations = tuple(d - 1 for d in self.dilation)
        return PoolingForward(
            alg, src, dst, self.kernel, self.stride, dilations, self.padding, self.padding, indices
        )  # fmt: skip


def image(x: Any) -> Array:
    array = as_f32("x", x)
    if not 3 <= array.ndim <= 5:
        raise InvalidArguments(f"x must be (n, c, w), (n, c, h, w) or (n, c, d, h, w), not of {array.ndim} dims")
    return array


def each(name: str, value: Sizes, axes: int, least: int) -> tuple[int, ...]:
    """An integer for each axis."""
    numbers = integers(name, value)
    numbers = numbers * axes if len(numbers) == 1 else numbers
    if len(numbers) != axes or min(numbers, default=0) < least:
        raise InvalidArguments(f"{name} must be an integer of at least {least}, or {axes} of them, not {shown(value)}")
    return numbers


def adaptive(
    alg: str, x: Any, size: Sizes, return_indices: bool, post_ops: Sequence[AnyPostOp], out: Any, engine: Engine | None
) -> Any:
    array = image(x)
    result = (*array.shape[:2], *each("size", size, array.ndim - 2, 1))

    def describe(src: MemoryDesc, dst: MemoryDesc, indices: MemoryDesc | None) -> AdaptivePooling:
        return AdaptivePooling(alg, src, dst, indices)

    return pool(array, result, ("adaptive", alg, return_indices), describe, return_indices, post_ops, out, engine)


def pool(
    x: Array,
    dims: tuple[int, ...],
    key: tuple[Any, ...],
    describe: Describe,
    return_indices: bool,
    post_ops: Sequence[AnyPostOp],
    out: Any,
    engine: Engine | None,
) -> Any:
    """Look the call up, or make it; then run it."""
    target = None if out is None else output("out", out)
    where = None if target is None else (target.shape, target.strides)
    chain = chain_of(post_ops)
    full = (key, dims, x.shape, x.strides, where, chain, engine_key(engine))
    call = calls.get(full)
    if call is None:
        call = calls.put(full, prepare(x, dims, describe, return_indices, target, Attr(chain), engine))
    arrays: list[AnyArray] = [x]
    indices = np.empty(dims, np.int32) if return_indices else None
    if indices is not None:
        arrays.append(indices)
    arrays += [memory.array for memory in Attr(chain).data().values()] if chain else []
    values = call(arrays, target)
    values = values if out is None else out
    return values if indices is None else (values, indices.astype(np.int64))


def prepare(
    x: Array,
    dims: tuple[int, ...],
    describe: Describe,
    return_indices: bool,
    out: Array | None,
    attr: Attr,
    engine: Engine | None,
) -> ArrayCall:
    """The call for arrays of these shapes and strides.  Raises InvalidArguments, Unimplemented."""
    src, is_copied = layout_of("x", x)
    if out is None and attr.reads_dst():
        raise InvalidArguments("out must be given, post-op Sum adds what it holds")
    if out is not None and out.shape != dims:
        raise InvalidArguments(f"out has dims {out.shape}, the result has {dims}")
    tag = LETTERS[: len(dims)]
    dst = MemoryDesc(dims, f32, tag) if out is None else Memory.from_array(out).desc
    indices = MemoryDesc(dims, s32, tag) if return_indices else None
    primitive = Primitive(primitive_desc(describe(src, dst, indices), attr, engine))
    data = attr.data()
    between = {"indices": indices} if indices is not None else {}
    names = ("src", *between, *data, "dst")
    descs = [src, *between.values(), *(memory.desc for memory in data.values()), dst]
    return ArrayCall(primitive, names, ("x", *names[1:-1], "out"), descs, [0] * is_copied)



