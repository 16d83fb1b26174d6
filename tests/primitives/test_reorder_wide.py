"""Reorders planned for wide vectors: whole plans on an emulated CPU, and which width the planner takes."""

from dataclasses import replace

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.generators.move.convert import ConvertSpec
from asmdnn.generators.move.convert_transpose import ConvertTransposeSpec
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.planning.move_tuning import MoveTuning
from asmdnn.planning.tuning import DEFAULT
from tests.primitives.reorder_numbers import decoded, encoded, telling
from tests.primitives.tensors import bits, holding, read
from tests.support.plans import emulate_plan

WIDE, NARROW = "__avx512_core", "__avx2"


def planned(
    src: str, dst: str, dims: tuple[int, ...], isa: str = "avx512_core", **more: MoveTuning
) -> dnn.PrimitiveDesc:
    tuning = replace(DEFAULT, **more)
    desc = dnn.Reorder(dnn.MemoryDesc(dims, dnn.f32, src), dnn.MemoryDesc(dims, dnn.f32, dst))
    return dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=1, tuning=tuning))


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize(
    ("src", "dst", "dims"),
    [
        ("nchw", "nhwc", (2, 17, 5, 7)), ("nhwc", "nchw", (1, 16, 9, 9)), ("nchw", "nChw16c", (1, 35, 7, 7)),
        ("nChw16c", "nchw", (1, 35, 7, 7)), ("nchw", "nChw8c", (1, 19, 3, 11)), ("oihw", "OIhw16i16o", (17, 33, 3, 1)),
    ],
)  # fmt: skip
def test_results(src: str, dst: str, dims: tuple[int, ...]) -> None:
    pd = planned(src, dst, dims)
    assert pd.implementation == "transposes:avx512_core"
    assert any(spec.name.endswith(WIDE) for spec in pd.plan.specs)
    pd.plan.check()
    values = np.arange(1, 1 + np.prod(dims), dtype=np.uint32).view(np.float32).reshape(dims)
    memories = {"src": holding(pd.plan.tensors["src"], values), "dst": holding(pd.plan.tensors["dst"], None)}
    emulate_plan(pd.plan, memories)
    assert np.array_equal(bits(read(memories["dst"])), bits(values))


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize("channels", [3, 5, 8, 12, 19, 64])
@pytest.mark.parametrize("dst", ["nhwc", "nChw8c", "nChw16c"])
def test_bytes(channels: int, dst: str) -> None:
    dims = (1, channels, 3, 7)
    desc = dnn.Reorder(dnn.MemoryDesc(dims, dnn.f32, "nchw"), dnn.MemoryDesc(dims, dnn.s8, dst))
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx512_core", threads=1))
    pd.plan.check()
    values = np.random.default_rng(channels).uniform(-140, 140, dims).astype(np.float32)
    memories = {"src": dnn.Memory(desc.src, values), "dst": dnn.Memory(desc.dst)}
    memories["dst"].array[...] = 99
    emulate_plan(pd.plan, memories)
    assert memories["dst"].padding_is_zero()
    assert np.array_equal(memories["dst"].numpy(), np.clip(np.rint(values), -128, 127).astype(np.int8))


def widths(pd: dnn.PrimitiveDesc) -> set[str]:
    return {spec.name[spec.name.rindex("__") :] for spec in pd.plan.specs}


def test_higher_levels_take_the_kernels_of_avx512_core() -> None:
    assert widths(planned("nchw", "nhwc", (1, 64, 56, 56), "avx512_core_amx")) == {WIDE}
    assert widths(planned("nchw", "nhwc", (1, 64, 56, 56), "avx2_vnni")) == {NARROW}


def test_narrow_vectors_where_wide_ones_save_nothing() -> None:
    """Rows of 12 bytes; and a CPU class on which a wide instruction costs as much as two narrow ones."""
    assert widths(planned("nchw", "nchw", (4, 1, 1, 3))) == {NARROW}
    slow = MoveTuning(wide_cost=2.0)
    assert widths(planned("nchw", "nhwc", (1, 64, 56, 56), moves=slow)) == {NARROW}


