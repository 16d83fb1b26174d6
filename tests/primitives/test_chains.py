"""Post-ops after every kind, by every implementation, beside every other result and into every type.

A chain is composed by numpy on what the same problem gives without it: where that is of small integers, bits are equal.
"""

import random
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.values import rounded
from asmdnn.primitives.core.description import Description
from asmdnn.primitives.core.registry import kinds
from tests.primitives.every_kind import (
    IMAGES,
    INFERENCE,
    PRODUCTS,
    SUMMARIES,
    TYPED,
    WITH_POST_OPS,
    Array,
    arrays_of,
    engine,
    integers,
    others,
    planned,
    results,
    t,
    with_dst,
)
from tests.primitives.test_recurrent_bytes import described as layer_of_bytes
from tests.primitives.test_recurrent_dynamic import described as layer_of_rounded_rows

TYPES = (dnn.f32, dnn.bf16, dnn.f16, dnn.s8, dnn.u8, dnn.s32)
ULPS = 2.0**-21  # of a chain's steps, on what is no integer


def channels(dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n if dim == min(1, len(dims) - 1) else 1 for dim, n in enumerate(dims))


def of_numbers(_: tuple[int, ...]) -> list[Any]:
    return [dnn.Eltwise("linear", 2.0, 10.0), dnn.Eltwise("relu", 0.5), dnn.PostOp(lambda x, c: x * c - 1.0, c=2.0)]


def of_sums(_: tuple[int, ...]) -> list[Any]:
    return [dnn.Sum(2.0), dnn.Eltwise("abs"), dnn.Sum(0.5, 1.0)]


def of_tensors(dims: tuple[int, ...]) -> list[Any]:
    each, one, all_of_them = (dnn.MemoryDesc(n, dnn.f32, "any") for n in (channels(dims), (1,) * len(dims), dims))
    return [dnn.Binary("add", each), dnn.Binary("mul", one), dnn.PReLU(each), dnn.Binary("max", all_of_them)]


Chain = Callable[[tuple[int, ...]], list[Any]]
CHAINS: dict[str, Chain] = {"numbers": of_numbers, "sums": of_sums, "tensors": of_tensors}


def composed(chain: list[Any], x: Array, old: Array) -> Array:
    """Step by step, in double precision."""
    for i, op in enumerate(chain):
        operands = {name: integers(f"{name}_{i}", desc) for name, desc in op.tensors.items()}
        if isinstance(op, dnn.Sum):
            x = x + op.scale * (old - op.zero_point)
        elif isinstance(op, dnn.PostOp):
            x = x * 2.0 - 1.0
        elif isinstance(op, dnn.PReLU):
            x = np.where(x > 0, x, x * operands["prelu"])
        elif isinstance(op, dnn.Binary):
            x = {"add": np.add, "mul": np.multiply, "max": np.maximum}[op.alg](x, operands["binary"])
        else:
            x = {"linear": op.alpha * x + op.beta, "relu": np.where(x > 0, x, op.alpha * x), "abs": abs(x)}[op.alg]
    return x


def compare(desc: Description, chain: str, isa: str, dtype: dnn.DataType) -> int:
    """Every implementation's result with what numpy makes of the one without a chain; how many implementations."""
    plain, typed = with_dst(desc, dnn.f32), with_dst(desc, dtype)
    ops = CHAINS[chain](typed.dst.dims)
    without = {pd.implementation: results(pd, arrays_of(pd)) for pd in planned(plain, dnn.Attr(), isa)}
    found = planned(typed, dnn.Attr(ops), isa)
    for pd in found:
        pd.plan.check()
        arrays = arrays_of(pd)
        base = without.get(pd.implementation, next(iter(without.values())))
        x = composed(ops, base["dst"], arrays["dst"])
        slack = 0.0 if (base["dst"] % 0.5 == 0).all() else ULPS * (np.abs(x) + 4 * np.abs(base["dst"]) + 20)
        made = results(pd, arrays)
        low, high = rounded(x - slack, dtype), rounded(x + slack, dtype)
        wrong = ~((low <= made["dst"]) & (made["dst"] <= high))
        at = np.unravel_index(int(wrong.argmax()), wrong.shape)
        assert not wrong.any(), f"{pd.implementation}: {made['dst'][at]:.9g} instead of {x[at]:.9g} at {at}, {desc}"
        for name in made.keys() - {"dst"}:
            assert np.array_equal(made[name], base[name]), f"{pd.implementation}: {name} is another one, {desc}"
    return len(found)


def refuses(desc: Description, chain: str) -> bool:
    """What documents say is not taken: a sum after results that are read again, or where kernels never read dst."""
    return chain == "sums" and isinstance(desc, dnn.SoftmaxForward | dnn.LayerNormForward | dnn.QuantizedMatMul)


def every_way() -> list[tuple[Description, str, dnn.DataType]]:
    wanted = ((desc, chain, dtype) for desc in WITH_POST_OPS for chain in CHAINS for dtype in TYPES)
    return [way for way in wanted if not refuses(*way[:2]) and (way[2] == dnn.f32 or isinstance(way[0], TYPED))]


