"""Small problems of every kind of primitive, so that each implementation takes some; and one way to run them all."""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.bench.values import decoded, encoded
from asmdnn.primitives.core.description import Description
from tests.conformance.kinds import KINDS, cases
from tests.support.tuning import by_whole_rows

Array = npt.NDArray[Any]
INFERENCE, TRAINING = dnn.PropKind.forward_inference, dnn.PropKind.forward_training


def t(*dims: int, tag: str = "", dtype: dnn.DataType = dnn.f32) -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dtype, tag or "abcdef"[: len(dims)])


def vector(size: int) -> dnn.MemoryDesc:
    return t(size)


def convolution(
    ic: int, oc: int, size: int, kernel: int, groups: int = 1, tag: str = "acdb", weights: str = "any", **more: Any
) -> dnn.ConvolutionForward:
    shape = (oc // groups, ic // groups, kernel, kernel)
    shape = (groups, *shape) if groups > 1 else shape
    stride = more.get("strides", (1, 1))[0]
    made = (size - kernel) // stride + 1
    filters = dnn.MemoryDesc(shape, dnn.f32, "abcde"[: len(shape)] if weights == "plain" else weights)
    bias = more.pop("bias", vector(oc))
    return dnn.ConvolutionForward(t(2, ic, size, size, tag=tag), filters, t(2, oc, made, made, tag=tag), bias, **more)


def deconvolution(
    ic: int, oc: int, size: int, groups: int = 1, stride: int = 2, weights: str = "any"
) -> dnn.DeconvolutionForward:
    shape = (oc // groups, ic // groups, 3, 3)
    filters = dnn.MemoryDesc((groups, *shape) if groups > 1 else shape, dnn.f32, weights)
    made = (size - 1) * stride + 3
    tensors = (t(2, ic, size, size, tag="acdb"), filters, t(2, oc, made, made, tag="acdb"), vector(oc))
    return dnn.DeconvolutionForward(*tensors, strides=(stride, stride))


def matmul(m: int, k: int, n: int, src: str = "ab", weights: str = "ab", dst: str = "ab") -> dnn.MatMul:
    return dnn.MatMul(t(m, k, tag=src), t(k, n, tag=weights), t(m, n, tag=dst), t(1, n))


def pooling(
    alg: Any, channels: int, size: int, kernel: int, tag: str, indices: bool = False, axes: int = 2, **more: Any
) -> dnn.PoolingForward:
    """Overlapping windows, with padding in front."""
    dtype, stride = more.get("dtype", dnn.f32), more.get("stride", 1)
    made = (size + 1 - kernel) // stride + 1
    src, dst = (t(2, channels, *[n] * axes, tag=tag, dtype=dtype) for n in (size, made))
    places = t(2, channels, *[made] * axes, tag=tag, dtype=dnn.s32) if indices else None
    sizes = ((n,) * axes for n in (kernel, stride, 0, 1, 0))
    return dnn.PoolingForward(alg, src, dst, *sizes, indices=places)


def adaptive(alg: str, tag: str, indices: bool = False, dtype: dnn.DataType = dnn.f32) -> dnn.AdaptivePooling:
    src, dst = t(2, 9, 7, 8, tag=tag, dtype=dtype), t(2, 9, 3, 5, tag=tag, dtype=dtype)
    return dnn.AdaptivePooling(alg, src, dst, t(2, 9, 3, 5, tag=tag, dtype=dnn.s32) if indices else None)


def norms(tag: str) -> Iterator[Description]:
    image, of_channels = t(2, 9, 4, 5, tag=tag), dict.fromkeys(("scale", "shift"), vector(9))
    given = dict.fromkeys(("mean", "variance"), vector(9))
    yield dnn.BatchNormForward(INFERENCE, image, image, **of_channels, **given, use_global_stats=True)
    yield dnn.BatchNormForward(TRAINING, image, image, **of_channels, **given)
    masked = {"fuse": "norm_relu", "workspace": t(2, 9, 4, 5, tag=tag, dtype=dnn.u8)}
    yield dnn.BatchNormForward(TRAINING, image, image, **given, **masked)  # type: ignore[arg-type]
    yield dnn.GroupNormForward(TRAINING, image, image, 3, **dict.fromkeys(("mean", "variance"), t(2, 3)))
    yield dnn.LayerNormForward(TRAINING, t(6, 19), t(6, 19), **dict.fromkeys(("mean", "variance"), vector(6)))


PRODUCTS: tuple[Description, ...] = (
    matmul(5, 70, 33), matmul(1, 40, 136), matmul(40, 90, 1), matmul(20, 3, 64), matmul(70, 40, 33, "ba", "ba", "ba"),
    matmul(26, 300, 264), matmul(100, 80, 64), matmul(12, 2600, 30), matmul(5, 70, 33, weights="aB16b"),
    dnn.MatMul(t(2, 3, 20), t(2, 20, 17), t(2, 3, 17), t(1, 1, 17)),
    dnn.MatMul(t(12, 1, 80), t(12, 80, 500), t(12, 1, 500)),  # one by one
    dnn.InnerProductForward(t(5, 6, 3, 3, tag="acdb"), t(19, 6, 3, 3, tag="any"), t(5, 19), vector(19)),
    dnn.InnerProductForward(t(1, 40), t(136, 40), t(1, 136), vector(136)),
)  # fmt: skip
IMAGES: tuple[Description, ...] = (
    convolution(20, 24, 8, 3), convolution(20, 24, 8, 3, weights="plain"), convolution(20, 24, 8, 1, weights="plain"),
    convolution(20, 24, 8, 3, tag="abcd"), convolution(3, 24, 9, 3, tag="any"), convolution(20, 2, 8, 3, tag="any"),
    convolution(16, 16, 8, 3, 16), convolution(16, 16, 8, 3, 4), convolution(64, 64, 8, 3, 2),
    convolution(32, 32, 10, 3, algorithm="winograd"), convolution(300, 24, 4, 3, tag="aBcd8b"),
    deconvolution(20, 24, 5), deconvolution(20, 2, 5), deconvolution(16, 16, 5, 16), deconvolution(20, 24, 5, stride=1),
    deconvolution(20, 24, 5, weights="abcd"),
)  # fmt: skip
POOLINGS: tuple[Description, ...] = (
    *(pooling(alg, 19, 9, 3, tag) for alg in ("max", "avg_exclude_padding") for tag in ("abcd", "acdb", "aBcd8b")),
    *(pooling(alg, 19, 14, 9, tag) for alg in ("max", "avg_include_padding") for tag in ("acdb", "aBcd16b")),
    pooling("avg_exclude_padding", 19, 14, 9, "acdb"), pooling("avg_exclude_padding", 5, 8, 4, "acdeb", axes=3),
    pooling("avg_include_padding", 19, 13, 3, "abcd", stride=3),
    pooling("avg_include_padding", 5, 40, 5, "abc", axes=1), pooling("avg_exclude_padding", 140, 5, 3, "abcd"),
    *(pooling("max", 19, 9, 3, tag, indices=True) for tag in ("abcd", "acdb", "aBcd8b")),
    pooling("max", 8, 10, 5, "acdb", indices=True), pooling("max", 8, 7, 3, "acdeb", indices=True, axes=3),
    *(pooling("max", 16, 9, 3, "acdb", dtype=kind) for kind in (dnn.u8, dnn.s8, dnn.bf16, dnn.f16)),
    *(pooling("avg_include_padding", 16, 14, 9, "acdb", dtype=kind) for kind in (dnn.bf16, dnn.f16, dnn.s8)),
    pooling("avg_include_padding", 16, 9, 3, "acdb", dtype=dnn.bf16), pooling("max", 16, 14, 9, "acdb", dtype=dnn.u8),
    pooling("max", 19, 9, 3, "acdb", indices=True, dtype=dnn.s8), pooling("max", 3, 20, 3, "abcd", dtype=dnn.bf16),
    *(adaptive(alg, tag) for alg in ("max", "avg") for tag in ("abcd", "acdb")), adaptive("avg", "acdb", dtype=dnn.f16),
    adaptive("max", "abcd", indices=True), adaptive("max", "aBcd8b", indices=True),
    dnn.AdaptivePooling("avg", t(2, 9, 7, 8), t(2, 9, 1, 1)), dnn.AdaptivePooling("max", t(2, 9, 7, 8), t(2, 9, 1, 1)),
)  # fmt: skip
MAPS: tuple[Description, ...] = (
    dnn.EltwiseForward(INFERENCE, "abs", t(3, 19, 5), t(3, 19, 5)),
    dnn.EltwiseForward(INFERENCE, "linear", t(3, 19, 5, tag="aBc8b"), t(3, 19, 5, tag="aBc8b"), 3.0, -2.0),
    dnn.EltwiseForward(INFERENCE, "relu", t(3, 19, 5, dtype=dnn.s8), t(3, 19, 5, dtype=dnn.s8)),
    dnn.BinaryForward("mul", t(3, 19, 5), t(3, 19, 1), t(3, 19, 5)),
    dnn.BinaryForward("select", t(3, 19), t(3, 19), t(3, 19), t(1, 19)),
    dnn.PReLUForward(INFERENCE, t(3, 19, 5), t(1, 19, 1), t(3, 19, 5)),
    dnn.SumForward((t(3, 19, 5), t(3, 19, 5, tag="acb")), t(3, 19, 5), (2.0, -1.0)),
    *(dnn.ResamplingForward("nearest", t(2, 9, 4, 5, tag=tag), t(2, 9, 7, 11, tag=tag)) for tag in ("abcd", "acdb")),
    *(dnn.ResamplingForward("linear", t(2, 9, 4, 5, tag=tag), t(2, 9, 8, 10, tag=tag)) for tag in ("abcd", "aBcd8b")),
    dnn.ResamplingForward("cubic", t(2, 9, 4, 5), t(2, 9, 8, 10)),
    dnn.ResamplingForward("nearest", t(2, 9, 4, dtype=dnn.u8), t(2, 9, 8, dtype=dnn.u8)),
    dnn.ResamplingForward("nearest", t(2, 8, 4, tag="acb", dtype=dnn.u8), t(2, 8, 8, tag="acb", dtype=dnn.u8)),
)
SUMMARIES: tuple[Description, ...] = (
    *(dnn.ReductionForward(alg, t(3, 19, 5), t(3, 1, 5)) for alg in ("sum", "mean", "max", "min")),
    *(dnn.ReductionForward(alg, t(9, 700), t(9, 1)) for alg in ("sum", "mean", "logsumexp")),
    dnn.ReductionForward("mean", t(3, 16, 5, tag="aBc8b"), t(1, 16, 1)),
    dnn.ReductionForward("sum", t(3, 16, 5, dtype=dnn.bf16), t(3, 1, 5, dtype=dnn.bf16)),
    dnn.SoftmaxForward(INFERENCE, "accurate", t(5, 19), t(5, 19), 1),
    dnn.SoftmaxForward(INFERENCE, "log", t(5, 19, 7), t(5, 19, 7), 1),
    dnn.ReductionForward("sum", dnn.MemoryDesc((3, 16, 5), dnn.f32, strides=(160, 10, 2)), t(3, 1, 5)),
    dnn.SoftmaxForward(INFERENCE, "accurate", t(5, 16, 7, tag="aBc8b"), t(5, 16, 7), 1),
    *norms("abcd"),
    *norms("acdb"),
)
NIBBLES = (dnn.QuantizedMatMul(t(3, 64), t(32, 19, dtype=dnn.u8), t(2, 19), t(3, 19), zero_point=8),)
WITH_POST_OPS = (*PRODUCTS, *IMAGES, *POOLINGS, *MAPS, *SUMMARIES, *NIBBLES)
TYPED = (  # whose results may be of any type
    *{type(desc) for desc in MAPS}, dnn.PoolingForward, dnn.AdaptivePooling, dnn.ReductionForward, dnn.SoftmaxForward,
)  # fmt: skip


def gradients() -> Iterator[Description]:
    """Those that asmdnn bench has no words for."""
    image, plain, blocked = (t(2, 16, 4, 5, tag=tag) for tag in ("acdb", "abcd", "aBcd8b"))
    of_channels, each = dict.fromkeys(("scale", "diff_scale", "diff_shift"), vector(16)), t(1, 16, 1, 1)
    yield dnn.BatchNormBackward(image, image, image, vector(16), vector(16), **of_channels)
    narrow, mask = (t(2, 16, 4, 5, tag="acdb", dtype=kind) for kind in (dnn.bf16, dnn.u8))
    fused = {"fuse": "norm_add_relu", "workspace": mask, "diff_src_1": narrow}
    yield dnn.BatchNormBackward(narrow, narrow, narrow, vector(16), vector(16), **of_channels, **fused)
    yield dnn.GroupNormBackward(image, image, image, 4, *(t(2, 4, tag="ab"),) * 2, **of_channels)
    yield dnn.PReLUBackward(plain, each, plain, plain, each)
    for tensor in (t(6, 19), t(6, 19, tag="aB8b")):
        rows, columns = t(*tensor.dims[:-1]), vector(tensor.dims[-1])
        yield dnn.LayerNormBackward(tensor, tensor, tensor, rows, rows, diff_scale=columns, diff_shift=columns)
    for tag in ("acdb", "abcd"):
        yield dnn.ResamplingBackward("linear", t(2, 16, 5, 5, tag=tag), t(2, 16, 10, 10, tag=tag))
        yield dnn.LRNBackward("lrn_across_channels", *(t(2, 16, 5, 5, tag=tag),) * 3)
    yield dnn.ResamplingBackward("linear", t(1, 16, 3, 3, 3, tag="acdeb"), t(1, 16, 6, 6, 6, tag="acdeb"))  # by axes
    yield dnn.AttentionBackward(*(t(1, 2, 9, 8),) * 7, causal=True)
    yield dnn.AttentionBackward(*(t(1, 2, 9, 8),) * 7, logsumexp=t(1, 2, 9, 1))
    yield from (dnn.SoftmaxBackward("log", tensor, tensor, tensor, 1) for tensor in (plain, image, blocked))
    for tag in ("acdb", "abcd"):
        src, dst, indices = t(2, 16, 9, 9, tag=tag), t(2, 16, 4, 4, tag=tag), t(2, 16, 4, 4, tag=tag, dtype=dnn.s32)
        yield dnn.PoolingBackward("max", src, dst, (3, 3), (2, 2), indices=indices)
        in_windows = t(2, 16, 4, 4, tag=tag, dtype=dnn.u8)
        yield dnn.PoolingBackward("max", src, dst, (3, 3), (2, 2), indices=in_windows)
        yield dnn.PoolingBackward("avg_include_padding", src, dst, (3, 3), (2, 2))
    halves = [t(2, 16, n, n, tag="acdb", dtype=dnn.bf16) for n in (8, 4)]
    yield dnn.PoolingBackward("avg_include_padding", *halves, (2, 2), (2, 2))


def trees(*, several: bool = False, **formats: str) -> dnn.TreeEnsemble:
    """Of nine rows of five features; of three columns, or one."""
    columns = 3 if several else 1
    values = t(1, 4, 8) if several else None
    src, dst = t(9, 5, tag=formats.get("src", "")), t(9, columns, tag=formats.get("dst", ""))
    tables = (t(64, dtype=dnn.s32), t(1, 16, dtype=dnn.s32), values)
    return dnn.TreeEnsemble(src, *tables, vector(columns), dst, trees=5, mirrored=several)


def copied() -> Iterator[Description]:
    """In formats that are copied, but for the first top-k, which goes down lanes."""
    plain, blocked, mask = t(2, 16, 5), t(2, 16, 5, tag="aBc8b"), t(2, 16, 5, dtype=dnn.u8)
    yield dnn.Concat((t(2, 4, 5), t(2, 12, 5)), blocked, 1)
    yield dnn.Gather(blocked, t(3, dtype=dnn.s32), t(2, 3, 5), 1)
    yield dnn.Scatter(blocked, t(3, dtype=dnn.s32), t(2, 3, 5), blocked, 1, "max")
    yield dnn.Dropout(blocked, blocked, mask)
    yield dnn.StochasticRounding(blocked, blocked)
    yield from (trees(), trees(several=True), trees(src="aB8b"), trees(several=True, dst="ba"))
    yield dnn.Shuffle(plain, blocked, 1, 4)
    yield dnn.NonMaxSuppression(t(2, 4, 9), t(2, 16, 9, tag="aBc8b"), t(2, 16, 3, dtype=dnn.s32))
    yield dnn.LRNForward(INFERENCE, "lrn_across_channels", plain, blocked)
    yield from (dnn.TopKForward("max", src, t(2, 2, 5, dtype=dnn.s32), 1) for src in (plain, blocked))


@cache
def others() -> tuple[Description, ...]:
    """Kinds that take no post-ops, or a sum alone."""
    works = (case.driver.work(case) for kind in KINDS for case in cases(kind, "without post-ops"))
    return (*(work.describe()[0] for work in works), dnn.Pad(t(3, 9), t(5, 12), (1, 2)), *gradients(), *copied())


def engine(isa: str, threads: int = 1) -> dnn.Engine:
    """A machine that is the same everywhere."""
    return by_whole_rows(dnn.Engine(isa=isa, threads=threads, l2_bytes=1 << 16, machine="zen3"))  # type: ignore[arg-type]


def planned(desc: Description, attr: dnn.Attr, isa: str) -> list[dnn.PrimitiveDesc]:
    """By every implementation that takes it."""
    answers = dnn.implementations(desc, attr, engine(isa))
    return [answer for answer in answers if isinstance(answer, dnn.PrimitiveDesc)]


def integers(name: str, desc: dnn.MemoryDesc) -> Array:
    """float64[dims] for an argument: small integers; variances above 0, scales that are powers of two."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    if name.endswith("scales"):
        return 2.0 ** random.integers(-1, 2, desc.dims)
    least = 1 if name == "variance" else 0 if desc.dtype == dnn.u8 else -3
    return random.integers(least, 5, desc.dims).astype(np.float64)


def arrays_of(pd: dnn.PrimitiveDesc) -> dict[str, Array]:
    return {name: integers(name, desc) for name, desc in pd.plan.tensors.items()}


def results(pd: dnn.PrimitiveDesc, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """float64[dims] of every output."""
    memories = {}
    for name, desc in pd.plan.tensors.items():
        memories[name] = dnn.Memory.from_numpy(encoded(np.float32(arrays[name]), desc.dtype), desc)
    dnn.Primitive(pd).execute(**memories)
    outputs = ((name, memories[name]) for name in pd.plan.outputs)
    return {name: decoded(memory.numpy(), memory.desc.dtype).astype(np.float64) for name, memory in outputs}


def with_dst(desc: Any, dtype: dnn.DataType) -> Any:
    """The same with a result of another type."""
    dst = desc.dst
    tag = "any" if dst.is_any else dst.tag
    return desc if dst.dtype == dtype else replace(desc, dst=dnn.MemoryDesc(dst.dims, dtype, tag))