def test_streams_lines_of_half_a_vector() -> None:
    """8 channels of f32 are 32 bytes: kernels for AVX2 write them past the caches, wide ones could not."""
    pd = planned("nchw", "nChw8c", (64, 8, 128, 128))
    assert widths(pd) == {NARROW}
    assert all(spec.streaming for spec in pd.plan.specs)


@pytest.mark.parametrize(
    ("isa", "ddt"),
    [
        pytest.param(isa, ddt, marks=pytest.mark.emulated(isa))
        for isa in ("avx2", "avx512_core", "avx512_core_bf16")
        for ddt in ((dnn.bf16,) if isa == "avx512_core_bf16" else (dnn.bf16, dnn.f16, dnn.u8, dnn.s8))
    ],
    ids=str,
)
def test_streams_narrow_types(isa: str, ddt: dnn.DataType) -> None:
    """Packed stores are whole or half vectors; a dst that is not aligned to them is written through the caches."""
    dims, tuning = (2, 4096), replace(DEFAULT, moves=MoveTuning(streaming_bytes=1))
    values = np.resize(telling(dnn.f32), dims).view(np.float32)
    desc = dnn.Reorder(dnn.MemoryDesc(dims, dnn.f32, "ab"), dnn.MemoryDesc(dims, ddt, "ab"))
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=1, tuning=tuning))
    assert all(isinstance(spec, ConvertSpec) and spec.streaming for spec in pd.plan.specs)
    assert widths(pd) == {f"__{isa}"}
    pd.plan.check()
    for offset in (0, 3):
        room = np.zeros(np.prod(dims) + 64, ddt.numpy)
        start = -room.ctypes.data // room.itemsize % (64 // room.itemsize) + offset
        memories = {
            "src": dnn.Memory(desc.src, values),
            "dst": dnn.Memory(desc.dst, room[start : start + np.prod(dims)].reshape(dims)),
        }
        emulate_plan(pd.plan, memories)
        wanted = encoded(values, ddt)
        found = memories["dst"].array.view(wanted.dtype).reshape(dims)
        both_nan = np.isnan(decoded(found, ddt)) & np.isnan(decoded(wanted, ddt))
        assert np.array_equal(found[~both_nan], wanted[~both_nan])


