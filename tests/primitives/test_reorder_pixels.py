"""Images of 2 to 4 channels between planes and pixels of bytes, and channels that padding follows: the kernels of these
cases, their results, and where memory ends."""

from itertools import product

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.generators.move.convert_pixels import ConvertDeinterleaveSpec, ConvertInterleaveSpec
from asmdnn.generators.move.interleave import InterleaveSpec
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.generators.move.spread import SpreadSpec
from asmdnn.generators.move.transpose import TransposeSpec
from asmdnn.generators.move.triples import TriplesDeinterleaveSpec, TriplesInterleaveSpec
from tests.primitives.raw import bits_of, fill
from tests.primitives.reorder_case import TYPES, check_copy, prepared, random_bits, run
from tests.primitives.test_reorder_quantized import attr_of, check, some
from tests.support.plans import proved_desc

SIZES = ((1, 1), (3, 7), (5, 8), (11, 13), (40, 41))
SCALES = (("", 0), ("both", 2), ("dst", 12))


def images(
    channels: int, height: int, width: int, dtypes: tuple[str, str], tags: tuple[str, str]
) -> tuple[dnn.MemoryDesc, dnn.MemoryDesc]:
    src, dst = (
        dnn.MemoryDesc((2, channels, height, width), TYPES[t], tag) for t, tag in zip(dtypes, tags, strict=True)
    )
    return src, dst


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("other", "byte"), list(product(TYPES, ("s8", "u8"))))
@pytest.mark.parametrize("channels", [2, 3, 4])
@pytest.mark.one_in(5)
def test_every_type(other: str, byte: str, channels: int) -> None:
    for (height, width), (which, mask), total in zip(SIZES, (*SCALES, *SCALES), (0, 0, 0, 0, 0.5), strict=False):
        attr = attr_of(which, mask, (bool(mask), not mask), total)
        check(*images(channels, height, width, (other, byte), ("nchw", "nhwc")), attr, threads=2)
        check(*images(channels, height, width, (byte, other), ("nhwc", "nchw")), attr, threads=2)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("dtype", ["s8", "u8"])
@pytest.mark.parametrize("channels", [2, 3, 4])
def test_every_byte_stays(dtype: str, channels: int) -> None:
    for height, width in SIZES:
        for tags in (("nchw", "nhwc"), ("nhwc", "nchw")):
            check_copy(*images(channels, height, width, (dtype, dtype), tags), threads=2)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("channels", [2, 3, 4])
@pytest.mark.parametrize("at_end", [False, True], ids=["start", "end"])
def test_between_guard_pages(channels: int, at_end: bool) -> None:
    for size in range(1, 18):
        for dtypes, tags in ((("f32", "u8"), ("nchw", "nhwc")), (("u8", "f32"), ("nhwc", "nchw"))):
            src, dst = images(channels, 1, size, dtypes, tags)
            values = some(src.dtype, src.dims, 1)
            run(prepared(dnn.Reorder(src, dst)), values, at_end=at_end)


def kinds(src: dnn.MemoryDesc, dst: dnn.MemoryDesc, attr: dnn.Attr | None = None) -> set[type]:
    pd = dnn.primitive_desc(dnn.Reorder(src, dst), attr or dnn.Attr())
    return {type(spec) for spec in pd.plan.specs}


def test_kernels() -> None:
    to, back = (("nchw", "nhwc"), ("nhwc", "nchw"))
    for channels in (2, 3, 4):
        assert kinds(*images(channels, 9, 9, ("f32", "u8"), to)) == {ConvertInterleaveSpec}
        assert kinds(*images(channels, 9, 9, ("s8", "f32"), back)) == {ConvertDeinterleaveSpec}
        copied = TriplesInterleaveSpec if channels == 3 else InterleaveSpec
        assert kinds(*images(channels, 9, 9, ("s8", "s8"), to)) == {copied}
    assert kinds(*images(3, 4, 7, ("s8", "s8"), to)) == {ConvertInterleaveSpec}  # less than a register of each plane
    assert ConvertInterleaveSpec not in kinds(*images(5, 9, 9, ("f32", "u8"), to))
    assert ConvertInterleaveSpec not in kinds(*images(3, 9, 9, ("f32", "u8"), to), dnn.Attr(dnn.Sum(0.5)))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("channels", [1, 2, 3, 7, 15, 17, 30])