SAMPLE = random.Random(7).sample(every_way(), 70)


def name(way: tuple[Description, str, dnn.DataType]) -> str:
    desc, chain, dtype = way
    return f"{type(desc).__name__}-{chain}-{dtype.name}"


@pytest.mark.parametrize("way", SAMPLE, ids=name)
def test_chains(isa: str, way: tuple[Description, str, dnn.DataType]) -> None:
    desc, chain, dtype = way
    assert compare(desc, chain, isa, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("desc", WITH_POST_OPS, ids=lambda desc: type(desc).__name__)
def test_all_chains(isa: str, desc: Description) -> None:
    for _, chain, dtype in (way for way in every_way() if way[0] is desc):
        assert compare(desc, chain, isa, dtype)


def of_few_bits() -> tuple[tuple[Description, dnn.Attr], ...]:
    """What only elements that share a byte, scales by groups, and updates bring: tests of their own compare results."""
    src, weights, dst = (dnn.MemoryDesc(dims, dnn.f32, "ab") for dims in ((3, 64), (64, 32), (3, 32)))
    few, groups = dnn.MemoryDesc(weights.dims, dnn.s4, "ab"), {"weights": (32, 1)}
    bytes_of = dnn.MemoryDesc(weights.dims, dnn.s8, "ab")
    by_groups = dnn.Attr(scales={"weights": 3}, groups=groups)
    floats8 = (dnn.MemoryDesc(desc.dims, dnn.f8_e4m3, "ab") for desc in (src, weights, dst))
    octets = (dnn.MemoryDesc(desc.dims, dnn.u8, "ab") for desc in (src, weights, dst))
    image, filters = t(1, 8, 4, 4, dtype=dnn.u8), t(8, 8, 1, 1, dtype=dnn.u8)
    return (
        (dnn.Reorder(weights, few), dnn.Attr()),
        (dnn.MatMul(src, bytes_of, dst), by_groups),
        (dnn.MatMul(*floats8), dnn.Attr()),
        (dnn.MatMul(*octets), dnn.Attr()),
        (dnn.MatMul(t(3, 64, dtype=dnn.u8), bytes_of, dst), dnn.Attr(scales={"src": 2})),
        (dnn.ConvolutionForward(image, filters, image), dnn.Attr()),
        (dnn.ConvolutionForward(*(t(*x.dims, dtype=dnn.bf16, tag="any") for x in (image, filters, image))), dnn.Attr()),
        (dnn.Reorder(weights, t(64, 32, dtype=dnn.bf16)), dnn.Attr(rounding_mode={"dst": "stochastic"})),
        (dnn.ConvolutionBackwardWeights(t(1, 512, 2, 2), t(2048, 512, 1, 1), t(1, 2048, 2, 2)), dnn.Attr(["abs"])),
    )


def of_each_way() -> tuple[Description, ...]:
    """What formats, types and given statistics choose: their conformance cases compare results."""
    plain, last, blocked = (t(1, 16, 4, 5, tag=tag) for tag in ("abcd", "acdb", "aBcd8b"))
    rows, vector, channels = t(6, 19), t(6), t(16)
    return (
        *(dnn.LRNForward(INFERENCE, "lrn_across_channels", x, x) for x in (last, blocked)),
        dnn.LRNForward(INFERENCE, "lrn_within_channel", plain, plain),
        dnn.ResamplingForward("nearest", t(1, 16, 4, 6), t(1, 16, 2, 3)),
        dnn.LayerNormBackward(rows, rows, rows, vector, vector, use_global_stats=True),
        dnn.BatchNormBackward(plain, plain, plain, channels, channels, use_global_stats=True),
        dnn.Reorder(rows, dnn.MemoryDesc(rows.dims, dnn.f32, strides=(57, 3))),
        dnn.Gather(rows, dnn.MemoryDesc((5,), dnn.s32, "a"), t(6, 5), 1),
        dnn.RandomNumbers(t(6, 19, tag="ba")), dnn.PReLUBackward(plain, plain, plain, plain, plain),
        layer_of_bytes(dnn.LSTMForward, (2, 3, 5, 8)), layer_of_rounded_rows((2, 3, 5, 8))[0],
        dnn.ConvolutionBackwardWeights(t(1, 32, 5, 5, tag="acdb"), t(3, 32, 1, 1), t(1, 3, 5, 5, tag="acdb")),
        dnn.ConvolutionBackwardWeights(t(1, 3, 8, 34), t(3, 3, 3, 3), t(1, 3, 6, 32)),
        *(dnn.PoolingForward("max", t(1, 9, *pixels, dtype=dnn.bf16), t(1, 9, *made, dtype=dnn.bf16), kernel)
          for pixels, made, kernel in (((7, 7), (1, 1), (7, 7)), ((19, 8), (3, 5), (17, 4)))),
        dnn.PoolingBackward("max", image := t(1, 1, 9, 9), image, (5, 5), padding_l=(2, 2), padding_r=(2, 2),
                            indices=t(1, 1, 9, 9, dtype=dnn.s32)),
    )  # fmt: skip


# Of pairs of bf16, which avx2 does not multiply.
ABOVE_AVX2 = {("convolution_backward", "products"), ("convolution_backward", "pixel_pairs"), ("recurrent", "pairs")}
# Their tests have post-ops of their own.
OF_GRADIENTS = {dnn.ConvolutionBackwardData, dnn.DeconvolutionBackwardData, dnn.ConvolutionBackwardWeights}


def test_problems_are_of_every_kind_that_takes_post_ops_and_of_every_implementation() -> None:
    """A new kind, and a new way to compute one, need a problem here."""
    takes: set[type] = set()
    words: dict[bool, set[tuple[str, str]]] = {True: set(), False: set()}  # of plans, of refusals
    attrs = dnn.Attr(), dnn.Attr([dnn.Eltwise("linear", 2.0, 10.0)])
    asked = [(desc, attr) for desc in (*WITH_POST_OPS, *others()) for attr in attrs]
    for desc, attr in (*asked, *of_few_bits(), *((desc, dnn.Attr()) for desc in of_each_way())):
        folder = type(desc).__module__.split(".")[2].replace("inner_product", "products")  # which compute them
        for answer in dnn.implementations(desc, attr, engine("avx2")):
            is_plan = isinstance(answer, dnn.PrimitiveDesc)
            words[is_plan] |= {(folder, word) for word in answer.implementation.rpartition(":")[0].split("+")}
            takes |= {type(desc)} if is_plan and attr.post_ops else set()
    assert takes == {type(desc) for desc in WITH_POST_OPS} | OF_GRADIENTS
    assert {type(desc) for desc in (*WITH_POST_OPS, *others())} == set(kinds())
    assert words[False] - ABOVE_AVX2 <= words[True]


SCALED: tuple[tuple[Description, dict[str, int]], ...] = (
    *((desc, {"src": 0, "weights": 0, "dst": 0}) for desc in (*PRODUCTS, *IMAGES)),
    *((desc, {"weights": 2, "dst": 2}) for desc in PRODUCTS if isinstance(desc, dnn.MatMul) and desc.src.ndims == 2),
    *((desc, {"src": 3}) for desc in IMAGES if not getattr(desc, "groups", 2) > 1),
    *((desc, {"src": 0, "dst": 0}) for desc in SUMMARIES if isinstance(desc, dnn.SoftmaxForward)),
    (dnn.BinaryForward("sub", t(3, 19), t(3, 19), t(3, 19)), {"src0": 0, "src1": 2}),
    (dnn.Concat((t(3, 4, 5), t(3, 2, 5)), t(3, 6, 5), 1), {"src0": 0, "src1": 0}),
)


def spread(numbers: Array, mask: int, dims: tuple[int, ...]) -> Array:
    """Scales as a tensor that broadcasts."""
    return numbers.reshape([n if mask >> dim & 1 else 1 for dim, n in enumerate(dims)])


@pytest.mark.parametrize(("desc", "masks"), SCALED, ids=lambda x: str(x).split(" of ")[0])
@pytest.mark.one_in(3)
def test_scales(isa: str, desc: Description, masks: dict[str, int]) -> None:
    """As of inputs that are scaled by numpy before, and results after; all of them powers of two."""
    found = planned(desc, dnn.Attr(scales=masks), isa)
    assert found
    without = {pd.implementation: pd for pd in planned(desc, dnn.Attr(), isa)}
    for pd in found:
        arrays = arrays_of(pd)
        scales = {n: spread(arrays[f"{n}_scales"], mask, pd.plan.tensors[n].dims) for n, mask in masks.items()}
        base = without.get(pd.implementation, next(iter(without.values())))
        scaled = {n: arrays[n] * (scales.get(n, 1.0) if n != "dst" else 1.0) for n in base.plan.tensors}
        wanted = results(base, scaled)["dst"] / scales.get("dst", 1.0)
        slack = 0.0 if (wanted % 2.0**-6 == 0).all() else ULPS * (np.abs(wanted) + 1)
        assert (np.abs(results(pd, arrays)["dst"] - wanted) <= slack).all(), pd.implementation


def test_scales_and_zero_points_of_reorders(isa: str) -> None:
    src, attr = t(3, 17, 4), dnn.Attr([dnn.Sum(2.0)], {"src": 0, "dst": 2}, {"src": 0, "dst": 0})
    for dtype, tag in product((dnn.f32, dnn.s8, dnn.bf16), ("abc", "acb", "aBc8b")):
        (pd,) = planned(dnn.Reorder(src, t(3, 17, 4, tag=tag, dtype=dtype)), attr, isa)
        a = arrays_of(pd)
        sums = a["src_scales"] * (a["src"] - a["src_zero_points"]) + 2.0 * a["dst"]
        wanted = sums / spread(a["dst_scales"], 2, (3, 17, 4)) + a["dst_zero_points"]
        assert np.array_equal(results(pd, a)["dst"], rounded(wanted, dtype))
