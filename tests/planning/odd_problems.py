"""Odd problems: tiny sizes, windows that hang over, channels that fill no block, tensors that lie anyhow."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import asmdnn as dnn
from asmdnn.primitives.core.description import Description
from asmdnn.types import DataType

INFERENCE = dnn.PropKind.forward_inference
LAYOUTS = ("plain", "last", "permuted", "strided", "8b", "16b")
TYPES = (dnn.f32, dnn.f32, dnn.f32, dnn.s8, dnn.u8, dnn.bf16, dnn.f16, dnn.s32)


class Odd:
    """Choices of a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one(self, *some: Any) -> Any:
        return self.random.choice(some)

    def some(self, count: int, *values: int) -> list[int]:
        return [self.one(*values) for _ in range(count)]

    def chance(self) -> bool:
        return self.random.random() < 0.4

    def dims(self, least: int = 1, most: int = 5) -> list[int]:
        return self.some(self.random.randint(least, most), 1, 1, 2, 3, 5, 8, 9, 17)

    def axis(self, dims: Sequence[int]) -> int:
        return self.random.randrange(len(dims))

    def desc(self, dims: Sequence[int], dtype: DataType = dnn.f32, layouts: Sequence[str] = LAYOUTS) -> dnn.MemoryDesc:
        """A tensor that lies anyhow."""
        layout, order = self.one(*layouts), list(range(len(dims)))
        letters = "abcdef"[: len(dims)]
        if layout in ("permuted", "strided"):
            self.random.shuffle(order)
        if layout == "strided":
            strides, step = [0] * len(dims), self.one(1, 1, 2)
            for dim in reversed(order):
                strides[dim], step = step, step * (dims[dim] + self.one(0, 0, 1, 3))
            return dnn.MemoryDesc(tuple(dims), dtype, strides=tuple(strides))
        if layout == "permuted" or (layout != "plain" and len(dims) < 3):
            return dnn.MemoryDesc(tuple(dims), dtype, "".join(letters[dim] for dim in order))
        blocked = letters[0] + "B" + letters[2:] + layout
        tags = {"plain": letters, "last": letters[:1] + letters[2:] + letters[1:2]}
        return dnn.MemoryDesc(tuple(dims), dtype, tags.get(layout, blocked))

    def free(self, dims: Sequence[int], dtype: DataType = dnn.f32) -> dnn.MemoryDesc:
        """As `desc`, or left to the primitive."""
        return dnn.MemoryDesc(tuple(dims), dtype, "any") if self.chance() else self.desc(dims, dtype)

    def engine(self) -> dnn.Engine:
        threads, l2_bytes = self.one(1, 2, 3, 5), self.one(1 << 16, 1 << 18, 1 << 19, 1 << 21)
        return dnn.Engine(isa=self.one("avx2", "avx512_core"), threads=threads, l2_bytes=l2_bytes)


def channels(r: Odd) -> tuple[int, int, int]:
    """Groups, and channels of each before and after: many, few, one."""
    return r.one(  # type: ignore[no-any-return]
        (1, r.one(1, 2, 3, 5, 8, 9, 17, 33), r.one(1, 2, 7, 8, 9, 16, 17, 40)),
        (1, r.one(4, 8, 17, 40), r.one(1, 2, 3, 8)),
        (r.one(1, 3, 8, 16, 19), 1, r.one(1, 1, 2)),
        (r.one(2, 3, 4), r.one(1, 2, 4, 8, 16), r.one(1, 2, 4, 8, 16)),
    )


