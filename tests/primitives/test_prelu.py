"""PReLU as a primitive: every layout and broadcast, in place, post-ops; bad input."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.support.plans import emulate_plan

INFERENCE = dnn.PropKind.forward_inference
DIMS = (2, 19, 5, 7)


def numbers(*dims: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-2, 2, dims).astype(np.float32)


@pytest.mark.parametrize("tag", ["abcd", "acdb", "aBcd8b", "aBcd16b"])
@pytest.mark.parametrize("broadcast", [(1, 1, 1, 1), (1, 19, 1, 1), (2, 19, 5, 7), (1, 1, 1, 7)], ids=str)
def test_layouts(isa: str, tag: str, broadcast: tuple[int, ...]) -> None:
    x, weights = numbers(*DIMS), numbers(*broadcast, seed=1)
    desc = dnn.MemoryDesc(DIMS, dnn.f32, tag)
    free = dnn.MemoryDesc(broadcast, dnn.f32, "any")
    pd = dnn.primitive_desc(dnn.PReLUForward(INFERENCE, desc, free, desc), engine=dnn.Engine(isa=isa, threads=2))
    pd.plan.check()
    assert pd.implementation == f"prelu:{isa}"
    src, dst = dnn.Memory.from_numpy(x, desc), dnn.Memory(desc)
    factors = dnn.Memory.from_numpy(weights, pd.plan.tensors["weights"])
    dnn.Primitive(pd).execute(src=src, weights=factors, dst=dst)
    wanted = np.where(x > 0, x, weights * x)
    assert np.array_equal(dst.numpy(), wanted)
    assert dst.padding_is_zero()
    dnn.Primitive(pd).execute(src=src, weights=factors, dst=src)
    assert np.array_equal(src.numpy(), wanted)


@pytest.mark.emulated("avx512_core")
def test_emulated() -> None:
    x, weights = numbers(2, 3, 21), numbers(1, 3, 1, seed=1)
    arrays = {"src": x, "weights": weights, "dst": np.zeros_like(x)}
    memories = {name: dnn.Memory.from_array(array) for name, array in arrays.items()}
    desc = dnn.PReLUForward(INFERENCE, *(memory.desc for memory in memories.values()))
    emulate_plan(dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx512_core", threads=1)).plan, memories)
    assert np.array_equal(memories["dst"].numpy(), np.where(x > 0, x, weights * x))


def test_arrays(isa: str) -> None:
    x, weights, engine = numbers(*DIMS), numbers(19, seed=1), dnn.Engine(isa=isa)
    wanted = np.where(x > 0, x, weights[:, None, None] * x)
    assert np.array_equal(dnn.ops.prelu(x, weights, engine=engine), wanted)
    one = dnn.ops.prelu(x, np.float32([0.25]).reshape(1, 1, 1, 1), post_ops=[dnn.Eltwise("abs")], engine=engine)
    assert np.array_equal(one, np.abs(np.where(x > 0, x, np.float32(0.25) * x)))
    assert np.isnan(dnn.ops.prelu(np.float32([np.nan]), np.float32([0]), engine=engine)).all()


def test_bad_input() -> None:
    desc, other = dnn.MemoryDesc((2, 3), dnn.f32, "ab"), dnn.MemoryDesc((2, 4), dnn.f32, "ab")
    for tensors, says in (
        ((desc, other, desc), "weights has dims"),
        ((desc, desc, other), "dst has dims"),
        ((desc, None, desc), "weights must be a MemoryDesc"),
        ((desc, dnn.MemoryDesc((3,), dnn.f32, "a"), desc), "weights has dims"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=says):
            dnn.PReLUForward(INFERENCE, *tensors)  # type: ignore[arg-type]
