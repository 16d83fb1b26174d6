"""Tensors of other types than f32: brought to f32, computed in it, rounded back, by element-wise kernels and others."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asmdnn as dnn
from asmdnn.bench.values import decoded, encoded
from asmdnn.definitions.softmax import softmax
from tests.support.plans import emulate_plan

TYPES = (dnn.f32, dnn.bf16, dnn.f16, dnn.s32, dnn.s8, dnn.u8)
INFERENCE = dnn.PropKind.forward_inference
SPECIAL = np.float32([0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 127.5, 128, 255.5, -128.5, 1e9, 3e9, -3e9, 65504, 65520, 1e38,
                      np.inf, -np.inf, np.nan, 1e-40, 1e-7, 1.00390625, 1.01171875])  # fmt: skip


def numbers(dims: tuple[int, ...], dtype: dnn.DataType, seed: int = 0) -> Any:
    """Elements of a type, as they are stored."""
    values = np.random.default_rng(seed).uniform(-100, 100, dims).astype(np.float32)
    return encoded(np.abs(values) if dtype == dnn.u8 else values, dtype)


def memory(array: Any, dtype: dnn.DataType) -> dnn.Memory:
    return dnn.Memory.from_numpy(array, dnn.MemoryDesc(array.shape, dtype, "abcd"[: array.ndim]))


def run(desc: Any, attr: dnn.Attr | None = None, **memories: dnn.Memory) -> None:
    pd = dnn.primitive_desc(desc, attr or dnn.Attr(), dnn.Engine(isa="avx2", threads=2))
    pd.plan.check()
    dnn.Primitive(pd).execute(**memories)


def wanted(values: Any, dtype: dnn.DataType) -> Any:
    """f32 numbers as a type stores them: NaN is the least integer; the largest s32 is the last f32 below 2^31."""
    if dtype.numpy[1] not in "iu" or dtype == dnn.bf16:
        return encoded(values, dtype)
    limits = np.iinfo(dtype.numpy)
    most = 2147483520 if dtype == dnn.s32 else limits.max
    clipped = np.clip(np.where(np.isnan(values), limits.min, values).astype(np.float64), limits.min, most)
    return np.rint(clipped).astype(dtype.numpy)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("dst", TYPES, ids=str)
@pytest.mark.parametrize("src", TYPES, ids=str)
@pytest.mark.one_in(5)
def test_pairs_of_types(src: dnn.DataType, dst: dnn.DataType) -> None:
    """Rounded once to the type of dst, in the loop and in tails, with an operand of each type."""
    for count, other in ((1, dnn.f32), (5, dnn.u8), (37, src), (203, dnn.bf16), (9000, dst)):
        x, y = numbers((count,), src), numbers((count,), other, 1)
        result = memory(np.zeros(count, dst.numpy), dst)
        sources = {"src0": memory(x, src), "src1": memory(y, other)}
        run(dnn.BinaryForward("add", *(m.desc for m in sources.values()), result.desc), **sources, dst=result)
        exact = decoded(x, src).astype(np.float32) + decoded(y, other).astype(np.float32)
        assert np.array_equal(result.numpy(), wanted(exact, dst))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("dst", TYPES[1:], ids=str)
def test_rounding_and_saturation(dst: dnn.DataType) -> None:
    for count in (len(SPECIAL), 7):
        x, result = memory(SPECIAL[-count:], dnn.f32), memory(np.zeros(count, dst.numpy), dst)
        run(dnn.EltwiseForward(INFERENCE, "linear", x.desc, result.desc, 1.0), src=x, dst=result)
        found, exact = decoded(result.numpy(), dst), decoded(wanted(SPECIAL[-count:], dst), dst)
        assert np.array_equal(found, exact, equal_nan=True)


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize("dst", TYPES[1:], ids=str)
def test_rounding_and_saturation_emulated(dst: dnn.DataType) -> None:
    x, result = memory(SPECIAL, dnn.f32), memory(np.zeros(len(SPECIAL), dst.numpy), dst)
    desc = dnn.EltwiseForward(INFERENCE, "linear", x.desc, result.desc, 1.0)
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx512_core", threads=1))
    emulate_plan(pd.plan, {"src": x, "dst": result})
    found, exact = decoded(result.numpy(), dst), decoded(wanted(SPECIAL, dst), dst)
    assert np.array_equal(found, exact, equal_nan=True)


@pytest.mark.isa("avx2")
@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.data())
def test_layouts_and_broadcasts(data: st.DataObject) -> None:
    """Blocked, transposed and broadcast tensors of any types."""
    dims = tuple(data.draw(st.lists(st.integers(1, 20), min_size=4, max_size=4)))
    narrow = tuple(n if data.draw(st.booleans()) else 1 for n in dims)
    types, tags = st.sampled_from(TYPES), st.sampled_from(("abcd", "acdb", "aBcd8b", "cdab"))
    descs = [dnn.MemoryDesc(size, data.draw(types), data.draw(tags)) for size in (dims, narrow, dims)]
    x, y = (numbers(desc.dims, desc.dtype, i) for i, desc in enumerate(descs[:2]))
    memories = {"src0": dnn.Memory.from_numpy(x, descs[0]), "src1": dnn.Memory.from_numpy(y, descs[1])}
    memories["dst"] = dnn.Memory(descs[2])
    run(dnn.BinaryForward("max", *descs), **memories)
    first, second = (decoded(array, desc.dtype).astype(np.float32) for array, desc in zip((x, y), descs, strict=False))
    assert np.array_equal(memories["dst"].numpy(), wanted(np.maximum(first, second), descs[2].dtype))
    assert memories["dst"].padding_is_zero()


@pytest.mark.isa("avx2")
def test_sums_weights_and_post_ops() -> None:
    """A sum of types; PReLU; a post-op that adds to what dst held; in place."""
    x, y = numbers((3, 40), dnn.s8), numbers((3, 40), dnn.f16, 1)
    first, second, dst = memory(x, dnn.s8), memory(y, dnn.f16), memory(np.zeros((3, 40), np.uint8), dnn.u8)
    run(dnn.SumForward((first.desc, second.desc), dst.desc, (2.0, -1.0)), src0=first, src1=second, dst=dst)
    assert np.array_equal(dst.numpy(), wanted(2 * x.astype(np.float32) - y.astype(np.float32), dnn.u8))

    weights = memory(np.float16([[0.5]] * 3), dnn.f16)
    run(dnn.PReLUForward(INFERENCE, first.desc, weights.desc, second.desc), src=first, weights=weights, dst=second)
    leaky = np.where(x > 0, x, 0.5 * x.astype(np.float32)).astype(np.float16)
    assert np.array_equal(second.numpy(), leaky)

    attr = dnn.Attr([dnn.Sum(), dnn.Eltwise("relu")])
    run(dnn.EltwiseForward(INFERENCE, "linear", first.desc, second.desc, 2.0), attr, src=first, dst=second)
    assert np.array_equal(second.numpy(), np.maximum(2 * x.astype(np.float32) + leaky, 0).astype(np.float16))

    run(dnn.EltwiseForward(INFERENCE, "abs", first.desc, first.desc), src=first, dst=first)
    assert np.array_equal(first.numpy(), wanted(np.abs(x.astype(np.float32)), dnn.s8))


@pytest.mark.isa("avx2")
def test_logic_on_bytes() -> None:
    """Truths as ONNX stores them: a comparison to u8, logic of u8, and a choice by it."""
    random = np.random.default_rng(0)
    a, b = (memory(random.integers(-2, 3, (7, 33)).astype(np.float32), dnn.f32) for _ in range(2))
    less, other, both = (memory(random.integers(0, 2, (7, 33)).astype(np.uint8), dnn.u8) for _ in range(3))
    run(dnn.BinaryForward("lt", a.desc, b.desc, less.desc), src0=a, src1=b, dst=less)
    assert np.array_equal(less.numpy(), (a.numpy() < b.numpy()).astype(np.uint8))
    run(dnn.BinaryForward("and", less.desc, other.desc, both.desc), src0=less, src1=other, dst=both)
    assert np.array_equal(both.numpy(), less.numpy() & other.numpy())
    dst = memory(np.zeros((7, 33), np.float32), dnn.f32)
    run(dnn.BinaryForward("select", a.desc, b.desc, dst.desc, both.desc), src0=a, src1=b, src2=both, dst=dst)
    assert np.array_equal(dst.numpy(), np.where(both.numpy(), a.numpy(), b.numpy()))
    run(dnn.EltwiseForward(INFERENCE, "not", both.desc, both.desc), src=both, dst=both)
    assert np.array_equal(both.numpy(), 1 - (less.numpy() & other.numpy()))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("dtype", TYPES[1:], ids=str)
def test_softmax_and_reductions(dtype: dnn.DataType) -> None:
    """Converted in front of f32 kernels and after them."""
    stored = numbers((3, 5, 19), dtype)
    x = decoded(stored, dtype).astype(np.float32)
    src, dst = memory(stored, dtype), memory(np.zeros((3, 5, 19), np.float32), dnn.f32)
    run(dnn.SoftmaxForward(INFERENCE, "accurate", src.desc, dst.desc, 2), src=src, dst=dst)
    np.testing.assert_allclose(dst.numpy(), softmax(x.astype(np.float64)), atol=1e-5)
    most = memory(np.zeros((3, 1, 19), dtype.numpy), dtype)
    run(dnn.ReductionForward("max", src.desc, most.desc), src=src, dst=most)
    assert np.array_equal(decoded(most.numpy(), dtype), x.max(1, keepdims=True))
    run(dnn.ReductionForward("max", src.desc, most.desc), dnn.Attr([dnn.Eltwise("relu")]), src=src, dst=most)
    assert np.array_equal(decoded(most.numpy(), dtype), np.maximum(x.max(1, keepdims=True), 0))