def test_copies_of_long_rows_are_wide() -> None:
    kernels = planned("nchw", "nchw", (1, 4, 50, 50)).plan.specs
    assert all(isinstance(spec, RowsSpec) and spec.name.endswith(WIDE) for spec in kernels)


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize(
    ("sdt", "ddt", "attr"),
    [
        (dnn.u8, dnn.f32, dnn.Attr()), (dnn.s8, dnn.s32, dnn.Attr(scales={"src": 2})), (dnn.bf16, dnn.f32, dnn.Attr()),
        (dnn.f16, dnn.f32, dnn.Attr()), (dnn.f32, dnn.f16, dnn.Attr()), (dnn.s32, dnn.f32, dnn.Attr([dnn.Sum(0.5)])),
        (dnn.f32, dnn.s8, dnn.Attr([dnn.Sum(2.0)], zero_points={"dst": 0})),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("src", "dst"), [("nchw", "nhwc"), ("nhwc", "nchw")])
def test_conversions(sdt: dnn.DataType, ddt: dnn.DataType, attr: dnn.Attr, src: str, dst: str) -> None:
    dims = (2, 19, 5, 7)
    desc = dnn.Reorder(dnn.MemoryDesc(dims, sdt, src), dnn.MemoryDesc(dims, ddt, dst))
    pd = dnn.primitive_desc(desc, attr, dnn.Engine(isa="avx512_core", threads=1))
    assert any(isinstance(spec, ConvertTransposeSpec) and spec.name.endswith(WIDE) for spec in pd.plan.specs)
    pd.plan.check()
    random = np.random.default_rng(5)
    values, before = (random.integers(0, 60, dims).astype(np.float32) for _ in range(2))
    memories = {name: dnn.Memory(desc) for name, desc in pd.plan.tensors.items()}
    memories["src"], memories["dst"] = dnn.reorder(dnn.Memory.from_array(values), desc.src), dnn.Memory(desc.dst)
    dnn.reorder(dnn.Memory.from_array(before), memories["dst"])
    wanted = values + sum(op.scale for op in attr.post_ops if isinstance(op, dnn.Sum)) * before
    if attr.scales:
        memories["src_scales"].array[...] = np.arange(1, 20)
        wanted *= np.arange(1, 20, dtype=np.float32).reshape(1, 19, 1, 1)
    if attr.zero_points:
        memories["dst_zero_points"].array[...] = -30
        wanted -= 30
    emulate_plan(pd.plan, memories)
    found = dnn.reorder(memories["dst"], dnn.MemoryDesc(dims, dnn.f32, "nchw")).numpy()
    assert np.array_equal(found, np.clip(np.rint(wanted), -128, 127) if ddt == dnn.s8 else wanted)


@pytest.mark.parametrize(
    ("dims", "by_lines"), [((1, 64, 64, 64), True), ((1, 64, 56, 56), False), ((1, 512, 32, 32), False)], ids=str
)
def test_rows_that_meet_in_l1_are_read_by_lines_unless_lines_of_dst_meet_too(
    dims: tuple[int, ...], by_lines: bool
) -> None:
    names = [spec.name for spec in planned("nchw", "nhwc", dims, "avx2").plan.specs]
    assert all(("_lines_" in name) == by_lines for name in names)


@pytest.mark.parametrize("tag", ["OIhw8i8o", "OIhw16i16o", "hwio"])
def test_short_rows_of_weights_are_taken_together(tag: str) -> None:
    """Four of nine columns, in every format; longer rows alone."""
    for kernel, grouped in ((3, True), (5, False)):
        names = [spec.name for spec in planned("oihw", tag, (32, 32, kernel, kernel), "avx2").plan.specs]
        assert all(("_g9by" in name) == grouped for name in names)


@pytest.mark.parametrize(
    ("ddt", "dims", "columns"),
    [
        (dnn.bf16, (512, 196), 16),  # 196 half lines 1 KiB apart are in 4 sets of L1, which hold 32
        (dnn.bf16, (1024, 1024), 16),  # lines of src meet, too, but are read once
        (dnn.bf16, (64, 3136), 256),  # lines of dst follow one another
        (dnn.s8, (1024, 196), 196),  # a quarter of a line at a time
    ],
)
def test_half_lines_that_meet_in_l1_are_written_a_few_at_a_time(
    ddt: dnn.DataType, dims: tuple[int, int], columns: int
) -> None:
    desc = dnn.Reorder(dnn.MemoryDesc(dims, dnn.f32, "ab"), dnn.MemoryDesc(dims, ddt, "ba"))
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx512_core", threads=1, machine="skylake_sp"))
    assert max(spec.columns for spec in pd.plan.specs) == columns  # type: ignore[attr-defined]
    pd.plan.check()


@pytest.mark.parametrize(
    ("ddt", "dims", "rows"),
    [
        (dnn.s8, (512, 196), 32),  # 32 bytes of a line at a time
        (dnn.s8, (24, 196), 24),  # all of the line
        (dnn.bf16, (64, 196), 16),  # the same 32 bytes
        (dnn.s8, (4096, 100), 256),  # a page apart: of 16 columns
        (dnn.bf16, (512, 196), 256),  # half lines that meet in L1: the same
    ],
)
def test_conversions_on_zen_5_write_more_of_a_line(ddt: dnn.DataType, dims: tuple[int, int], rows: int) -> None:
    desc = dnn.Reorder(dnn.MemoryDesc(dims, dnn.f32, "ab"), dnn.MemoryDesc(dims, ddt, "ba"))
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx512_core", threads=1, machine="zen5"))
    assert min(spec.rows for spec in pd.plan.specs) == rows  # type: ignore[attr-defined]
    pd.plan.check()


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize(("sdt", "ddt"), [(dnn.f32, dnn.u8), (dnn.f32, dnn.bf16), (dnn.u8, dnn.f32)])
@pytest.mark.parametrize("rows", [24, 32, 70])
def test_values_of_conversions_on_zen_5(sdt: dnn.DataType, ddt: dnn.DataType, rows: int) -> None:
    desc = dnn.Reorder(dnn.MemoryDesc((rows, 45), sdt, "ab"), dnn.MemoryDesc((rows, 45), ddt, "ba"))
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx512_core", threads=1, machine="zen5"))
    wanted = {dnn.u8: min(rows, 32), dnn.bf16: 16, dnn.f32: rows if rows < 64 else 16}  # short rows of f32 as a whole
    assert max(spec.rows for spec in pd.plan.specs) == wanted[ddt]  # type: ignore[attr-defined]
    pd.plan.check()
    values = np.random.default_rng(rows).integers(0, 256, (rows, 45)).astype(np.float32)  # which bf16 holds, too
    memories = {"src": dnn.reorder(dnn.Memory.from_array(values), desc.src), "dst": dnn.Memory(desc.dst)}
    emulate_plan(pd.plan, memories)
    assert np.array_equal(dnn.reorder(memories["dst"], dnn.MemoryDesc((rows, 45), dnn.f32, "ab")).numpy(), values)


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize("cost", [1.0, 2.0])
def test_registers_with_parts_of_several_rows(cost: float) -> None:
    """Of bf16 a block of 16 channels is half a zmm register; f32 fill one, which does not cost more."""
    engine = dnn.Engine(isa="avx512_core", threads=1, tuning=replace(DEFAULT, moves=MoveTuning(wide_parts_cost=cost)))
    dims = (1, 32, 9, 7)
    for kind, level in ((dnn.bf16, NARROW if cost == 2.0 else WIDE), (dnn.f32, WIDE)):
        desc = dnn.Reorder(dnn.MemoryDesc(dims, kind, "nchw"), dnn.MemoryDesc(dims, kind, "nChw16c"))
        pd = dnn.primitive_desc(desc, engine=engine)
        assert widths(pd) == {level}
        pd.plan.check()
        values = np.arange(np.prod(dims)).reshape(dims).astype(kind.numpy)
        memories = {"src": dnn.Memory.from_numpy(values, desc.src), "dst": dnn.Memory(desc.dst)}
        emulate_plan(pd.plan, memories)
        np.testing.assert_array_equal(memories["dst"].numpy(), values)


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize(("kind", "rows"), [(dnn.s8, 32), (dnn.bf16, 16)])
def test_bytes_of_a_row_that_a_conversion_writes_at_a_time(kind: dnn.DataType, rows: int) -> None:
    tuning = replace(DEFAULT, moves=MoveTuning(near_convert_bytes=32))
    dims = (1, 64, 5, 6)
    desc = dnn.Reorder(dnn.MemoryDesc(dims, dnn.f32, "nchw"), dnn.MemoryDesc(dims, kind, "nhwc"))
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx512_core", threads=1, tuning=tuning))
    assert {spec.rows for spec in pd.plan.specs} == {rows}
    pd.plan.check()
    values = np.arange(-60, np.prod(dims) - 60).reshape(dims) % 100 - 50.0
    memories = {"src": dnn.Memory.from_numpy(values.astype(np.float32), desc.src), "dst": dnn.Memory(desc.dst)}
    emulate_plan(pd.plan, memories)
    found = memories["dst"].numpy()
    wanted = values.astype(np.float32).view(np.uint32) >> 16 if kind == dnn.bf16 else values
    np.testing.assert_array_equal(found, wanted)
