"""Cumulative sums: every layout and axis, both ways, with and without the element itself; threads; bad input."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.reduction import cumulated, cumulative_error
from tests.primitives.guarded import in_child
from tests.primitives.test_guard_pages import run_guarded
from tests.support.plans import emulate_plan

CASES = [
    ((5, 7), 1, "ab"), ((7, 19), -1, "ba"), ((3, 300), 1, "ab"), ((70, 3), 0, "ab"), ((4, 1), 1, "ab"),
    ((2, 21, 5, 9), 1, "abcd"), ((2, 21, 5, 9), 1, "acdb"), ((2, 16, 5, 9), 1, "aBcd8b"), ((2, 19, 3, 4), 2, "aBcd8b"),
    ((6,), 0, "a"),
]  # fmt: skip
FLAGS = [(False, False), (False, True), (True, False), (True, True)]


def integers(*dims: int) -> Any:
    return np.random.default_rng(0).integers(-8, 9, dims).astype(np.float32)


def described(desc: dnn.MemoryDesc, axis: int, flags: tuple[bool, bool], engine: dnn.Engine) -> dnn.PrimitiveDesc:
    pd = dnn.primitive_desc(dnn.CumulativeSum(desc, desc, axis, *flags), engine=engine)
    pd.plan.check()
    return pd


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize(("dims", "axis", "tag"), CASES, ids=str)
def test_layouts(isa: str, dims: tuple[int, ...], axis: int, tag: str, flags: tuple[bool, bool]) -> None:
    x, desc = integers(*dims), dnn.MemoryDesc(dims, dnn.f32, tag)
    pd = described(desc, axis, flags, dnn.Engine(isa=isa, threads=2))
    assert pd.implementation.removeprefix("reorder+") in (f"rows:{isa}", f"lanes:{isa}")
    src, dst = dnn.Memory.from_numpy(x, desc), dnn.Memory(desc)
    dnn.Primitive(pd).execute(src=src, dst=dst)
    assert np.array_equal(dst.numpy(), cumulated("sum", x, axis, *flags))
    assert dst.padding_is_zero()
    if "src" in pd.plan.in_place:
        dnn.Primitive(pd).execute(src=src, dst=src)
        assert np.array_equal(src.numpy(), dst.numpy())


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize(("dims", "axis"), [((2, 37), 1), ((2, 3, 21), 1)])
def test_emulated(dims: tuple[int, ...], axis: int) -> None:
    x, desc, flags = integers(*dims), dnn.MemoryDesc(dims, dnn.f32, "abc"[: len(dims)]), (True, True)
    pd, dst = described(desc, axis, flags, dnn.Engine(isa="avx512_core", threads=1)), dnn.Memory(desc)
    emulate_plan(pd.plan, {"src": dnn.Memory.from_numpy(x, desc), "dst": dst})
    assert np.array_equal(dst.numpy(), cumulated("sum", x, axis, *flags))


def test_functions_and_threads(isa: str) -> None:
    x = np.random.default_rng(1).uniform(-1, 1, (3, 130, 33)).astype(np.float32)
    for axis in (0, 1, 2):
        found = [dnn.ops.cumsum(x, axis, engine=dnn.Engine(isa=isa, threads=n)) for n in (1, 2, 3)]
        assert np.array_equal(found[0], found[1])
        assert np.array_equal(found[0], found[2])
        exact, bound = cumulated("sum", x.astype(np.float64), axis), cumulative_error(x, axis, False, False)
        assert (np.abs(found[0] - exact) <= bound).all()
        out = x.copy()
        assert dnn.ops.cumsum(out, axis, out=out, engine=dnn.Engine(isa=isa)) is out
        assert np.array_equal(out, found[0])
    with pytest.raises(dnn.InvalidArguments, match="overlaps"):
        dnn.ops.cumsum(x, exclusive=True, out=x)


def test_guard_pages(isa: str) -> None:
    def run(dims: tuple[int, ...], axis: int, flags: tuple[bool, bool]) -> None:
        x, desc = integers(*dims), dnn.MemoryDesc(dims, dnn.f32, "abcd"[: len(dims)])
        primitive = dnn.Primitive(described(desc, axis, flags, dnn.Engine(isa=isa)))
        for at_end in (True, False):
            run_guarded(primitive, {"src": x}, cumulated("sum", x, axis, *flags), at_end)

    for dims, axis in (((5, 7), 1), ((2, 101), 1), ((2, 5, 13), 1)):
        for flags in FLAGS:
            assert not in_child(lambda dims=dims, axis=axis, flags=flags: run(dims, axis, flags))  # type: ignore[misc]


def test_no_elements_and_bad_input() -> None:
    assert dnn.ops.cumsum(np.zeros((0, 5), np.float32)).shape == (0, 5)
    desc, other = dnn.MemoryDesc((2, 3), dnn.f32, "ab"), dnn.MemoryDesc((2, 4), dnn.f32, "ab")
    for arguments, says in (
        ((desc, other, 1), "dst has dims"),
        ((desc, desc, 2), "axis is 2, src has 2 dims: use -2 to 1"),
        ((desc, desc, 1, 1), "exclusive must be True or False"),
        ((None, desc, 1), "src must be a MemoryDesc"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=says):
            dnn.CumulativeSum(*arguments)
    with pytest.raises(dnn.Unimplemented, match="post-ops"):
        dnn.primitive_desc(dnn.CumulativeSum(desc, desc, 1), dnn.Attr([dnn.Sum()]))


def test_padding_of_an_axis_of_one_element_is_written() -> None:
    desc = dnn.MemoryDesc((1, 1, 5, 9), dnn.f32, "aBcd8b")
    for isa in ("avx2", "avx512_core"):
        engine = dnn.Engine(isa=isa, threads=1)  # type: ignore[arg-type]
        dnn.primitive_desc(dnn.CumulativeSum(desc, desc, 1, exclusive=True), engine=engine).plan.check()
