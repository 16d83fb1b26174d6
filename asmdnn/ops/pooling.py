"""Pooling of arrays, with torch's names, defaults and sizes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.memory import MemoryDesc
from asmdnn.memory.allocation import allocated
from asmdnn.memory.tags import LETTERS
from asmdnn.ops.applied import Descs, Ending, apply
from asmdnn.ops.arguments import AnyArray, AnyDataType, integers
from asmdnn.ops.data_format import channels_last, channels_second, into_last, is_last, result_like
from asmdnn.ops.typed import typed
from asmdnn.primitives.attributes.post_ops import AnyPostOp
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.pooling.description import AdaptivePooling, Pooling, PoolingForward
from asmdnn.primitives.shapes.windows import MAX_SIZE
from asmdnn.types import PoolingAlgorithm, s32

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
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    data_format: str | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> Any:
    """The largest number of each window of an array (n, c, [d, [h,]] w), as torch.nn.functional.max_pool1d to 3d.

    kernel, stride (default: the kernel), padding (on both sides), dilation (1 is dense): an integer, or one for each
    axis.  ceil_mode: windows may end after the padding, if they begin before it.  NaN is passed over.
    data_format: "NHWC", with channels last, of x and the result.
    Returns a new array, or `out`; with return_indices also an int64 array: the number of each maximum's element in its
    plane, of the first one where several are equal.  Raises InvalidArguments.
    """
    sizes = PoolWindow(image(x, data_format), kernel, stride, padding, dilation, ceil_mode)

    def describe(src: MemoryDesc, dst: MemoryDesc, indices: MemoryDesc | None) -> PoolingForward:
        return sizes.describe("max", src, dst, indices)

    key, ending = ("max_pool", sizes.key), (post_ops, out, engine, dtype)
    return pool(sizes.x, sizes.result, key, describe, return_indices, ending, data_format=data_format)


def avg_pool(
    x: Any,
    kernel: Sizes,
    *,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    data_format: str | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """The mean of each window of an array (n, c, [d, [h,]] w), as torch.nn.functional.avg_pool1d to 3d.

    Arguments as those of max_pool; count_include_pad: padding counts as zeros.  Raises InvalidArguments.
    """
    sizes = PoolWindow(image(x, data_format), kernel, stride, padding, 1, ceil_mode)
    alg: PoolingAlgorithm = (
        "avg_include_padding" if flag("count_include_pad", count_include_pad) else "avg_exclude_padding"
    )

    def describe(src: MemoryDesc, dst: MemoryDesc, indices: MemoryDesc | None) -> PoolingForward:
        return sizes.describe(alg, src, dst, indices)

    ending = post_ops, out, engine, dtype
    result: AnyArray = pool(sizes.x, sizes.result, (alg, sizes.key), describe, False, ending, data_format=data_format)
    return result


def adaptive_max_pool(
    x: Any,
    size: Sizes,
    *,
    return_indices: bool = False,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    data_format: str | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> Any:
    """Maxima of windows such that the result has `size`, as torch.nn.functional.adaptive_max_pool1d to 3d.

    x: f32 (n, c, [d, [h,]] w); size: an integer, or one for each axis.  Results as those of max_pool.
    """
    return adaptive("max", x, size, return_indices, (post_ops, out, engine, dtype), data_format)


def adaptive_avg_pool(
    x: Any,
    size: Sizes,
    *,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    data_format: str | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """Means of windows such that the result has `size`, 1 being the mean of the plane; see adaptive_max_pool."""
    result: AnyArray = adaptive("avg", x, size, False, (post_ops, out, engine, dtype), data_format)
    return result


class PoolWindow:
    """Arguments of a pooling, checked as far as the result's size needs it."""

    def __init__(
        self, x: AnyArray, kernel: Sizes, stride: Sizes | None, padding: Sizes, dilation: Sizes, ceil_mode: bool
    ) -> None:
        self.x, axes = x, x.ndim - 2
        self.kernel = each("kernel", kernel, axes, 1)
        self.stride = self.kernel if stride is None else each("stride", stride, axes, 1)
        self.padding, self.dilation = each("padding", padding, axes, 0), each("dilation", dilation, axes, 1)
        ceil_mode = flag("ceil_mode", ceil_mode)
        self.key = (self.kernel, self.stride, self.padding, self.dilation, ceil_mode)
        self.result = (*self.x.shape[:2], *(self.size(axis, ceil_mode) for axis in range(axes)))

    def size(self, axis: int, ceil_mode: bool) -> int:
        """Of the result along an axis."""
        size: int = self.x.shape[2 + axis]
        padding, stride = self.padding[axis], self.stride[axis]
        room = size + 2 * padding - (self.kernel[axis] - 1) * self.dilation[axis] - 1
        if room < 0:
            raise InvalidArguments(f"kernel {self.kernel} exceeds the padded sizes of x, {self.x.shape[2:]}")
        made = (-(-room // stride) if ceil_mode else room // stride) + 1
        return made - 1 if ceil_mode and (made - 1) * stride >= size + padding else made

    def describe(
        self, alg: PoolingAlgorithm, src: MemoryDesc, dst: MemoryDesc, indices: MemoryDesc | None
    ) -> PoolingForward:
        dilations = tuple(d - 1 for d in self.dilation)
        return PoolingForward(
            alg,
            src,
            dst,
            kernel=self.kernel,
            strides=self.stride,
            dilations=dilations,
            padding_l=self.padding,
            padding_r=self.padding,
            indices=indices,
        )


def flag(name: str, value: Any) -> bool:
    """True or False, and nothing that is taken for them."""
    if not isinstance(value, bool):
        raise InvalidArguments(f"{name} must be True or False, not {shown(value)}")
    return value


def image(x: Any, data_format: str | None = None) -> AnyArray:
    """x with channels second, a view."""
    array = typed("x", x)
    if not 3 <= array.ndim <= 5:
        raise InvalidArguments(
            f"x must be (n, c, w), (n, c, h, w) or (n, c, d, h, w), not of {counted(array.ndim, 'dim')}"
        )
    return channels_second(array) if is_last(data_format, array.ndim - 2) else array


def each(name: str, value: Sizes, axes: int, least: int) -> tuple[int, ...]:
    """An integer for each axis."""
    numbers = integers(name, value)
    numbers = numbers * axes if len(numbers) == 1 else numbers
    if len(numbers) != axes or not all(least <= n <= MAX_SIZE for n in numbers):
        raise InvalidArguments(f"{name} must be an integer of at least {least}, or {axes} of them, not {shown(value)}")
    return numbers


def adaptive(alg: str, x: Any, size: Sizes, return_indices: bool, ending: Ending, data_format: str | None) -> Any:
    array = image(x, data_format)
    result = (*array.shape[:2], *each("size", size, array.ndim - 2, 1))

    def describe(src: MemoryDesc, dst: MemoryDesc, indices: MemoryDesc | None) -> AdaptivePooling:
        return AdaptivePooling(alg, src, dst, indices)

    return pool(array, result, ("adaptive", alg, result), describe, return_indices, ending, data_format=data_format)


def pool(
    x: AnyArray,
    dims: tuple[int, ...],
    key: tuple[Any, ...],
    describe: Describe,
    return_indices: bool,
    ending: Ending,
    data_format: str | None = None,
) -> Any:
    """Compute; indices are written as s32, into memory that goes in as if it were an input."""
    if is_last(data_format, x.ndim - 2):
        post_ops, out, engine, dtype = ending

        def second(view: AnyArray) -> Any:
            return pool(x, dims, key, describe, return_indices, (post_ops, view, engine, dtype))

        made, found = into_last(second, dims, result_like(x, dtype), out)
        return (made, channels_last(found[1])) if return_indices else made
    indices = allocated(np.empty, dims, np.int32) if flag("return_indices", return_indices) else None

    def described(descs: Descs, dst: MemoryDesc) -> Pooling:
        places = MemoryDesc(dims, s32, LETTERS[: len(dims)]) if return_indices else None
        return describe(descs["src"], dst, places)

    inputs = {"src": ("x", x), "indices": ("indices", indices)}
    values = apply(key, inputs, described, lambda _: dims, ending)
    return values if indices is None else (values, allocated(indices.astype, np.int64))
