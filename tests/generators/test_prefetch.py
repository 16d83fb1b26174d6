"""Prefetches, which no result shows: every tap asks for its share of the weights ahead, a line each once, and where
sources are large for what the same tap of the next tile reads; long
element-wise functions that stream ask for the lines of each tensor that they will read."""

import re
from dataclasses import replace

from asmdnn.corpus.families import kernel_specs
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.dot.depthwise import DepthwiseRowsSpec
from asmdnn.generators.dot.grouped_shape import GroupedRows
from asmdnn.generators.dot.matmul import MatmulTileSpec
from asmdnn.generators.functions.elementwise import ElementwiseSpec
from asmdnn.generators.functions.elementwise_code import AHEAD_BYTES, INTERLEAVED
from asmdnn.generators.pooling.maxima_gradient import DIFF, PLACES, MaximaGradientSpec
from asmdnn.isa.element import LANE_BYTES
from asmdnn.isa.elements import size_of
from asmdnn.isa.vectors import lanes_of
from tests.generators.codes import by_name, code_of

LINE_BYTES = 64
PREFETCH = re.compile(r"prefetcht1 .*\[(\w+)(?:\+(\d+))?\]")
SOURCE = re.compile(r"prefetcht0 .*\[\w+\+(\d+)\]")
CONVOLUTIONS = tuple(spec for spec in kernel_specs() if isinstance(spec, ConvTileSpec))
PREFETCHED = tuple(spec for spec in CONVOLUTIONS if spec.prefetch_lines and spec.groups)


@by_name(PREFETCHED)
def test_lines_ahead(spec: ConvTileSpec) -> None:
    listing = code_of(spec).listing
    assert listing is not None
    text = [line.text for line in listing]
    found = [match for match in map(PREFETCH.fullmatch, text) if match]
    (register,) = {match[1] for match in found}
    lines = [LINE_BYTES * i for i in range(spec.prefetch_lines)]
    assert sorted(int(match[2] or 0) for match in found) == sorted(lines * len(spec.groups))
    assert text.count(f"add {register}, {LINE_BYTES * spec.prefetch_lines}") == len(spec.groups)


SOURCE_AHEAD = tuple(spec for spec in CONVOLUTIONS if spec.src_prefetch_bytes)


@by_name(SOURCE_AHEAD)
def test_lines_of_the_next_source(spec: ConvTileSpec) -> None:
    """Of the tile after this one, a line each once."""
    listing = code_of(spec).listing
    assert listing is not None
    found = [match for line in listing if (match := SOURCE.fullmatch(line.text))]
    end = spec.src_prefetch_bytes + spec.src_pixel_bytes[-1] + 1
    assert sorted(int(match[1]) for match in found) == [*range(spec.src_prefetch_bytes, end, LINE_BYTES)]


def test_lines_of_a_strided_source() -> None:
    """Of the pixels that are read, and of none between them."""
    example = max(SOURCE_AHEAD, key=lambda spec: len(spec.src_pixel_bytes))
    apart = tuple(4 * LINE_BYTES * i for i in range(len(example.src_pixel_bytes)))
    listing = code_of(replace(example, src_pixel_bytes=apart, src_prefetch_bytes=4096)).listing
    assert listing is not None
    found = [match for line in listing if (match := SOURCE.fullmatch(line.text))]
    assert sorted(int(match[1]) for match in found) == [4096 + at for at in apart]


DST_AHEAD = tuple(spec for spec in CONVOLUTIONS if spec.prefetches_dst)
LINE_OF_DST = re.compile(r"prefetcht0 .*\[\w+(?:\+(\d+))?\]")