def convolution(r: Odd) -> Description | None:
    axes, (groups, inputs, outputs), images = r.one(1, 2, 2, 3), channels(r), r.one(1, 1, 2, 3)
    kernel, strides, dilations = r.some(axes, 1, 2, 3, 3, 5), r.some(axes, 1, 1, 2, 3), r.some(axes, 0, 0, 1)
    if r.chance():
        kernel, strides, dilations = [3] * axes, [1] * axes, [0] * axes
    before, after, size = (r.some(axes, *values) for values in ((0, 1, 2, 6), (0, 1, 2, 6), (1, 2, 3, 5, 9, 13)))
    windows = zip(size, before, after, kernel, dilations, strides, strict=True)
    result = [(i + b + e - (k - 1) * (d + 1) - 1) // s + 1 for i, b, e, k, d, s in windows]
    if min(result) < 1:
        return None
    weights = (groups, outputs, inputs, *kernel)[groups == 1 :]
    return dnn.ConvolutionForward(
        r.free((images, groups * inputs, *size)),
        dnn.MemoryDesc(weights, dnn.f32, "any") if r.chance() else r.desc(weights, layouts=("plain", "permuted")),
        r.free((images, groups * outputs, *result)),
        dnn.MemoryDesc((groups * outputs,), dnn.f32, "a") if r.chance() else None,
        tuple(strides), tuple(dilations), tuple(before), tuple(after),
        algorithm=r.one("direct", "auto", "winograd" if axes == 2 else "auto"),
    )  # fmt: skip


def deconvolution(r: Odd) -> Description | None:
    axes, (groups, inputs, outputs), images = r.one(1, 2, 2, 3), channels(r), r.one(1, 2)
    kernel, strides, dilations = r.some(axes, 1, 2, 3, 4), r.some(axes, 1, 2, 2, 3), r.some(axes, 0, 0, 1)
    before, after, size = (r.some(axes, *values) for values in ((0, 1, 2), (-1, 0, 1, 2), (1, 2, 3, 5, 9)))
    windows = zip(size, before, after, kernel, dilations, strides, strict=True)
    result = [(i - 1) * s + (k - 1) * (d + 1) + 1 - b - e for i, b, e, k, d, s in windows]
    if min(result) < 1 or any(e <= -s for e, s in zip(after, strides, strict=True)):
        return None
    weights = (groups, outputs, inputs, *kernel)[groups == 1 :]
    return dnn.DeconvolutionForward(
        r.free((images, groups * inputs, *size)),
        dnn.MemoryDesc(weights, dnn.f32, "any"),
        r.free((images, groups * outputs, *result)),
        dnn.MemoryDesc((groups * outputs,), dnn.f32, "a") if r.chance() else None,
        tuple(strides), tuple(dilations), tuple(before), tuple(after),
    )  # fmt: skip


def pooling(r: Odd) -> Description | None:
    axes, planes = r.one(1, 2, 2, 3), (r.one(1, 2), r.one(1, 3, 8, 9, 17))
    if r.chance():
        size, result = r.some(axes, 1, 3, 4, 9), r.some(axes, 1, 2, 3, 5)
        return dnn.AdaptivePooling(r.one("max", "avg"), r.desc((*planes, *size)), r.free((*planes, *result)))
    kernel, strides, dilations = r.some(axes, 1, 2, 3, 5), r.some(axes, 1, 2, 3), r.some(axes, 0, 0, 1)
    before, after, size = (r.some(axes, *values) for values in ((0, 1, 3), (0, 1, 3), (1, 2, 3, 5, 9, 17)))
    windows = zip(size, before, after, kernel, dilations, strides, strict=True)
    result = [(i + b + e - (k - 1) * (d + 1) - 1) // s + 1 for i, b, e, k, d, s in windows]
    if min(result) < 1:
        return None
    alg, dst = r.one("max", "avg_include_padding", "avg_exclude_padding"), r.free((*planes, *result))
    indices = dnn.MemoryDesc(dst.dims, dnn.s32, "any") if alg == "max" and r.chance() else None
    steps = (tuple(kernel), tuple(strides), tuple(dilations), tuple(before), tuple(after))
    return dnn.PoolingForward(alg, r.desc((*planes, *size)), dst, *steps, indices)


def resampling(r: Odd) -> Description:
    axes, planes = r.one(1, 2, 3), (r.one(1, 2), r.one(1, 3, 8, 9, 17))
    size, result = r.some(axes, 1, 2, 3, 5, 9), r.some(axes, 1, 2, 3, 7, 10)
    src, dst = r.desc((*planes, *size)), r.free((*planes, *result))
    coordinates = r.one("half_pixel", "align_corners", "asymmetric")
    return dnn.ResamplingForward(r.one("nearest", "linear", "cubic"), src, dst, coordinates=coordinates)


def reduction(r: Odd) -> Description:
    dims = r.dims()
    result = [1 if r.chance() else n for n in dims]
    result[r.axis(dims)] = 1
    return dnn.ReductionForward(r.one("sum", "max", "mean", "norm_lp_sum"), r.desc(dims), r.free(result), 2.0)


def normalization(r: Odd) -> Description:
    dims = r.dims(2)
    src, dst, of_channels = r.desc(dims), r.free(dims), dnn.MemoryDesc((dims[1],), dnn.f32, "a")
    of_row = dnn.MemoryDesc((dims[-1],), dnn.f32, "a")
    groups = r.one(*(n for n in range(1, dims[1] + 1) if dims[1] % n == 0))
    return r.one(  # type: ignore[no-any-return]
        dnn.SoftmaxForward(INFERENCE, r.one("accurate", "log"), src, dst, r.axis(dims)),
        dnn.LayerNormForward(INFERENCE, src, dst, 1e-5, *r.one((), (of_row, of_row))),
        dnn.BatchNormForward(INFERENCE, src, dst, 1e-5, *[of_channels] * r.one(0, 2, 4)),
        dnn.GroupNormForward(INFERENCE, src, dst, groups),
        r.one(dnn.CumulativeSum, dnn.CumulativeProduct)(src, dst, r.axis(dims), r.one(True, False), r.one(True, False)),
        dnn.PReLUForward(INFERENCE, src, r.desc([n if r.chance() else 1 for n in dims]), dst),
        dnn.EltwiseForward(INFERENCE, "exp", src, dst),
    )


def window_of_channels(r: Odd) -> Description:
    dims, alg = r.dims(3), r.one("lrn_across_channels", "lrn_within_channel")
    return dnn.LRNForward(INFERENCE, alg, r.desc(dims), r.free(dims), r.one(1, 3, 5))


def several(r: Odd) -> Description:
    """Concatenation, a sum, and an operation of two tensors that broadcast."""
    dims = r.dims()
    axis, parts = r.axis(dims), r.some(r.one(1, 2, 4), 1, 3, 8)
    joined = [[*dims[:axis], n, *dims[axis + 1 :]] for n in (*parts, sum(parts))]
    both = ([n if r.chance() else 1 for n in dims] for _ in range(2))
    return r.one(  # type: ignore[no-any-return]
        dnn.Concat(tuple(map(r.desc, joined[:-1])), r.free(joined[-1]), axis),
        dnn.SumForward(tuple(r.desc(dims) for _ in parts), r.free(dims), (1.0,) * len(parts)),
        dnn.BinaryForward(r.one("add", "ge"), *map(r.desc, both), r.free(dims)),
    )


def moves(r: Odd) -> Description:
    dims = r.dims(2, 4)
    axis, before, after = r.axis(dims), r.some(len(dims), 0, 1, 2), r.some(len(dims), 0, 1, 3)
    padded, source = [sum(sizes) for sizes in zip(dims, before, after, strict=True)], r.desc(dims)
    indices, size = (
        dnn.MemoryDesc((r.one(1, 4),), dnn.s32, "a"),
        r.one(*(n for n in (1, 2, dims[axis]) if not dims[axis] % n)),
    )
    found = [*dims[:axis], indices.dims[0], *dims[axis + 1 :]]
    best = [*dims[:axis], r.one(*range(1, min(5, dims[axis]) + 1)), *dims[axis + 1 :]]
    return r.one(  # type: ignore[no-any-return]
        dnn.Pad(source, r.desc(padded), tuple(before), r.one("constant", "edge")),
        dnn.Gather(source, indices, r.free(found), axis),
        dnn.Scatter(source, indices, r.desc(found), source, axis, r.one("none", "add")),
        dnn.Shuffle(source, source, axis, size),
        dnn.TopKForward(r.one("max", "min"), source, r.desc(best, dnn.s32), axis, r.one(None, r.desc(best))),
        dnn.Reorder(r.desc(dims, r.one(*TYPES)), r.desc(dims, r.one(*TYPES))),
        boxes(r),
    )


def boxes(r: Odd) -> Description:
    images, classes, count = r.some(3, 1, 2, 3, 9, 17)
    most = r.one(*range(1, min(4, count) + 1))
    dims = (images, 4, count), (images, classes, count)
    return dnn.NonMaxSuppression(*map(r.desc, dims), r.desc((images, classes, most), dnn.s32))


def products(r: Odd) -> Description:
    plain = ("plain", "permuted", "strided")
    batch, (m, k, n) = r.some(r.one(0, 0, 1, 2), 1, 2, 3), r.some(3, 1, 2, 3, 4, 5, 8, 13, 17, 33, 70)
    if r.chance():
        image = r.some(r.one(0, 1, 2), 1, 2, 3)
        weights = r.one(dnn.MemoryDesc((n, k, *image), dnn.f32, "any"), r.desc((n, k, *image), layouts=plain[:2]))
        return dnn.InnerProductForward(r.free((m, k, *image)), weights, r.free((m, n)))
    weights = r.desc((*(1 if r.chance() else b for b in batch), k, n), layouts=plain)
    weights = r.one(weights, dnn.MemoryDesc(weights.dims, dnn.f32, "any"))
    src, dst = (r.desc((*batch, m, width), layouts=plain) for width in (k, n))
    bias = r.one(None, dnn.MemoryDesc((*[1] * (len(batch) + 1), n), dnn.f32, "abcd"[: len(batch) + 2]))
    return dnn.MatMul(src, weights, dst, bias)


KINDS: tuple[Callable[[Odd], Description | None], ...] = (
    convolution, convolution, convolution, convolution, deconvolution, deconvolution, pooling, pooling, resampling,
    reduction, normalization, normalization, window_of_channels, several, several, moves, moves, products, products,
)  # fmt: skip


def odd_problem(seed: int) -> tuple[Description, dnn.Attr, dnn.Engine] | None:
    """None where the choices make none."""
    r = Odd(seed)
    kind = r.one(*KINDS)
    try:
        desc = kind(r)
    except dnn.InvalidArguments:
        return None
    takes = kind in (convolution, deconvolution, pooling, reduction, products)
    chain = [r.one(dnn.Eltwise("relu"), dnn.Eltwise("linear", 2.0, 1.0))] if takes and r.chance() else []
    return None if desc is None else (desc, dnn.Attr(chain), r.engine())