@pytest.mark.parametrize("tag", ["nChw8c", "nChw16c", "nChw4c", "ABcd4a8b", "ABcd8b16a"])
@pytest.mark.parametrize("dtype", ["f32", "u8", "bf16"])
def test_padding_after_the_channels(channels: int, tag: str, dtype: str) -> None:
    """The zeros are written with the channels, or by a kernel of their own; from plain images and from views."""
    dst = dnn.MemoryDesc((3, channels, 5, 7), TYPES[dtype], tag)
    large = dnn.MemoryDesc((3, channels, 6, 9), TYPES[dtype], "nchw")
    for src in (dnn.MemoryDesc(dst.dims, TYPES[dtype], "nchw"), large.submemory(dst.dims, (0, 0, 1, 1))):
        check_copy(src, dst)
        check_copy(src, dst, threads=2, at_end=True)


def test_one_kernel_for_channels_and_zeros() -> None:
    for channels, tag in ((3, "nChw16c"), (1, "nChw8c"), (15, "nChw16c")):
        dst = dnn.MemoryDesc((1, channels, 32, 32), dnn.f32, tag)
        assert kinds(dnn.MemoryDesc(dst.dims, dnn.f32, "nchw"), dst) == {TransposeSpec}
    rows = dnn.MemoryDesc((1, 3, 32, 32), dnn.f32, "nChw16c")
    assert RowsSpec in kinds(dnn.MemoryDesc(rows.dims, dnn.f32, "nhwc"), rows)


SPREAD = [  # channels that become blocks of 2, 4, 8, 16 bytes
    ("u8", 3, 4), ("s8", 5, 8), ("u8", 7, 8), ("s8", 9, 16), ("u8", 15, 16), ("bf16", 3, 4), ("f16", 5, 8),
    ("f32", 3, 4),
]  # fmt: skip


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("dtype", "channels", "block"), SPREAD, ids=str)
def test_pixels_with_zeros_after_each(dtype: str, channels: int, block: int) -> None:
    """All bytes of dst are written, and none beside them; images of every size around what registers hold."""
    for width in (*range(1, 20), 33, 70):
        dims = (2, channels, 1, width)
        src, dst = (dnn.MemoryDesc(dims, TYPES[dtype], tag) for tag in ("nhwc", f"aBcd{block}b"))
        assert kinds(src, dst) == {SpreadSpec}
        primitive = prepared(dnn.Reorder(src, dst))
        memories = {"src": dnn.Memory(src), "dst": dnn.Memory(dst)}
        fill(memories["src"], random_bits(src))
        memories["dst"].array.view(np.uint8)[:] = 0xA5
        primitive.execute(**memories)
        pixels = bits_of(memories["dst"]).reshape(2, width, block)
        assert np.array_equal(pixels[..., :channels], bits_of(memories["src"]).reshape(2, width, channels))
        assert not pixels[..., channels:].any()
        for at_end in (False, True):
            check_copy(src, dst, threads=2, at_end=at_end)


def test_pixels_that_are_not_spread() -> None:
    """Those that do not touch; those in whose blocks of dst other channels lie; blocks that no quarter holds."""
    dims, part = (2, 3, 5, 7), (2, 3, 5, 6)
    whole = dnn.MemoryDesc(dims, dnn.u8, "nhwc")
    assert kinds(whole.submemory(part, (0, 0, 0, 1)), dnn.MemoryDesc(part, dnn.u8, "nChw4c")) == {SpreadSpec}
    apart = dnn.MemoryDesc(dims, dnn.u8, strides=(210, 1, 42, 6))
    assert kinds(apart, dnn.MemoryDesc(dims, dnn.u8, "nChw4c")) == {RowsSpec}
    others = dnn.MemoryDesc((2, 4, 5, 7), dnn.u8, "nhwc").submemory(dims, (0, 0, 0, 0))
    assert kinds(whole, others) == {RowsSpec}
    assert kinds(whole, dnn.MemoryDesc(dims, dnn.u8, "aBcd32b")) == {RowsSpec}


PLAIN = [("u8", "u8"), ("s8", "s8"), ("bf16", "bf16"), ("f16", "f16")]
ROUNDED = [("f32", "bf16"), ("u8", "bf16"), ("s8", "bf16")]


@pytest.mark.parametrize("dtypes", [*PLAIN, *ROUNDED], ids="-".join)
def test_kernels_of_three_planes(dtypes: tuple[str, str]) -> None:
    """One call, and one kernel, for an image of a size that no register divides."""
    for tags, kind in (
        (("nchw", "nhwc"), TriplesInterleaveSpec),
        (("nhwc", "nchw"), TriplesDeinterleaveSpec),
    ):
        for width in (32, 33, 70):
            assert kinds(*images(3, 1, width, dtypes, tags)) == {kind}
    assert TriplesInterleaveSpec not in kinds(*images(3, 9, 9, dtypes, ("nchw", "nhwc")), dnn.Attr([dnn.Sum(0.5)]))
    assert TriplesInterleaveSpec not in kinds(*images(3, 9, 9, dtypes, ("nchw", "nhwc")), dnn.Attr(scales={"src": 0}))
    assert not {TriplesInterleaveSpec, TriplesDeinterleaveSpec} & kinds(*images(4, 9, 9, dtypes, ("nhwc", "nchw")))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("dtypes", PLAIN, ids="-".join)
