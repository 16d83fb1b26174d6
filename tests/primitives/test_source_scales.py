"""Scales of primitives with several sources: binary operations and concatenation, by a number or along dims."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.support.plans import emulate_plan

DIMS, TAGS = (2, 9, 5), ("abc", "acb", "aBc8b")
ADD: Any = lambda x, y: x + y  # noqa: E731 - beside numpy's names
ALGS = {"add": ADD, "mul": np.multiply, "div": np.divide, "max": np.maximum, "ge": lambda x, y: (x >= y) * 1.0}
MASKS = ({"src0": 0}, {"src1": 0}, {"src0": 0, "src1": 0}, {"src0": 2, "src1": 5})


def numbers(*dims: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(0.5, 2, dims).astype(np.float32)


def scales_for(masks: dict[str, int], dims: tuple[int, ...]) -> dict[str, Any]:
    """By tensor, as arrays that broadcast to it."""
    shapes = {name: [n if mask >> d & 1 else 1 for d, n in enumerate(dims)] for name, mask in masks.items()}
    return {name: numbers(*shape, seed=7 + k) for k, (name, shape) in enumerate(shapes.items())}


def memories(plan: Any, arrays: dict[str, Any], scales: dict[str, Any]) -> dict[str, dnn.Memory]:
    found = {name: dnn.Memory.from_numpy(x, plan.tensors[name]) for name, x in arrays.items()}
    found |= {f"{name}_scales": dnn.Memory.from_array(x.ravel()) for name, x in scales.items()}
    return found | {"dst": dnn.Memory(plan.tensors["dst"])}


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("masks", MASKS, ids=str)
def test_binary(isa: str, masks: dict[str, int], tag: str) -> None:
    """Products with scales are rounded once, the operation too: equal bit by bit."""
    arrays, scales = {"src0": numbers(*DIMS), "src1": numbers(*DIMS, seed=1)}, scales_for(masks, DIMS)
    x, y = (arrays[name] * scales.get(name, np.float32(1)) for name in arrays)
    desc = dnn.MemoryDesc(DIMS, dnn.f32, tag)
    for alg, function in ALGS.items():
        operation = dnn.BinaryForward(alg, desc, dnn.MemoryDesc(DIMS, dnn.f32, "abc"), desc)  # type: ignore[arg-type]
        pd = dnn.primitive_desc(operation, dnn.Attr(scales=masks), engine=dnn.Engine(isa=isa, threads=2))
        assert pd.implementation.removeprefix("reorder+") == f"binary:{isa}"
        pd.plan.check()
        found = memories(pd.plan, arrays, scales)
        dnn.Primitive(pd).execute(**found)
        assert np.array_equal(found["dst"].numpy(), function(x, y).astype(np.float32)), alg
        assert found["dst"].padding_is_zero()


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize("types", [(dnn.f32, dnn.f32), (dnn.s8, dnn.u8)], ids=str)
def test_binary_emulated(types: tuple[dnn.DataType, dnn.DataType]) -> None:
    """Post-ops come after scales, and the type of dst in the end."""
    arrays = {name: np.full((3, 19), 3 + k, types[0].numpy) for k, name in enumerate(("src0", "src1"))}
    scales = {"src0": np.float32([0.5]), "src1": np.float32([8.0])}
    src, dst = dnn.MemoryDesc((3, 19), types[0], "ab"), dnn.MemoryDesc((3, 19), types[1], "ab")
    attr = dnn.Attr(dnn.Eltwise("linear", 2.0, 1.0), scales={"src0": 0, "src1": 0})
    operation = dnn.BinaryForward("add", src, src, dst)
    plan = dnn.primitive_desc(operation, attr, engine=dnn.Engine(isa="avx512_core", threads=1)).plan
    plan.check()
    found = memories(plan, arrays, scales)
    emulate_plan(plan, found)
    assert (found["dst"].numpy() == 2 * (1.5 + 32) + 1).all()


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("masks", [{"src1": 0}, {"src0": 2, "src2": 0}], ids=str)
def test_concat(isa: str, masks: dict[str, int], tag: str) -> None:
    arrays = {f"src{k}": numbers(*DIMS, seed=k) for k in range(3)}
    scales = scales_for(masks, DIMS)
    wanted = np.concatenate([x * scales.get(name, np.float32(1)) for name, x in arrays.items()], 2)
    srcs = [dnn.MemoryDesc(DIMS, dnn.f32, each) for each in TAGS]
    desc = dnn.Concat(srcs, dnn.MemoryDesc(wanted.shape, dnn.f32, tag), 2)  # type: ignore[arg-type]
    pd = dnn.primitive_desc(desc, dnn.Attr(scales=masks), engine=dnn.Engine(isa=isa, threads=2))
    assert pd.implementation.removeprefix("reorder+") == f"concat:{isa}"
    pd.plan.check()
    found = memories(pd.plan, arrays, scales)
    dnn.Primitive(pd).execute(**found)
    assert np.array_equal(found["dst"].numpy(), wanted)
    assert found["dst"].padding_is_zero()


def test_concat_rounds_to_the_type_of_dst(isa: str) -> None:
    src, dst = dnn.MemoryDesc((4, 7), dnn.s8, "ab"), dnn.MemoryDesc((8, 7), dnn.u8, "ab")
    arrays = {"src0": np.full((4, 7), 100, np.int8), "src1": np.full((4, 7), -3, np.int8)}
    attr = dnn.Attr(scales={"src0": 0})
    pd = dnn.primitive_desc(dnn.Concat((src, src), dst, 0), attr, engine=dnn.Engine(isa=isa, threads=1))
    found = memories(pd.plan, arrays, {"src0": np.float32([2.515])})
    dnn.Primitive(pd).execute(**found)
    assert np.array_equal(found["dst"].numpy(), np.repeat(np.uint8([252, 0]), 4)[:, None] * np.ones((1, 7), np.uint8))


def test_refusals() -> None:
    desc = dnn.MemoryDesc((2, 3), dnn.f32, "ab")
    add, select = dnn.BinaryForward("add", desc, desc, desc), dnn.BinaryForward("select", desc, desc, desc, desc)
    concat = dnn.Concat((desc,), desc, 0)
    product = dnn.MatMul(desc, dnn.MemoryDesc((3, 3), dnn.f32, "ab"), desc)
    for request, scales, reason in (
        (add, {"src": 0}, "there is no src that can have scales: use src0, src1"),
        (add, {"src1": 4}, "the mask 4, which is for more than 2 dims"),
        (select, {"src0": 0}, "not for select"),
        (concat, {"src1": 0}, "there is no src1 that can have scales: use src0"),
        (product, {"src0": 0}, "there is no src0 that can have scales"),
    ):
        with pytest.raises(dnn.Unimplemented, match=reason):
            dnn.primitive_desc(request, dnn.Attr(scales=scales))  # type: ignore[arg-type]
    with pytest.raises(dnn.Unimplemented, match="zero points are not implemented"):
        dnn.primitive_desc(concat, dnn.Attr(zero_points={"src0": 0}))
    with pytest.raises(dnn.InvalidArguments, match="src0, src1"):
        dnn.Attr(scales={"src0x": 0})
