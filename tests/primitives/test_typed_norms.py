"""Softmax, normalizations, running sums and top-k of bf16 and f16: computed in f32, rounded once, in every layout."""

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.primitives.core.description import Description

INFERENCE = dnn.PropKind.forward_inference
NUMPY: dict[dnn.DataType, Any] = {dnn.f32: np.float32, dnn.bf16: ml_dtypes.bfloat16, dnn.f16: np.float16}
ROUNDOFF = {dnn.f32: 0.0, dnn.bf16: 2.0**-8, dnn.f16: 2.0**-11}
NEAR_ZERO = 2.0**-14  # below this f16 has no finer numbers
COMPUTED = 64 * 4 * 2.0**-24  # some roundings of numbers up to 4, which may cancel
PAIRS = [(dnn.bf16, dnn.bf16), (dnn.f16, dnn.f16), (dnn.bf16, dnn.f32), (dnn.f32, dnn.f16)]
PAIR = pytest.mark.parametrize(("src", "dst"), PAIRS, ids=str)
LAYOUTS = [((5, 7), "ab"), ((3, 300), "ab"), ((2, 2100), "ab"), ((2, 21, 5, 9), "abcd"), ((2, 21, 5, 9), "acdb"),
           ((2, 16, 3, 5), "aBcd8b"), ((2, 21, 3, 5), "aBcd8b")]  # fmt: skip


def numbers(dims: tuple[int, ...], dtype: dnn.DataType, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-4, 4, dims).astype(NUMPY[dtype])


def executed(desc: Any, isa: str, **given: Any) -> tuple[str, Any]:
    """The implementation, and its results as float64."""
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=2))
    pd.plan.check()
    sources = {name: dnn.Memory.from_numpy(values, getattr(desc, name)) for name, values in given.items()}
    dst = dnn.Memory(desc.dst)
    dnn.Primitive(pd).execute(dst=dst, **sources)
    assert dst.padding_is_zero()
    return pd.implementation, dst.numpy().view(NUMPY[desc.dst.dtype]).astype(np.float64)


def assert_near(result: Any, wanted: Any, dtype: dnn.DataType) -> None:
    """Rounded once, beside what f32 does."""
    bound = ROUNDOFF[dtype] * np.maximum(np.abs(wanted), NEAR_ZERO) + COMPUTED * np.maximum(np.abs(wanted), 1)
    assert (np.abs(result - wanted) <= bound).all()


@PAIR
@pytest.mark.parametrize("alg", ["accurate", "log"])
def test_softmax(isa: str, src: dnn.DataType, dst: dnn.DataType, alg: Any) -> None:
    for dims, tag in LAYOUTS:
        x = numbers(dims, src)
        desc = dnn.SoftmaxForward(INFERENCE, alg, dnn.MemoryDesc(dims, src, tag), dnn.MemoryDesc(dims, dst, tag), 1)
        name, result = executed(desc, isa, src=x)
        exact = x.astype(np.float64)
        powers = np.exp(exact - exact.max(1, keepdims=True))
        wanted = powers / powers.sum(1, keepdims=True)
        assert_near(result, np.log(wanted) if alg == "log" else wanted, dst)
        by_lanes = tag == "abcd"
        copies = "B" in tag  # blocks of the axis are two loops
        assert name == "reorder+" * copies + f"{'lanes' if by_lanes else 'rows'}:{isa}"


@PAIR
def test_layer_norm(isa: str, src: dnn.DataType, dst: dnn.DataType) -> None:
    """With vectors of bf16 and f32, and the RMS form."""
    for dims, tag in LAYOUTS[:4]:
        x, scale, shift = numbers(dims, src), numbers(dims[-1:], dnn.bf16, 1), numbers(dims[-1:], dnn.f32, 2)
        tensors = dnn.MemoryDesc(dims, src, tag), dnn.MemoryDesc(dims, dst, tag)
        vectors = dnn.MemoryDesc(scale.shape, dnn.bf16, "a"), dnn.MemoryDesc(shift.shape, dnn.f32, "a")
        desc = dnn.LayerNormForward(INFERENCE, *tensors, 2.0**-10, *vectors)
        name, result = executed(desc, isa, src=x, scale=scale, shift=shift)
        assert name == f"reorder+layer_norm:{isa}"  # of the scale
        exact = x.astype(np.float64)
        centred = exact - exact.mean(-1, keepdims=True)
        wanted = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 2.0**-10)
        assert_near(result, wanted * scale.astype(np.float64) + shift, dst)
        name, result = executed(dnn.LayerNormForward(INFERENCE, *tensors, rms=True), isa, src=x)
        assert name == f"layer_norm:{isa}"
        assert_near(result, exact / np.sqrt((exact**2).mean(-1, keepdims=True) + 1e-5), dst)


def test_statistics_of_bf16_are_f32_within(isa: str) -> None:
    """Written in the type that is asked for."""
    dims, src = (6, 100), dnn.MemoryDesc((6, 100), dnn.bf16, "ab")
    kept = dnn.MemoryDesc((6,), dnn.f16, "a")
    desc = dnn.LayerNormForward(INFERENCE, src, src, mean=kept, variance=kept)
    x, memories = numbers(dims, dnn.bf16), {name: dnn.Memory(kept) for name in ("mean", "variance")}
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa))
    dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, src), dst=dnn.Memory(src), **memories)
    exact = x.astype(np.float64)
    for name, wanted in (("mean", exact.mean(1)), ("variance", exact.var(1))):
        assert_near(memories[name].numpy().astype(np.float64), wanted, dnn.f16)