def test_every_bit_of_three_planes_stays(dtypes: tuple[str, str]) -> None:
    """Next to pages that nobody may touch, on either side."""
    for size in range(1, 71):
        for tags in (("nchw", "nhwc"), ("nhwc", "nchw")):
            check_copy(*images(3, 1, size, dtypes, tags), threads=1 + size % 2, at_end=size % 3 == 0)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("dtypes", ROUNDED, ids="-".join)
def test_three_planes_become_bf16(dtypes: tuple[str, str]) -> None:
    """As by rows: bits that a reorder without a change of order gives, of NaN and denormals, too."""
    for size in (15, 16, 17, 31, 33, 48, 70):
        for tags in (("nchw", "nhwc"), ("nhwc", "nchw")):
            src, dst = images(3, 1, size, dtypes, tags)
            memory = dnn.Memory(src)
            fill(memory, random_bits(src))
            rows = dnn.reorder(memory, dnn.MemoryDesc(src.dims, dst.dtype, tags[0]))
            found = dnn.reorder(memory, dst)
            assert np.array_equal(bits_of(found), bits_of(dnn.reorder(rows, dst)))
            run(prepared(dnn.Reorder(src, dst)), some(src.dtype, src.dims, 1), at_end=size % 2 == 0)


WEIGHTS = [
    ("bf16", (64, 96), "BA32b2a"), ("bf16", (37, 77), "BA32b2a"), ("s8", (40, 70), "BA64b4a"), ("u8", (4, 257), "ba"),
    ("s8", (41, 65), "BA64b4a"), ("u8", (3, 3), "BA64b4a"), ("s8", (287, 129), "BA32b4a"), ("bf16", (1, 5), "BA32b2a"),
    ("f32", (2, 1100), "ba"), ("f32", (4, 40), "ba"), ("bf16", (2, 70), "ba"), ("bf16", (90, 33), "BA32b2a"),
]  # fmt: skip


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("dtype", "dims", "tag"), WEIGHTS, ids=str)
def test_interleaved_rows(dtype: str, dims: tuple[int, int], tag: str) -> None:
    """Pairs and fours of rows, in whole vectors and rests, next to pages that nobody may touch."""
    src, dst = (dnn.MemoryDesc(dims, TYPES[dtype], format_tag) for format_tag in ("ab", tag))
    assert InterleaveSpec in kinds(src, dst)
    dnn.primitive_desc(dnn.Reorder(src, dst)).plan.check()
    check_copy(src, dst, threads=2)
    check_copy(src, dst, at_end=True)
    wide = dnn.MemoryDesc((dims[0], dims[1] + 5), TYPES[dtype], "ab").submemory(dims, (0, 3))
    check_copy(wide, dst)


@pytest.mark.parametrize("level", ["avx2", "avx512_core"])
def test_a_call_interleaves_many_rows(level: str) -> None:
    """Of weights in pairs 16 KiB, not 128 bytes."""
    src, dst = (dnn.MemoryDesc((512, 512), dnn.bf16, tag) for tag in ("ab", "BA32b2a"))
    pd = proved_desc(dnn.Reorder(src, dst), engine=dnn.Engine(isa=level, threads=1, machine="zen3"))
    assert {type(spec) for spec in pd.plan.specs} == {InterleaveSpec}
    assert sum(len(phase.records) for phase in pd.plan.phases) == dst.size_bytes // (16 << 10)


@pytest.mark.parametrize(("dims", "records"), [((1166, 31), 5), ((100, 100), 4), ((513, 77), 5)], ids=str)
def test_padding_is_written_with_rows_that_are_interleaved(dims: tuple[int, int], records: int) -> None:
    """A few records: parts of panels, odd rows, and no zeros of their own."""
    dtype, tag = (dnn.s8, "BA32b4a") if dims[0] % 2 else (dnn.bf16, "BA32b2a")
    desc = dnn.Reorder(dnn.MemoryDesc(dims, dtype, "ab"), dnn.MemoryDesc(dims, dtype, tag))
    pd = proved_desc(desc, engine=dnn.Engine(isa="avx512_core", threads=1, machine="zen3"))
    assert {type(spec) for spec in pd.plan.specs} == {InterleaveSpec}
    assert sum(len(phase.records) for phase in pd.plan.phases) == records
