"""deterministic="batch" of gradients that are one item's each, of gemm, and of weights that become floats."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import Unimplemented
from asmdnn.primitives.products.gemm import Gemm
from tests.primitives.test_any_batch import LEVELS, desc, engine, random, same

MOST, BATCHES, THREADS = 64, (17, 8, 5, 2, 1), (1, 3)
BATCH = dnn.Attr(deterministic="batch")
Request = Callable[[int], tuple[Any, dict[str, np.ndarray], dnn.Attr]]
INSIDE = {"weights", "b", "scale", "scales", "weights_scales"}  # arguments that all items share


def images(make: Callable[..., Any], names: str, dims: tuple[int, ...], tag: str = "abcd", **shared: Any) -> Request:
    """Of tensors of the same dims; shared: others, by name."""
    given = names.split()
    data = {name: random(MOST, *dims) for name in given}

    def of(items: int) -> tuple[Any, dict[str, np.ndarray], dnn.Attr]:
        tensors = {name: desc((items, *dims), tag) for name in (*given, "diff_src")}
        return make(**tensors), {**{name: x[:items] for name, x in data.items()}, **shared}, BATCH

    return of


def layer_norm(columns: int) -> Request:
    data = {"src": random(MOST, columns), "diff_dst": random(MOST, columns)}
    data |= {"mean": data["src"].mean(1), "variance": data["src"].var(1)}

    def of(items: int) -> tuple[Any, dict[str, np.ndarray], dnn.Attr]:
        rows, numbers = desc((items, columns), "ab"), desc((items,), "a")
        return dnn.LayerNormBackward(rows, rows, rows, numbers, numbers), {k: x[:items] for k, x in data.items()}, BATCH

    return of


def product(k: int, n: int, **gemm: Any) -> Request:
    """Gemm of plain matrices."""
    a, b = random(MOST, k), random(k, n)

    def of(items: int) -> tuple[Any, dict[str, np.ndarray], dnn.Attr]:
        tensors = {"a": desc((items, k), "ab"), "b": desc((k, n), "ab"), "c": desc((items, n), "ab")}
        return Gemm(**tensors, **gemm), {"a": a[:items], "b": b}, BATCH

    return of


def inner(ic: int, oc: int, tag: str) -> Request:
    data = {"weights": random(oc, ic), "diff_dst": random(MOST, oc)}

    def of(items: int) -> tuple[Any, dict[str, np.ndarray], dnn.Attr]:
        src, weights, dst = desc((items, ic), "ab"), desc((oc, ic), tag), desc((items, oc), "ab")
        request = dnn.InnerProductBackwardData(src, weights, dst)
        return request, {**data, "diff_dst": data["diff_dst"][:items]}, BATCH

    return of


def convolution(ic: int, oc: int, size: int, kernel: int, algorithm: str = "direct", groups: int = 1) -> Request:
    dims = (oc, ic, kernel, kernel) if groups == 1 else (groups, oc // groups, ic // groups, kernel, kernel)
    data, pad = {"weights": random(*dims), "diff_dst": random(MOST, oc, size, size)}, (kernel // 2,) * 2

    def of(items: int) -> tuple[Any, dict[str, np.ndarray], dnn.Attr]:
        src, dst = desc((items, ic, size, size), "acdb"), desc((items, oc, size, size), "acdb")
        request = dnn.ConvolutionBackwardData(
            src,
            desc(dims),
            dst,
            padding_l=pad,
            padding_r=pad,
            algorithm=algorithm,  # type: ignore[arg-type]
        )
        return request, {**data, "diff_dst": data["diff_dst"][:items]}, BATCH

    return of


def of_integers(k: int, n: int, dtype: Any, group: int = 0, tag: str = "ab", src_type: Any = dnn.f32) -> Request:
    """f32 times integers with a scale for each column, or for each of a group of k."""
    src, weights = random(MOST, k), np.random.default_rng(1).integers(-8 if dtype == dnn.s4 else 0, 8, (k, n))
    scales = np.abs(random(k // group, n) if group else random(n)) + 0.5
    groups = {"groups": {"weights": (group, 1)}} if group else {}

    def of(items: int) -> tuple[Any, dict[str, np.ndarray], dnn.Attr]:
        matrix = dnn.MemoryDesc((items, k), src_type, "ab")
        request = dnn.MatMul(matrix, dnn.MemoryDesc((k, n), dtype, tag), desc((items, n), "ab"))
        attr = dnn.Attr(scales={"weights": 3 if group else 2}, deterministic="batch", **groups)
        return request, {"src": src[:items], "weights": weights, "weights_scales": scales}, attr

    return of


def of_groups(k: int, n: int, group: int, bits: int = 4, **mode: Any) -> Request:
    """The product of a model's packed weights, which rounds src to s8 unless the mode is f32."""
    bytes_of = np.random.default_rng(2).integers(0, 256, (k * bits // 8, n))
    data = {"src": random(MOST, k), "weights": bytes_of, "scales": np.abs(random(k // group, n)) + 0.5}

    def of(items: int) -> tuple[Any, dict[str, np.ndarray], dnn.Attr]:
        weights = dnn.MemoryDesc(bytes_of.shape, dnn.u8, "ab")
        src, scales, dst = (desc(dims, "ab") for dims in ((items, k), (k // group, n), (items, n)))
        request = dnn.QuantizedMatMul(src, weights, scales, dst, zero_point=8.0)
        return request, {**data, "src": data["src"][:items]}, dnn.Attr(deterministic="batch", **mode)

    return of


REQUESTS: dict[str, Request] = {
    "relu": images(lambda src, **x: dnn.EltwiseBackward("relu", src, **x), "src diff_dst", (5, 3, 7)),
    "gelu": images(lambda src, **x: dnn.EltwiseBackward("gelu_erf", src, **x), "src diff_dst", (5, 3, 7)),
    "softmax": images(lambda **x: dnn.SoftmaxBackward("accurate", axis=1, **x), "dst diff_dst", (35, 3, 7)),
    "softmax of rows": images(lambda **x: dnn.SoftmaxBackward("accurate", axis=3, **x), "dst diff_dst", (3, 1, 70)),
    "lrn": images(partial(dnn.LRNBackward, "lrn_across_channels"), "src diff_dst", (24, 5, 6)),
    "lrn nhwc": images(partial(dnn.LRNBackward, "lrn_across_channels"), "src diff_dst", (24, 5, 6), "acdb"),
    "layer norm": layer_norm(200),
    "gemm": product(300, 70),
    "gemm of a long sum": product(4096, 64),
    "gemm in panels": product(768, 96, unit_alpha=True),
    "inner product": inner(70, 300, "ab"),
    "inner product of any": inner(64, 4096, "any"),
    "3x3": convolution(16, 24, 9, 3),
    "3x3 auto": convolution(64, 64, 14, 3, "auto"),
    "1x1": convolution(64, 40, 5, 1),
    "depthwise": convolution(32, 32, 8, 3, groups=32),
    "s8": of_integers(256, 80, dnn.s8),
    "u8 of any": of_integers(4096, 64, dnn.u8, tag="any"),
    "s8 in groups": of_integers(512, 96, dnn.s8, 64),
    "s4 in groups": of_integers(1024, 96, dnn.s4, 32, "any"),
    "u4": of_integers(128, 40, dnn.u4, tag="any"),
    "nibbles": of_groups(256, 80, 32),
    "nibbles of f32": of_groups(256, 80, 32, accumulation_mode="f32"),
    "octets": of_groups(512, 33, 64, 8),
    "bf16 times s8": of_integers(256, 80, dnn.s8, src_type=dnn.bf16),
}  # fmt: skip


UNEQUAL = ("gemm of a long sum", "inner product of any", "u8 of any", "s8 in groups", "s4 in groups", "nibbles of f32")


def results(request: Any, data: dict[str, np.ndarray], attr: dnn.Attr, on: dnn.Engine) -> dict[str, np.ndarray]:
    pd = dnn.primitive_desc(request, attr, on)
    memories = {}
    for name, tensor in pd.plan.tensors.items():
        memories[name] = dnn.Memory(tensor)
        if name in data:
            plain = data[name].astype(np.float32).reshape(tensor.dims)
            memories[name] = dnn.reorder(dnn.Memory.from_array(plain), tensor)
    dnn.Primitive(pd).execute(**memories)
    return {name: np.array(memories[name].numpy()) for name in pd.plan.outputs}


def differing(of: Request, isa: str) -> list[tuple[int, int, str]]:
    whole = results(*of(MOST), engine(isa))
    return [
        (items, threads, name)
        for items in BATCHES
        for threads in THREADS
        for name, found in results(*of(items), engine(isa, threads)).items()
        if not same(found, whole[name][:items])
    ]


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("name", REQUESTS)
def test_bits_do_not_depend_on_neighbours(name: str, isa: str) -> None:
    assert differing(REQUESTS[name], isa) == []


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("name", UNEQUAL)
def test_the_comparison_can_fail(name: str) -> None:
    def without(items: int) -> tuple[Any, dict[str, np.ndarray], dnn.Attr]:
        request, data, attr = REQUESTS[name](items)
        return request, data, attr.changed(deterministic=False)

    assert differing(without, "avx2")


def test_what_is_refused() -> None:
    on = engine("avx2")
    rows, numbers, row = desc((4, 8), "ab"), desc((4,), "a"), desc((8,), "a")
    norm = dnn.LayerNormBackward(rows, rows, rows, numbers, numbers, diff_scale=row)
    with pytest.raises(Unimplemented, match="diff_scale is a sum over all items: leave it out, or deterministic"):
        dnn.primitive_desc(norm, BATCH, on)
    weights = dnn.InnerProductBackwardWeights(rows, desc((8, 8), "ab"), rows)
    with pytest.raises(Unimplemented, match="InnerProductBackwardWeights has no plans for deterministic='batch'"):
        dnn.primitive_desc(weights, BATCH, on)
    halves = [dnn.MemoryDesc((8, 8), dnn.bf16, "ab")] * 3
    with pytest.raises(Unimplemented, match="diff_dst is bf16: deterministic='batch' takes f32 here"):
        dnn.primitive_desc(dnn.InnerProductBackwardData(*halves), BATCH, on)
