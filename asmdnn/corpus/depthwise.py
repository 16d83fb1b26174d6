"""The specs of rows by types: lanes that take several kernel rows, in pairs of output rows; and rows that are widened.

What they have in common with rows of f32 is in grouped.py, of which these are cases whose code differs by types.
"""

from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from typing import Any

from asmdnn.corpus import few_inputs, grouped
from asmdnn.generators.dot.depthwise import DepthwiseRowsSpec
from asmdnn.generators.dot.grouped_shape import GroupedRows
from asmdnn.generators.dot.matmul_shape import RESULTS
from asmdnn.generators.dot.row_cuts import Band, Segment
from asmdnn.generators.functions.postops import BinaryOp, Operand, ReluOp, SumOp
from asmdnn.isa.dot import DOTS, S8S8, Types
from asmdnn.isa.levels import AVX2, AVX512_CORE
from asmdnn.isa.rows_in_lanes import rows_in_lanes
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.records import replace
from asmdnn.types import DataType, bf16, f16, f32, s8, s32, u8

EDGES = (Band(1, 2, 1), Band(2, 0, 3), Band(1, 0, 2), Band(1, 0, 0))
IN_LANES = tuple((types, isa) for types, isa in DOTS if rows_in_lanes(types, isa.name))
ENDS = tuple(of for of in IN_LANES if of[0] != S8S8)  # s8 differ in how they come into lanes
WIDENED = ((bf16, bf16, bf16), (f16, f16, u8), (f32, bf16, f16), (u8, f32, u8), (s8, f32, f32))  # src, weights, dst
SIZES = {  # the distances, by what they are counted in
    "src_type": ("src_pixel_bytes", "src_row_bytes", "src_tap_bytes", "src_plane_bytes"),
    "dst_type": ("dst_pixel_bytes", "dst_row_bytes"),
    "weights_type": ("weights_row_bytes", "weights_input_bytes", "weights_vector_bytes", "weights_plane_bytes",
                     "weights_position_bytes"),
}  # fmt: skip


def retyped(spec: GroupedRows, isa: str, src: DataType, weights: DataType, dst: DataType) -> GroupedRows:
    """The same rows of other types, whose elements lie in the same order."""
    types: dict[str, Any] = {"src_type": src, "weights_type": weights, "dst_type": dst}
    found = replace(spec, isa=isa, **types)
    for of, names in SIZES.items():
        size = types[of].size_bytes
        found = replace(found, **{name: getattr(spec, name) // f32.size_bytes * size for name in names})
    return found


def by_lanes(spec: GroupedRows, isa: str, types: Types, dst: DataType, **more: Any) -> DepthwiseRowsSpec:
    """The same by lanes that take several rows; a segment has no more pixels than registers hold."""
    spec = retyped(spec, isa, types.src, types.weights, dst)
    common = {field.name: getattr(spec, field.name) for field in fields(GroupedRows)}
    found = DepthwiseRowsSpec(**{**common, "bias": spec.bias and types.sums == f32, "abreast": 1}, **more)
    most = found.most_pixels(spec.channels, spec.width)
    return replace(found, segments=tuple(replace(x, pixels=min(x.pixels, most)) for x in spec.segments))


def kernels(types: Types, isa: str) -> Iterator[DepthwiseRowsSpec]:
    """Kernels as wide and as high as registers allow, strides, dilations; pairs of rows, and rows alone."""
    level, plain = f32_level(isa), partial(by_lanes, isa=isa, types=types)
    for kernel in (1, 2, 3, 5, 7, 9):
        bands = (Band(3, 0, min(kernel, 5)),)
        spec = grouped.rows(level, grouped.whole(9, kernel), kernel=kernel, bands=bands, bias=True)
        yield plain(spec, dst=types.sums)
        yield plain(replace(spec, src_row_bytes=2 * spec.src_tap_bytes), dst=types.sums)
        yield plain(replace(spec, rows_ahead=1), dst=types.src)
    for stride, dilation in ((2, 1), (1, 2)):
        segment = grouped.whole(3, 3, stride, dilation)
        yield plain(grouped.rows(level, segment, stride=stride, dilation=dilation), dst=types.src)


def edges(types: Types, isa: str) -> Iterator[DepthwiseRowsSpec]:
    """Rows and columns in the padding, of bands that meet; vectors side by side; planes."""
    level, left, right = f32_level(isa), Segment(3, 2, 5), Segment(2, 0, 3)
    for shifted in (False, True) if types.sums == s32 else (False,):
        plain = partial(by_lanes, isa=isa, types=types, has_zero_point=shifted)
        spec = grouped.rows(level, left, grouped.whole(2, times=3), right, padding=2, bands=EDGES, bias=True)
        yield plain(spec, dst=types.sums)
        yield plain(replace(spec, bands=(Band(2, 1, 0), *EDGES[1:])), dst=types.sums)
        last = grouped.channels_last(level, 3, lanes_of(isa))
        yield plain(grouped.rows(level, grouped.whole(3), **last, bands=EDGES[1:3]), dst=types.src)
        planes = {"planes": 2, "src_plane_bytes": 1600 * lanes_of(isa), "weights_plane_bytes": 48 * lanes_of(isa)}
        yield plain(grouped.rows(level, grouped.whole(3), **planes, bands=EDGES[:2]), dst=types.sums)


def ends(types: Types, isa: str) -> Iterator[DepthwiseRowsSpec]:
    """Tails of channels, every type of dst and of what post-ops read, which move with pixels and with channels."""
    level, lanes = f32_level(isa), lanes_of(isa)
    for tail, dst in enumerate(RESULTS, lanes // 2 - 3):
        pixel = Operand(5, 4 * dst.size_bytes, 0, True)
        channel = Operand(6, 0, lanes * dst.size_bytes, False)
        chain = (BinaryOp("add", channel), SumOp(0.5), BinaryOp("add", pixel), ReluOp(0.0))
        common: dict[str, Any] = {"bands": EDGES[1:3], "post_ops": chain, "operand_types": (dst, dst)}
        for layout in (grouped.channels_last(level, 1, tail), grouped.channels_last(level, 2, lanes)):
            yield by_lanes(grouped.rows(level, grouped.whole(2), **layout, **common), isa, types, dst)


def widened(isa: str) -> Iterator[GroupedRows]:
    """Every way that lanes find their inputs, tails, and what is stored."""
    cases = (*grouped.groups(isa), *list(grouped.tails(isa))[::3], *list(few_inputs.edges(isa))[:2])
    for number, types in enumerate(WIDENED):
        for spec in cases[number::2]:
            yield retyped(spec, isa, *types)


FAMILIES = {
    **{f"depthwise-kernels-{types}-{isa}": partial(kernels, types, isa.name) for types, isa in ENDS},
    **{f"depthwise-edges-{types}-{isa}": partial(edges, types, isa.name) for types, isa in IN_LANES},
    **{f"depthwise-ends-{types}-{isa}": partial(ends, types, isa.name) for types, isa in ENDS},
    **{f"depthwise-widened-{isa}": partial(widened, isa.name) for isa in (AVX2, AVX512_CORE)},
}
