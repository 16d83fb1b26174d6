"""s8s8 compensation of every layout, mask and type, exact against numpy; its plans' proofs; and what is refused."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import cycle, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asmdnn as dnn
from asmdnn.errors import PlanError
from asmdnn.generators.move.compensation import CompensationSpec
from asmdnn.planning.phase import Int64
from asmdnn.planning.plan import Plan
from tests.primitives.guarded import guarded_memory, in_child
from tests.primitives.raw import Bits, elements_of, fill
from tests.primitives.reorder_case import NO_ATTR, TYPES, Numbers, prepared
from tests.primitives.reorder_numbers import encoded
from tests.primitives.test_reorder_formats import DIMS, TAGS, views
from tests.primitives.test_reorder_quantized import attr_of, numbers_for
from tests.support.plans import emulate_plan

PLACES = [(ndims, tag) for ndims, tags in TAGS.items() for tag in tags]
WEIGHTS = ("oihw", "hwio", "OIhw4i16o4i", "OIhw8i16o2i", "OIhw16i16o", "OIhw16o16i", "Oihw16o", "Ohwi8o", "dcba")


def expected(dst: npt.NDArray[np.int8], mask: int) -> npt.NDArray[np.int32]:
    """-128 times the sum over all dims that are not in the mask, modulo 2^32."""
    axes = tuple(dim for dim in range(dst.ndim) if not mask >> dim & 1)
    sums = -128 * dst.astype(np.int64).sum(axes)
    result: npt.NDArray[np.int32] = np.asarray(sums & 0xFFFFFFFF, np.uint32).view(np.int32)
    return result


def memories_for(
    plan: Plan, values: Bits, numbers: Numbers, old: Bits | None = None, at_end: bool | None = None
) -> Any:
    """Filled; the compensation with junk.  at_end: before or after an unmapped page."""
    memories = {}
    for name, tensor in plan.tensors.items():
        memories[name] = dnn.Memory(tensor) if at_end is None else guarded_memory(tensor, at_end)[0]
    fill(memories["src"], values)
    fill(memories["dst"], old)
    fill(memories["compensation"], None)
    for name, array in numbers.items():
        memories[name].array[:] = np.asarray(array).ravel()
    return memories


def judge(memories: dict[str, dnn.Memory], mask: int) -> npt.NDArray[np.int32]:
    """The compensation is that of what dst holds now."""
    dst = elements_of(memories["dst"]).view(np.int8)  # its padding is zero, its gaps are untouched
    found, wanted = elements_of(memories["compensation"]).view(np.int32), expected(dst, mask)
    assert memories["compensation"].desc.dims == (wanted.shape or (1,))
    assert np.array_equal(found.reshape(wanted.shape), wanted)
    return found


def check(
    src: dnn.MemoryDesc,
    dst: dnn.MemoryDesc,
    mask: int,
    attr: dnn.Attr = NO_ATTR,
    threads: int = 1,
    at_end: bool | None = None,
) -> npt.NDArray[np.int32]:
    random = np.random.default_rng(6)
    values = encoded(random.uniform(-200, 200, src.dims), src.dtype)
    old = encoded(random.uniform(-150, 150, dst.dims), dst.dtype)
    primitive = prepared(dnn.Reorder(src, dst, mask), attr, threads)
    memories = memories_for(primitive.pd.plan, values, numbers_for(attr, src.dims), old, at_end)
    primitive.execute(**memories)
    found = judge(memories, mask).copy()
    memories.clear()
    return found


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("ndims", "tag"), PLACES)
@pytest.mark.one_in(3)
def test_every_format(ndims: int, tag: str) -> None:
    """Masks of no dim, of all, of the first ones and of every second; source type and dims are others in turn."""
    place = TAGS[ndims].index(tag)
    dims, sdt = DIMS[ndims][place % len(DIMS[ndims])], list(TYPES.values())[place % len(TYPES)]
    src, dst = dnn.MemoryDesc(dims, sdt, TAGS[ndims][0]), dnn.MemoryDesc(dims, dnn.s8, tag)
    for mask in {0, 1, 2, 3, (1 << ndims) - 1, 0x555 & (1 << ndims) - 1}:
        if not mask >> ndims:
            check(src, dst, mask)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("tag", WEIGHTS)
@pytest.mark.parametrize(
    ("dims", "masks"),
    [((67, 37, 1, 2), range(16)), ((64, 32, 3, 3), (1, 2, 3)), ((16, 259, 1, 1), (0, 1, 2))],
)
def test_every_mask_of_weights(tag: str, dims: tuple[int, ...], masks: Iterable[int]) -> None:
    for mask in masks:
        check(dnn.MemoryDesc(dims, dnn.f32, "oihw"), dnn.MemoryDesc(dims, dnn.s8, tag), mask)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("sdt", TYPES.values(), ids=str)
@pytest.mark.parametrize("which", ["", "src", "dst", "both"])
@pytest.mark.one_in(3)
def test_of_what_is_stored(sdt: dnn.DataType, which: str) -> None:
    """After scales, zero points, sum and saturation."""
    dims = (17, 20, 3, 3)
    tags = cycle(WEIGHTS)
    for mask, points, total in product((1, 3), ((False, False), (True, True)), (0.0, -0.7)):
        dst = dnn.MemoryDesc(dims, dnn.s8, next(tags))
        check(dnn.MemoryDesc(dims, sdt, "oihw"), dst, mask, attr_of(which, 1, points, total))


@st.composite
def problems(draw: st.DrawFn) -> tuple[dnn.MemoryDesc, dnn.MemoryDesc, int]:
    """Views of tensors of any blocking, with offsets and gaps on both sides."""
    dims = tuple(draw(st.lists(st.sampled_from((1, 2, 3, 8, 9, 17, 33)), min_size=1, max_size=4)))
    sdt = draw(st.sampled_from(list(TYPES.values())))
    return draw(views(dims, sdt)), draw(views(dims, dnn.s8)), draw(st.integers(0, (1 << len(dims)) - 1))


@pytest.mark.isa("avx2")
@settings(max_examples=40, deadline=None, derandomize=True)
@given(problems())
def test_views_of_any_blocking(problem: tuple[dnn.MemoryDesc, dnn.MemoryDesc, int]) -> None:
    check(*problem)


@pytest.mark.slow
@pytest.mark.isa("avx2")
@settings(max_examples=1000, deadline=None, derandomize=True)
@given(problems())
def test_many_views_of_any_blocking(problem: tuple[dnn.MemoryDesc, dnn.MemoryDesc, int]) -> None:
    check(*problem)


@pytest.mark.emulated("avx2")
@pytest.mark.parametrize(("tag", "mask"), list(zip(WEIGHTS, cycle((1, 2, 0, 3)), strict=False)))
def test_plans_under_emulation(tag: str, mask: int) -> None:
    dims = (17, 5, 2, 3)
    src, dst = dnn.MemoryDesc(dims, dnn.u8, "oihw"), dnn.MemoryDesc(dims, dnn.s8, tag)
    plan = dnn.primitive_desc(dnn.Reorder(src, dst, mask), engine=dnn.Engine(isa="avx2", threads=1)).plan
    memories = memories_for(plan, np.random.default_rng(8).integers(0, 256, dims, np.uint8), {})
    emulate_plan(plan, memories)
    judge(memories, mask)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("at_end", [True, False])
def test_nothing_outside_is_touched(at_end: bool) -> None:
    def all_of_them() -> None:
        for i, tag in enumerate((*WEIGHTS, "Acdb16a", "OIhw8i24o")):
            dims = DIMS[4][i % 5]
            check(dnn.MemoryDesc(dims, dnn.f32, "oihw"), dnn.MemoryDesc(dims, dnn.s8, tag), 1 + i % 3, at_end=at_end)

    assert not in_child(all_of_them)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("tag", WEIGHTS)
def test_threads_agree_bit_by_bit(tag: str) -> None:
    dims = (128, 67, 3, 3)
    src, dst = dnn.MemoryDesc(dims, dnn.f32, "oihw"), dnn.MemoryDesc(dims, dnn.s8, tag)
    assert np.array_equal(check(src, dst, 1, threads=1), check(src, dst, 1, threads=2))


@pytest.mark.isa("avx2")
def test_of_a_dst_that_is_streamed_past_the_caches() -> None:
    """Another thread may sum what was written."""
    desc = dnn.MemoryDesc((2624, 3232), dnn.s8, "ab")  # 8.5 MB
    check(desc, desc, 2, threads=2)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("value", [-128, 127, -1])
def test_extreme_sums(value: int) -> None:
    """One that just fits, and one that wraps: 131072 times -128 * -128 is 2^31."""
    for count in (131071, 131073):
        for dims, tag in (((count,), "a"), ((count, 8), "ab"), ((8, count), "ab"), ((2, count // 2), "AB16a4b")):
            desc, mask = dnn.MemoryDesc(dims, dnn.s8, tag), dims.index(8) + 1 if 8 in dims else 0
            primitive = prepared(dnn.Reorder(desc, desc, mask))
            memories = memories_for(primitive.pd.plan, np.full(dims, value, np.int8).view(np.uint8), {})
            primitive.execute(**memories)
            judge(memories, mask)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("dims", [(0, 3, 4), (2, 0, 5), (0, 0, 0)], ids=str)
@pytest.mark.parametrize("which", ["", "dst"])
def test_nothing_to_sum(dims: tuple[int, ...], which: str) -> None:
    """Zeros wherever there are outputs."""
    for mask, tag in product(range(8), ("abc", "aBc8b")):
        src, dst = dnn.MemoryDesc(dims, dnn.f32, "abc"), dnn.MemoryDesc(dims, dnn.s8, tag)
        assert not check(src, dst, mask, attr_of(which, 1, (False, True), 0.5)).any()


def test_a_single_number_without_a_mask() -> None:
    desc = dnn.MemoryDesc((2, 3), dnn.s8, "ab")
    pd = dnn.primitive_desc(dnn.Reorder(desc, desc, compensation=0))
    assert pd.plan.tensors["compensation"] == dnn.MemoryDesc((1,), dnn.s32, "a")
    assert pd.plan.outputs == ("dst", "compensation")
    assert "with compensation over mask 0" in str(pd.desc)


def test_vnni_weights_take_a_lane_an_output() -> None:
    """Wanted for speed: groups of four bytes are dwords at once."""
    dims = (64, 64, 3, 3)
    desc = dnn.Reorder(dnn.MemoryDesc(dims, dnn.f32, "oihw"), dnn.MemoryDesc(dims, dnn.s8, "OIhw4i16o4i"), 1)
    specs = dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx2", threads=1)).plan.specs
    (spec,) = (spec for spec in specs if isinstance(spec, CompensationSpec))
    assert (spec.outputs, spec.dense, spec.src_step) == (16, 4, 4)


def some_plan() -> Plan:
    dims = (70, 16, 3, 3)
    desc = dnn.Reorder(dnn.MemoryDesc(dims, dnn.s8, "oihw"), dnn.MemoryDesc(dims, dnn.s8, "hwio"), 1)
    return dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx2", threads=1)).plan


def with_records(plan: Plan, records: Int64) -> Plan:
    last = plan.phases[-1]
    changed = replace(last, records=records, cycles=np.resize(last.cycles, len(records)))
    return replace(plan, phases=(*plan.phases[:-1], changed))


def test_broken_plans_are_found() -> None:
    plan = some_plan()
    plan.check()
    records, taps = plan.phases[-1].records, plan.constants["taps"]
    assert len(records) == 2
    with pytest.raises(PlanError, match="of compensation is never written"):
        with_records(plan, records[1:].copy()).check()
    with pytest.raises(PlanError, match="of compensation is written 2 times"):
        with_records(plan, records[[0, 1, 1]]).check()
    for column, by, name in ((1, 7, "dst"), (2, 4, "compensation"), (3, 4, "tap list")):
        astray = records.copy()
        astray[1, column] += by
        with pytest.raises(PlanError, match=name):
            with_records(plan, astray).check()
    for at in (0, 1, -1):
        words = taps.copy()
        words[at] += 1 << 40
        with pytest.raises(PlanError, match=r"dst|tap list"):
            replace(plan, constants={"taps": words}).check()
    with pytest.raises(PlanError, match="dst is never written"):
        replace(plan, phases=plan.phases[1:]).check()


@pytest.mark.parametrize(
    ("ddt", "mask", "reason"),
    [
        (dnn.u8, 1, "compensation needs an s8 dst, this one is u8"),
        (dnn.f32, 0, "compensation needs an s8 dst, this one is f32"),
        (dnn.s8, 8, "compensation has the mask 8, which is for more than 3 dims"),
        (dnn.s8, 1 << 70, "which is for more than 3 dims"),
        (dnn.s8, -1, "compensation must be a mask of dims, an integer >= 0, or None, not -1"),
        (dnn.s8, True, "compensation must be a mask of dims"),
        (dnn.s8, 1.0, "compensation must be a mask of dims"),
        (dnn.s8, "1", "compensation must be a mask of dims"),
    ],
)
def test_masks_that_are_none(ddt: dnn.DataType, mask: Any, reason: str) -> None:
    dims = (3, 17, 5)
    with pytest.raises(dnn.InvalidArguments, match=reason):
        dnn.Reorder(dnn.MemoryDesc(dims, dnn.f32, "abc"), dnn.MemoryDesc(dims, ddt, "abc"), compensation=mask)


def test_arguments_that_are_wrong() -> None:
    desc = dnn.MemoryDesc((2, 17), dnn.s8, "ab")
    primitive = prepared(dnn.Reorder(desc, desc, compensation=2))

    def of(size: int, dtype: dnn.DataType = dnn.s32) -> dnn.Memory:
        return dnn.Memory(dnn.MemoryDesc((size,), dtype, "a"))

    right = {"src": dnn.Memory(desc), "dst": dnn.Memory(desc), "compensation": of(17)}
    primitive.execute(**right)
    with pytest.raises(dnn.InvalidArguments, match="arguments must be src, dst, compensation, not src, dst"):
        primitive.execute(src=right["src"], dst=right["dst"])
    for wrong in (of(16), of(34), of(17, dnn.f32)):
        with pytest.raises(dnn.InvalidArguments, match=r"compensation is .*, this primitive takes s32 17"):
            primitive.execute(**{**right, "compensation": wrong})
    plain = prepared(dnn.Reorder(desc, desc))
    with pytest.raises(dnn.InvalidArguments, match="arguments must be src, dst, not src, dst, compensation"):
        plain.execute(**right)
    frozen = np.zeros(17, np.int32)
    frozen.flags.writeable = False
    with pytest.raises(dnn.InvalidArguments, match="compensation is read-only"):
        primitive.execute(**{**right, "compensation": dnn.Memory(right["compensation"].desc, frozen)})
    shared = np.zeros(17 * 4, np.uint8)
    overlapping = {
        "dst": dnn.Memory(desc, shared[:34]),
        "compensation": dnn.Memory(right["compensation"].desc, shared.view(np.int32)),
    }
    with pytest.raises(dnn.InvalidArguments, match=r"dst overlaps compensation|compensation overlaps dst"):
        primitive.execute(**{**right, **overlapping})
