"""Which kernels of reorders and shuffles use ymm registers on a CPU with AVX-512, and why: docs/reorder.md and
docs/shuffle.md have the lists."""

from dataclasses import replace
from itertools import product

import pytest

import asmdnn as dnn
from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.functions.quotient import QuotientSpec
from asmdnn.generators.move.compensation import CompensationSpec
from asmdnn.generators.move.convert import ConvertSpec
from asmdnn.generators.move.convert_pixels import ConvertDeinterleaveSpec, ConvertInterleaveSpec
from asmdnn.generators.move.convert_transpose import ConvertTransposeSpec
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.generators.move.shuffle import ShuffleSpec
from asmdnn.generators.move.shuffle_elements import ElementsSpec
from asmdnn.generators.move.spread import SpreadSpec
from asmdnn.generators.move.transpose import TransposeSpec
from asmdnn.generators.move.transpose_tiles import MOVED_BYTES
from asmdnn.generators.move.triples import TriplesBlock
from asmdnn.primitives.reorder.block_kernels import WIDE_COLUMNS

WIDE = dnn.Engine(isa="avx512_core", threads=1, machine="skylake_sp")
LINE_BYTES = 64
TYPES = (dnn.f32, dnn.bf16, dnn.f16, dnn.s32, dnn.s8, dnn.u8)
TAGS = ("nchw", "nhwc", "nChw8c", "nChw16c")
SIZES = ((2, 3, 5, 7), (1, 16, 9, 9), (1, 37, 8, 8), (2, 64, 56, 56), (16, 64, 96, 96))
NO_FEWER = "as many instructions with zmm registers"
HALF_LINES = "streams lines that are no whole zmm registers"
UNITS = "units of 32 bytes, which are half a zmm register"
SHORT = f"rows of fewer than {WIDE_COLUMNS} elements"
STRIDED = "elements that lie apart"
PIXELS = "pixels of 2 to 16 bytes: a byte shuffle within 16 bytes"
ONCE = "runs once: scales are divided, weights summed when they are packed"


def reason(spec: KernelSpec) -> str:
    """Why a kernel stays with ymm registers."""
    if isinstance(spec, ConvertInterleaveSpec | ConvertDeinterleaveSpec | SpreadSpec | TriplesBlock):
        return PIXELS
    if isinstance(spec, QuotientSpec | CompensationSpec):
        return ONCE
    if isinstance(spec, ConvertSpec):
        sizes = spec.conversion.sizes
        if (spec.src_steps[1], spec.dst_steps[1]) != sizes:
            return STRIDED
        if spec.columns < WIDE_COLUMNS:
            return SHORT
        assert spec.streaming and spec.dst_steps[0] % LINE_BYTES
        return HALF_LINES
    assert isinstance(spec, RowsSpec | TransposeSpec | ConvertTransposeSpec)
    if isinstance(spec, TransposeSpec) and spec.unit_bytes == MOVED_BYTES:
        return UNITS
    if not isinstance(spec, ConvertTransposeSpec) and spec.streaming:
        width = spec.row_bytes if isinstance(spec, RowsSpec) else spec.dst_row_bytes
        assert width % LINE_BYTES
        return HALF_LINES
    assert replace(spec, isa="avx512_core").operations >= spec.operations
    return NO_FEWER


def narrow(src: dnn.MemoryDesc, dst: dnn.MemoryDesc, attr: dnn.Attr, **more: int) -> list[KernelSpec]:
    plan = dnn.primitive_desc(dnn.Reorder(src, dst, **more), attr, WIDE).plan
    return [spec for spec in plan.specs if spec.name.endswith("__avx2")]