@PAIR
@pytest.mark.parametrize("groups", [0, 3, 21], ids=["batch", "group", "instance"])
def test_channel_norms(isa: str, src: dnn.DataType, dst: dnn.DataType, groups: int) -> None:
    for dims, tag in LAYOUTS[3:5]:
        x, scale, shift = numbers(dims, src), numbers(dims[1:2], dnn.f16, 1), numbers(dims[1:2], dnn.f32, 2)
        tensors = dnn.MemoryDesc(dims, src, tag), dnn.MemoryDesc(dims, dst, tag)
        vectors: Mapping[str, Any] = {
            "scale": dnn.MemoryDesc(scale.shape, dnn.f16, "a"), "shift": dnn.MemoryDesc(shift.shape, dnn.f32, "a")
        }  # fmt: skip
        desc: Description = dnn.BatchNormForward(INFERENCE, *tensors, **vectors)
        if groups:
            desc = dnn.GroupNormForward(INFERENCE, *tensors, groups, **vectors)
        name, result = executed(desc, isa, src=x, scale=scale, shift=shift)
        assert name == f"reorder+{'group' if groups else 'batch'}_norm:{isa}"  # of the scale
        exact = x.astype(np.float64)
        parts = exact.reshape(dims[0], groups, -1) if groups else exact
        axes: Any = -1 if groups else (0, 2, 3)
        normal = (parts - parts.mean(axes, keepdims=True)) / np.sqrt(parts.var(axes, keepdims=True) + 1e-5)
        spread = (slice(None), None, None)
        assert_near(normal.reshape(dims) * scale.astype(np.float64)[spread] + shift[spread], result, dst)


@PAIR
def test_what_is_brought_to_f32_first(isa: str, src: dnn.DataType, dst: dnn.DataType) -> None:
    """LRN and running sums, whose kernels take f32 alone."""
    dims = (2, 21, 3, 5)
    x, tensors = numbers(dims, src), [dnn.MemoryDesc(dims, kind, "abcd") for kind in (src, dst)]
    exact = x.astype(np.float64)
    name, result = executed(dnn.CumulativeSum(*tensors, 3), isa, src=x)
    assert name == f"reorder+rows:{isa}"
    assert_near(result, np.cumsum(exact, 3), dst)
    name, result = executed(dnn.LRNForward(INFERENCE, "lrn_across_channels", *tensors, 3, 2.0, 0.5), isa, src=x)
    assert name == f"reorder+pixels:{isa}"
    squares = np.pad(exact**2, ((0, 0), (1, 1), (0, 0), (0, 0)))
    sums = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
    assert_near(result, exact / np.sqrt(1 + 2 / 3 * sums), dst)


@pytest.mark.parametrize("kind", [dnn.bf16, dnn.f16, dnn.s8, dnn.u8], ids=str)
def test_top_k(isa: str, kind: dnn.DataType) -> None:
    """Values are numbers of src; of equal ones the first."""
    stored = NUMPY.get(kind, np.dtype(kind.numpy))
    x = np.random.default_rng(3).uniform(0, 100, (7, 40)).astype(stored)
    src = dnn.MemoryDesc(x.shape, kind, "ab")
    indices, values = dnn.MemoryDesc((7, 5), dnn.s32, "ab"), dnn.MemoryDesc((7, 5), kind, "ab")
    pd = dnn.primitive_desc(dnn.TopKForward("max", src, indices, 1, values), engine=dnn.Engine(isa=isa))
    assert pd.implementation == f"reorder+rows:{isa}"
    dst, best = dnn.Memory(indices), dnn.Memory(values)
    dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, src), dst=dst, values=best)
    wanted = np.argsort(-x.astype(np.float64), axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(dst.numpy(), wanted)
    np.testing.assert_array_equal(best.numpy().view(stored), np.take_along_axis(x, wanted, 1))


def test_in_place(isa: str) -> None:
    """Long rows of bf16, whose exponentials are computed twice."""
    desc = dnn.MemoryDesc((3, 2100), dnn.bf16, "ab")
    x = numbers(desc.dims, dnn.bf16)
    pd = dnn.primitive_desc(dnn.SoftmaxForward(INFERENCE, "accurate", desc, desc, 1), engine=dnn.Engine(isa=isa))
    apart, same = dnn.Memory(desc), dnn.Memory.from_numpy(x, desc)
    dnn.Primitive(pd).execute(src=same, dst=apart)
    dnn.Primitive(pd).execute(src=same, dst=same)
    assert np.array_equal(apart.numpy(), same.numpy())


@pytest.mark.parametrize("desc", [
    dnn.LayerNormForward(INFERENCE, *[dnn.MemoryDesc((2, 3), dnn.s8, "ab")] * 2),
    dnn.BatchNormForward(INFERENCE, *[dnn.MemoryDesc((2, 3), dnn.s8, "ab")] * 2),
    dnn.LRNForward(INFERENCE, "lrn_across_channels", *[dnn.MemoryDesc((2, 3), dnn.s8, "ab")] * 2),
    dnn.CumulativeSum(*[dnn.MemoryDesc((2, 3), dnn.s8, "ab")] * 2, 1),
], ids=lambda desc: type(desc).__name__)  # fmt: skip
def test_integers_are_refused(desc: Any) -> None:
    with pytest.raises(dnn.Unimplemented, match="src is s8, only f32, bf16, f16 is implemented"):
        dnn.primitive_desc(desc)
