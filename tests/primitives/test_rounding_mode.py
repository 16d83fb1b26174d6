"""`rounding_mode`: a result rounded at random is what the primitive computes in f32, rounded as the definition says."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.records import replace
from tests.support.arena import decode
from tests.support.philox import stochastic

ATTR = {"rounding_mode": {"dst": "stochastic"}}
INFERENCE = dnn.PropKind.forward_inference
LEVELS = [pytest.param(isa, marks=pytest.mark.isa(isa)) for isa in ("avx2", "avx512_core")]
NARROW = (dnn.bf16, dnn.f16, dnn.f8_e4m3, dnn.f8_e5m2, dnn.s8, dnn.u8)
TYPES = pytest.mark.parametrize("dtype", NARROW, ids=str)


def t(*dims: int, dtype: dnn.DataType = dnn.f32, tag: str = "") -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dtype, tag or "abcdef"[: len(dims)])


def problems(dtype: dnn.DataType) -> list[tuple[Any, str]]:
    """Descriptions, and what computes them before it is rounded."""
    image, made = t(1, 8, 5, 5, tag="acdb"), t(1, 16, 3, 3, dtype=dtype, tag="acdb")
    return [
        (dnn.MatMul(t(5, 70), t(70, 33), t(5, 33, dtype=dtype), t(1, 33)), "tiles"),
        (dnn.InnerProductForward(t(12, 8), t(9, 8), t(12, 9, dtype=dtype)), "pack_weights+tiles"),
        (dnn.ConvolutionForward(image, t(16, 8, 3, 3, tag="any"), made), "direct"),
        (dnn.DeconvolutionForward(t(1, 8, 3, 3, tag="acdb"), t(16, 8, 1, 1, tag="any"), made), "direct"),
        (dnn.EltwiseForward(INFERENCE, "tanh", t(3, 400, dtype=dnn.bf16), t(3, 400, dtype=dtype)), "eltwise"),
        (dnn.BinaryForward("mul", t(3, 19), t(3, 1), t(3, 19, dtype=dtype, tag="ba")), "reorder+binary"),
        (dnn.PReLUForward(INFERENCE, t(3, 19), t(1, 19), t(3, 19, dtype=dtype)), "prelu"),
        (dnn.Reorder(t(3, 19), t(3, 19, dtype=dtype, tag="ba")), "transposes"),
    ]


def random_bits(desc: dnn.MemoryDesc, name: str) -> Any:
    """Numbers of all sizes that the smaller types have, in the words of memory."""
    random = np.random.default_rng(len(name))
    x = random.standard_normal(desc.dims) * 2.0 ** random.integers(-18, 3, desc.dims)
    numbers = np.float32(x)
    return (numbers.view(np.uint32) >> 16).astype(np.uint16) if desc.dtype == dnn.bf16 else numbers


def run(pd: dnn.PrimitiveDesc, seed: int = 0, dst: Any = None) -> dnn.Memory:
    """The dst of a call."""
    pd.plan.check()
    memories = {
        name: dnn.Memory.from_numpy(random_bits(desc, name), desc)
        for name, desc in pd.plan.tensors.items()
        if name not in ("dst", "rounding_seed")
    }
    memories["dst"] = dnn.Memory(pd.dst_desc) if dst is None else dnn.Memory.from_numpy(dst, pd.dst_desc)
    if "rounding_seed" in pd.plan.tensors:
        memories["rounding_seed"] = dnn.Memory.from_array(np.array([seed], np.int32))
    execute: Any = dnn.Primitive(pd).execute
    execute(**memories)
    return memories["dst"]


def limited(numbers: Any, dtype: dnn.DataType) -> Any:
    """Integers saturate."""
    if dtype not in (dnn.s8, dnn.u8):
        return numbers
    limits = np.iinfo(dtype.numpy)
    return np.clip(numbers, limits.min, limits.max)


@pytest.mark.parametrize("isa", LEVELS)
@TYPES
@pytest.mark.parametrize("number", range(8))
@pytest.mark.one_in(3)
def test_results_are_those_of_f32_rounded(isa: str, dtype: dnn.DataType, number: int) -> None:
    """Elements are counted as they lie in memory, for any number of threads."""
    desc, name = problems(dtype)[number]
    exact = replace(desc, dst=t(*desc.dst.dims, tag=desc.dst.tag))
    for threads in (1, 3):
        engine = dnn.Engine(isa=isa, threads=threads)  # type: ignore[arg-type]
        pd = dnn.primitive_desc(desc, dnn.Attr(**ATTR), engine)  # type: ignore[arg-type]
        assert pd.implementation == f"stochastic+{name}:{isa}"
        before = run(dnn.primitive_desc(exact, engine=engine)).array.ravel()
        wanted = limited(stochastic(before, dtype, 0, 3), dtype)
        found = decode(run(pd, 3).array.view(np.uint8).ravel(), dtype)
        np.testing.assert_array_equal(found.astype(np.float64), wanted)
    assert not np.array_equal(found, decode(run(pd, 4).array.view(np.uint8).ravel(), dtype)), "the seed is not read"


@pytest.mark.isa("avx2")
def test_gaps_and_padding_are_not_counted() -> None:
    """Elements are counted row by row then; padding is zero, gaps stay."""
    x, engine = t(2, 9, 3), dnn.Engine(isa="avx2", threads=1)
    part = dnn.MemoryDesc((2, 9, 3), dnn.bf16, strides=(64, 5, 1))
    wanted = stochastic(random_bits(x, "src").ravel(), dnn.bf16, 0, 5).reshape(x.dims)
    for dst in (t(2, 9, 3, dtype=dnn.bf16, tag="aBc8b"), part):
        pd = dnn.primitive_desc(dnn.Reorder(x, dst), dnn.Attr(**ATTR), engine)  # type: ignore[arg-type]
        made = run(pd, 5)
        found = decode(np.ascontiguousarray(made.numpy()).view(np.uint8).ravel(), dnn.bf16).reshape(x.dims)
        np.testing.assert_array_equal(found.astype(np.float64), wanted)


@pytest.mark.isa("avx2")
def test_post_ops_come_before_it() -> None:
    """A sum reads what dst held."""
    desc, engine = dnn.MatMul(t(4, 8), t(8, 16), t(4, 16, dtype=dnn.bf16)), dnn.Engine(isa="avx2", threads=1)
    held = np.full((4, 16), 0x4040, np.uint16)  # 3
    chain = [dnn.Sum(2.0), dnn.Eltwise("relu")]
    pd = dnn.primitive_desc(desc, dnn.Attr(chain, **ATTR), engine)  # type: ignore[arg-type]
    exact = run(dnn.primitive_desc(replace(desc, dst=t(4, 16)), engine=engine)).numpy() + np.float32(6)
    found = decode(run(pd, 1, held).array.view(np.uint8).ravel(), dnn.bf16)
    np.testing.assert_array_equal(found, stochastic(np.maximum(exact, 0).ravel(), dnn.bf16, 0, 1))


def test_what_does_not_fit() -> None:
    x = t(3, 19)
    for mode, message in (
        ({"src": "stochastic"}, "rounding_mode has the result 'src', it must be dst"),
        ({"dst": "random"}, r"rounding_mode\['dst'\] must be one of environment, stochastic"),
        ("stochastic", "rounding_mode must map results to modes, such as {'dst': 'stochastic'}, not 'stochastic'"),
        ({"dst": None}, r"rounding_mode\['dst'\]"),
        ({1: "stochastic"}, "rounding_mode has the result 1"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=message):
            dnn.Attr(rounding_mode=mode)  # type: ignore[arg-type]
    with pytest.raises(dnn.InvalidArguments, match="rounding_mode is stochastic, deterministic='batch'"):
        dnn.Attr(deterministic="batch", **ATTR)  # type: ignore[arg-type]
    attr = dnn.Attr(**ATTR)  # type: ignore[arg-type]
    assert dnn.Attr(rounding_mode={"dst": "environment"}) == dnn.Attr() != attr == attr.changed()
    for dtype in (dnn.f32, dnn.s32):
        with pytest.raises(dnn.Unimplemented, match=f"dst is {dtype}, rounding_mode takes bf16, f16"):
            dnn.primitive_desc(dnn.Reorder(x, t(3, 19, dtype=dtype)), attr)
    with pytest.raises(dnn.Unimplemented, match="SoftmaxForward has no rounding_mode: use the primitive Stochastic"):
        dnn.primitive_desc(dnn.SoftmaxForward(INFERENCE, "accurate", x, x, 1), attr)
    pd = dnn.primitive_desc(dnn.Reorder(x, t(3, 19, dtype=dnn.bf16)), attr)
    with pytest.raises(dnn.InvalidArguments, match="rounding_seed"):
        dnn.Primitive(pd).execute(src=dnn.Memory(x), dst=dnn.Memory(pd.dst_desc))