@by_name(DST_AHEAD)
def test_lines_of_dst(spec: ConvTileSpec) -> None:
    """Those that the tile will write, each once, before its first multiply."""
    listing = code_of(spec).listing
    assert listing is not None
    found = [int(match[1] or 0) for line in listing if (match := LINE_OF_DST.fullmatch(line.text))]
    written = {at // LINE_BYTES for r in spec.footprint().writes for at in range(r.begin_bytes, r.end_bytes)}
    assert len(found) == len(set(found)) and {at // LINE_BYTES for at in found} <= written
    assert len(found) >= len(spec.src_pixel_bytes)
    first = next(i for i, line in enumerate(listing) if "fmadd" in line.text or "vmul" in line.text)
    assert all(i < first for i, line in enumerate(listing) if LINE_OF_DST.fullmatch(line.text))


ROWS_AHEAD = tuple(spec for spec in kernel_specs() if isinstance(spec, GroupedRows) and spec.rows_ahead)
INTO_L2 = re.compile(r"prefetcht1 .*\[\w+(?:\+(\d+))?\]")


@by_name(ROWS_AHEAD)
def test_rows_below(spec: GroupedRows) -> None:
    """A line of every column that a segment reads, of each row that the windows below have beside this one's, and the
    lines of dst that it writes; vectors of a line ask for it together."""
    listing = code_of(spec).listing
    assert listing is not None
    text = [line.text for line in listing]
    together = list(spec.rounds()) if isinstance(spec, DepthwiseRowsSpec) else [((None,), 1)]
    at_once = sum(len(bands) for bands, _ in together)
    lines_of_src = len(range(0, spec.abreast * spec.src_vector_bytes, LINE_BYTES))
    lines_of_dst = len(range(0, spec.abreast * lanes_of(spec.isa) * spec.dst_type.size_bytes, LINE_BYTES))
    columns = sum(len(spec.uses(segment)) for segment in spec.segments)
    pixels = sum(segment.pixels for segment in spec.segments)
    found = sum(bool(INTO_L2.fullmatch(line)) for line in text)
    assert found == at_once * (spec.rows_ahead * columns * lines_of_src + pixels * lines_of_dst)


MAXIMA_AHEAD = tuple(spec for spec in kernel_specs() if isinstance(spec, MaximaGradientSpec) and spec.ahead)


@by_name(MAXIMA_AHEAD)
def test_windows_below(spec: MaximaGradientSpec) -> None:
    """The last window of every cell, in the row below, with its places; and the lines that are written, but for those
    past the caches.  A cell in a loop is written once."""
    listing = code_of(spec).listing
    assert listing is not None
    sizes = [size_of(spec.kinds[argument]) for argument in (DIFF, PLACES)]
    sizes += [size_of(spec.kind)] * (len(spec.pixels) * (not spec.streaming))
    lines = sum(len(range(0, size * spec.elements, LINE_BYTES)) for size in sizes)
    found = sum(bool(INTO_L2.fullmatch(line.text)) for line in listing)
    assert found and found % lines == 0 and found // lines <= 2 * spec.cells


APART = tuple(spec for spec in kernel_specs() if isinstance(spec, MatmulTileSpec) and spec.tile.prefetch_step_bytes)


@by_name(APART)
def test_lines_ahead_of_rows_apart(spec: MatmulTileSpec) -> None:
    listing = code_of(spec).listing
    assert listing is not None
    text = [line.text for line in listing]
    found = [match for match in map(PREFETCH.fullmatch, text) if match]
    (register,) = {match[1] for match in found}
    lines = [spec.tile.prefetch_step_bytes * i for i in range(spec.tile.prefetch_lines)]
    assert sorted(int(match[2] or 0) for match in found) == sorted(2 * lines)  # in the loop, and of the steps after it
    assert text.count(f"add {register}, {spec.tile.prefetch_step_bytes * spec.tile.prefetch_lines}") == 1


STREAMED_TILES = tuple(spec for spec in CONVOLUTIONS if spec.streams)


@by_name(STREAMED_TILES)
def test_streamed_tiles(spec: ConvTileSpec) -> None:
    """Every whole vector of memory has one store past the caches, beside one for a dst that begins within a vector; of
    bf16 it is two vectors of sums."""
    listing = code_of(spec).listing
    assert listing is not None
    whole = spec.vectors if spec.whole_vectors else spec.channels // lanes_of(spec.isa)
    whole = whole * spec.dst_type.size_bytes // LANE_BYTES
    streamed = [line.text for line in listing if line.text.startswith("vmovntps")]
    assert len(streamed) == len(spec.src_pixel_bytes) * whole


STREAMED_PRODUCTS = tuple(s for s in kernel_specs() if isinstance(s, MatmulTileSpec) and s.tile.streams)


@by_name(STREAMED_PRODUCTS)
def test_streamed_products(spec: MatmulTileSpec) -> None:
    listing, tile = code_of(spec).listing, spec.tile
    assert listing is not None
    streamed = [line.text for line in listing if line.text.startswith("vmovntps")]
    assert len(streamed) == tile.rows * (tile.columns // lanes_of(tile.isa))


STREAMING = tuple(spec for spec in kernel_specs() if isinstance(spec, ElementwiseSpec) and spec.streaming)
READ_AHEAD = re.compile(r"prefetcht0 .*\[(\w+)\+\w+\+(\d+)\]")


@by_name(STREAMING)
def test_streaming_functions(spec: ElementwiseSpec) -> None:
    listing = code_of(spec).listing
    assert listing is not None
    found = [match for line in listing if (match := READ_AHEAD.fullmatch(line.text))]
    assert len(found) == sum("prefetch" in line.text for line in listing)
    tensors = len(spec.frame) - 1 if spec.prefetches else 0  # all but dst
    lines = [AHEAD_BYTES + offset for offset in range(0, 4 * INTERLEAVED * lanes_of(spec.isa), LINE_BYTES)]
    assert len({match[1] for match in found}) == tensors
    assert sorted(int(match[2]) for match in found) == sorted(2 * tensors * lines)  # streaming, and in place


def test_long_functions_alone() -> None:
    assert {spec.prefetches for spec in STREAMING} == {False, True}
