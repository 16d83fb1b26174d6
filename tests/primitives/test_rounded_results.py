"""Results of bf16 by the instruction that rounds to it: the same bits as by steps, also of what it would not round."""

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import asmdnn as dnn
from tests.support.plans import emulate_plan

INFERENCE = dnn.PropKind.forward_inference
ROUNDS, STEPS = "avx512_core_bf16", "avx512_core"
Bits = npt.NDArray[np.uint16]


def numbers(count: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Any bits: ties, denormals, infinities, NaNs that are quiet and that are not; many zeros and numbers near 1."""
    rng = np.random.default_rng(seed)
    found = rng.integers(0, 1 << 32, count, np.uint32)
    found[rng.random(count) < 0.3] &= 0x807FFFFF  # denormals
    found[rng.random(count) < 0.3] &= 0xFFFF8000  # ties, or nearly
    found[rng.random(count) < 0.1] = 0
    return found.view(np.float32)


def planned(desc: Any, isa: str) -> dnn.PrimitiveDesc:
    return dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=1, machine="zen4"))  # type: ignore[arg-type]


def stored(array: npt.NDArray[np.float32], dtype: dnn.DataType) -> npt.NDArray[Any]:
    return array.astype(ml_dtypes.bfloat16).view(np.uint16) if dtype == dnn.bf16 else array


def emulated(pd: dnn.PrimitiveDesc, arrays: Mapping[str, npt.NDArray[np.float32]]) -> Bits:
    pd.plan.check()
    memories = {
        name: dnn.Memory(desc, stored(arrays[name], desc.dtype)) if name in arrays else dnn.Memory(desc)
        for name, desc in pd.plan.tensors.items()
    }
    emulate_plan(pd.plan, memories)
    return memories["dst"].numpy().view(np.uint16)


@pytest.mark.emulated(ROUNDS)
@pytest.mark.parametrize("count", [1, 15, 16, 17, 31, 32, 48, 33 * 16 + 5])
@pytest.mark.parametrize("plain", [True, False])
def test_bits(count: int, plain: bool) -> None:
    """plain: numbers that the instruction rounds alone; else one denormal at least in most groups of vectors."""
    x = numbers(count, count)
    if plain:
        x[(x.view(np.uint32) & 0x7F800000) == 0] = 1.5
    src, one = dnn.MemoryDesc((1, count), dnn.f32, "ab"), dnn.MemoryDesc((1, 1), dnn.f32, "ab")
    desc = dnn.BinaryForward("mul", src, one, dnn.MemoryDesc((1, count), dnn.bf16, "ab"))
    pd = planned(desc, ROUNDS)
    assert pd.implementation == f"binary:{STEPS}"
    assert [spec.isa for spec in pd.plan.specs] == [ROUNDS]
    with np.errstate(invalid="ignore"):
        expected = x.reshape(1, count).astype(ml_dtypes.bfloat16)
    found = emulated(pd, {"src0": x.reshape(1, count), "src1": np.ones((1, 1), np.float32)})
    is_nan = np.isnan(x.reshape(1, count))
    assert np.array_equal(found[~is_nan], expected.view(np.uint16)[~is_nan])
    upper = (x.reshape(1, count).view(np.uint32) >> 16).astype(np.uint16) | 0x40
    assert np.array_equal(found[is_nan], upper[is_nan])  # NaNs stay what they are, made quiet


def bf16_desc(*dims: int, dtype: dnn.DataType = dnn.bf16, tag: str = "any") -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dtype, tag if tag != "any" else "abcdef"[: len(dims)])


def of_channels(channels: int) -> dnn.MemoryDesc:
    return dnn.MemoryDesc((channels,), dnn.f32, "a")


image, row = bf16_desc(2, 5, 3, 7), bf16_desc(6, 53)
pixels, smaller = (dnn.MemoryDesc((2, 37, n, n), dnn.bf16, "acdb") for n in (6, 3))
of_rows = bf16_desc(2, 3, 8, 70), bf16_desc(2, 3, 4, 35)
DESCRIPTIONS = {
    "eltwise": dnn.EltwiseForward(INFERENCE, "relu", image, image, 0.25),
    "sum": dnn.SumForward((image, image, image), image, (1.0, 0.5, 2.0)),
    "prelu": dnn.PReLUForward(INFERENCE, image, bf16_desc(1, 5, 1, 1), image),
    "given_statistics": dnn.BatchNormForward(
        INFERENCE, image, image, 1e-3, *[of_channels(5)] * 4, use_global_stats=True
    ),
    "layer_norm": dnn.LayerNormForward(INFERENCE, row, row, 1e-3, *[of_channels(53)] * 2),
    "rows": dnn.SoftmaxForward(INFERENCE, "accurate", row, row, 1),
    "narrow_pixels": dnn.PoolingForward("avg_include_padding", pixels, smaller, (2, 2), (2, 2)),
    "narrow_rows": dnn.PoolingForward("avg_include_padding", *of_rows, (2, 2), (2, 2)),
    "channels": dnn.ResamplingForward("linear", smaller, pixels),
    "lanes": dnn.SoftmaxForward(INFERENCE, "accurate", row, row, 0),
}


@pytest.mark.emulated(ROUNDS)
@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_as_by_steps(name: str) -> None:
    rounds, steps = (planned(DESCRIPTIONS[name], isa) for isa in (ROUNDS, STEPS))
    assert rounds.implementation == f"{name}:{STEPS}"  # by steps, some take reorders
    assert ROUNDS in {spec.isa for spec in rounds.plan.specs}  # factors of norms are f32
    rng = np.random.default_rng(1)
    arrays = {}
    for tensor, desc in rounds.plan.tensors.items():
        if tensor == "dst":
            continue
        x = rng.normal(0, 2, desc.dims).astype(np.float32)
        if desc.dtype == dnn.bf16:
            x[rng.random(desc.dims) < 0.05] *= np.float32(2**-126)
        arrays[tensor] = np.abs(x) if tensor == "variance" else x
    assert np.array_equal(emulated(rounds, arrays), emulated(steps, arrays))