def test_every_narrow_kernel_has_its_reason() -> None:
    """Pairs of types and formats, plain and with attributes; and each of the reasons is met."""
    met = set()
    for number, (sdt, ddt, src, dst) in enumerate(product(TYPES, TYPES, TAGS, TAGS)):
        dims = SIZES[number % len(SIZES)]
        attr = (dnn.Attr(), dnn.Attr(scales={"src": 2}), dnn.Attr([dnn.Sum(0.5)]))[number // 7 % 3]
        found = narrow(dnn.MemoryDesc(dims, sdt, src), dnn.MemoryDesc(dims, ddt, dst), attr)
        met |= {reason(spec) for spec in found}
    weights = dnn.MemoryDesc((32, 16, 3, 3), dnn.f32, "oihw"), dnn.MemoryDesc((32, 16, 3, 3), dnn.s8, "OIhw4i16o4i")
    met |= {reason(spec) for spec in narrow(*weights, dnn.Attr(scales={"dst": 1}), compensation=1)}
    met |= {
        reason(spec)
        for spec in narrow(*(dnn.MemoryDesc((64, 8, 128, 128), dnn.f32, t) for t in ("nchw", "nChw8c")), dnn.Attr())
    }
    apart = dnn.MemoryDesc((40, 40), dnn.f32, strides=(400, 2)), dnn.MemoryDesc((40, 40), dnn.f32, strides=(400, 3))
    met |= {reason(spec) for spec in narrow(*apart, dnn.Attr())}
    assert met == {NO_FEWER, HALF_LINES, UNITS, SHORT, STRIDED, PIXELS, ONCE}


@pytest.mark.parametrize(("sdt", "ddt"), [(s, d) for s in TYPES for d in TYPES])
def test_transposes_of_whole_vectors_are_wide(sdt: dnn.DataType, ddt: dnn.DataType) -> None:
    """With a sum, and without one."""
    dims = (1, 64, 56, 56)
    for attr, (src, dst) in product((dnn.Attr(), dnn.Attr([dnn.Sum(1.0)])), (("nchw", "nhwc"), ("nhwc", "nchw"))):
        assert not narrow(dnn.MemoryDesc(dims, sdt, src), dnn.MemoryDesc(dims, ddt, dst), attr)


def reason_of_shuffle(spec: KernelSpec) -> str:
    """Why a kernel of a shuffle stays with ymm registers."""
    if isinstance(spec, ElementsSpec):
        return STRIDED
    if isinstance(spec, RowsSpec):
        return reason(spec)
    assert isinstance(spec, ShuffleSpec)
    wide = replace(spec, isa="avx512_core")
    assert wide.operations / wide.pixels_together >= spec.operations / spec.pixels_together
    return NO_FEWER


def test_every_narrow_kernel_of_a_shuffle_has_its_reason() -> None:
    """ShuffleNet's channels in all formats and types; chwn, whose elements lie apart; padding; rows of 3."""
    met, wide = set(), 0
    for dtype, tag, channels in product(TYPES, (*TAGS, "chwn"), (12, 40, 240)):
        for groups in (2, 3, 4) if channels == 12 else (2, channels // 5, channels // 2):
            desc = dnn.MemoryDesc((2, channels, *((1, 3) if channels == 12 else (14, 14))), dtype, tag)
            if channels % groups == 0:
                plan = dnn.primitive_desc(dnn.Shuffle(desc, desc, 1, groups), engine=WIDE).plan
                met |= {reason_of_shuffle(spec) for spec in plan.specs if spec.name.endswith("__avx2")}
                wide += any(spec.name.endswith("__avx512_core") for spec in plan.specs)
    assert met == {NO_FEWER, STRIDED}
    assert wide > 100


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("dtype", TYPES)
def test_shuffles_of_240_channels_are_wide(tag: str, dtype: dnn.DataType) -> None:
    desc = dnn.MemoryDesc((1, 240, 28, 28), dtype, tag)
    plan = dnn.primitive_desc(dnn.Shuffle(desc, desc, 1, 80), engine=WIDE).plan
    assert all(spec.name.endswith("__avx512_core") for spec in plan.specs)


BLOCKED = [("nhwc", "nChw8c"), ("nChw8c", "nhwc"), ("nChw8c", "nChw16c"), ("nChw16c", "nChw8c")]


@pytest.mark.parametrize(("src", "dst"), [("f32", "bf16"), ("s8", "f32"), ("bf16", "s8"), ("s8", "u8")])
@pytest.mark.parametrize("tags", BLOCKED, ids=str)
def test_rows_of_eight_are_joined(src: str, dst: str, tags: tuple[str, str]) -> None:
    """Two rows of 8 channels make a vector of 16, whichever side they touch on; and a call has all pixels."""
    types = {dtype.name: dtype for dtype in TYPES}
    descs = [dnn.MemoryDesc((2, 32, 8, 8), types[kind], tag) for kind, tag in zip((src, dst), tags, strict=True)]
    engine = dnn.Engine(isa="avx512_core_bf16", threads=1, machine="zen4")
    plan = dnn.primitive_desc(dnn.Reorder(*descs), engine=engine).plan
    plan.check()
    (spec,) = plan.specs
    assert isinstance(spec, ConvertSpec)
    assert spec.joins
    assert sum(len(phase.records) for phase in plan.phases) == 8


def test_long_rows_that_are_cut_stay_in_one_piece() -> None:
    """Though just two pieces of 8 KiB fit a record: they touch, and others would lie far apart."""
    descs = [dnn.MemoryDesc((16, 64, 56, 56), dtype, "nchw") for dtype in (dnn.f32, dnn.bf16)]
    plan = dnn.primitive_desc(dnn.Reorder(*descs), engine=WIDE).plan
    (spec,) = plan.specs
    assert isinstance(spec, ConvertSpec)
    assert (spec.src_steps[0], spec.dst_steps[0]) == (4 * spec.columns, 2 * spec.columns)
