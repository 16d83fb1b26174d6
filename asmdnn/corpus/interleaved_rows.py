"""The specs of rows whose lanes have positions of the kernel side by side: types, edges, tails, what is cut, ends."""

from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from typing import Any

from asmdnn.corpus import grouped
from asmdnn.corpus.depthwise import EDGES, retyped
from asmdnn.generators.dot.grouped_shape import ARGUMENTS, GroupedRows
from asmdnn.generators.dot.interleaved_rows import InterleavedRowsSpec
from asmdnn.generators.dot.matmul_shape import RESULTS
from asmdnn.generators.dot.row_cuts import Segment
from asmdnn.generators.functions.postops import BinaryOp, Operand, ReluOp, SumOp
from asmdnn.isa.dot import BF16, DOTS, S16, U8S8, Types, dot_class
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.records import replace
from asmdnn.types import DataType, f32, s8

FIRST = len(ARGUMENTS)  # of the operands of post-ops
LEVELS = tuple(
    (types, level.name)
    for types, level in DOTS
    if types == S16 or (types in (BF16, U8S8) and dot_class(types, level.name).is_native)
)


def rows(
    isa: str, types: Types, *segments: Segment, dst: DataType | None = None, cut: Any = (), **more: Any
) -> InterleavedRowsSpec:
    """The rows of f32, each element of which is a group; weights of words are bytes."""
    plain = grouped.rows(f32_level(isa), *segments, **more)
    spec = retyped(plain, isa, f32, f32, dst or types.sums)
    common = {field.name: getattr(spec, field.name) for field in fields(GroupedRows)}
    weights = s8 if types == S16 else types.weights
    size = types.group * weights.size_bytes
    names = ("weights_row_bytes", "weights_input_bytes", "weights_vector_bytes", "weights_plane_bytes",
             "weights_position_bytes")  # fmt: skip
    distances = {name: getattr(plain, name) // f32.size_bytes * size for name in names}
    types_of = {"isa": isa, "src_type": types.src, "weights_type": weights, "group": types.group}
    bias = {"bias": plain.bias and types.sums == f32}
    return InterleavedRowsSpec(**{**common, **distances, **types_of, **bias, **dict(cut)})


def edges(types: Types, isa: str) -> Iterator[InterleavedRowsSpec]:
    """Inside and at edges, with a tail, of several vectors, abreast, with strides, in planes; as wide as may be."""
    lanes, level, of = lanes_of(isa), f32_level(isa), partial(rows, isa, types)
    yield of(Segment(4, 1, 6), padding=1, bands=EDGES, bias=True)
    yield of(grouped.whole(2), grouped.whole(3), **grouped.channels_last(level, 3, lanes), bands=EDGES[:2])
    yield of(grouped.whole(3, 3, 2, 2), stride=2, dilation=2, post_ops=(ReluOp(0.0),))
    yield of(grouped.whole(2), **grouped.channels_last(level, 1, lanes - 3), bias=True)
    yield of(grouped.whole(2), **grouped.channels_last(level, 1, 1) | {"src_whole": True, "dst_whole": True})
    abreast = grouped.channels_last(level, 4, lanes) | {"abreast": 2}
    yield of(grouped.whole(2), Segment(3, 0, 4), **abreast, bands=EDGES[:2], bias=True)
    steps: dict[str, Any] = {"src_plane_bytes": 400 * 4 * lanes, "weights_plane_bytes": 12 * 4 * lanes}
    yield of(grouped.whole(3), planes=2, **steps, bands=EDGES, bias=True)
    yield of(Segment(6, 4, 13), kernel=13, padding=4)


def cuts(types: Types, isa: str) -> Iterator[InterleavedRowsSpec]:
    """A last row or column of pairs with one half, at every edge, with tails and planes; as wide as may be."""
    lanes, level = lanes_of(isa), f32_level(isa)
    steps: dict[str, Any] = {"src_plane_bytes": 400 * 4 * lanes, "weights_plane_bytes": 12 * 4 * lanes}
    for cut in ({"cut_row": 2}, {"cut_column": True}):
        of = partial(rows, isa, types, cut=cut)
        yield of(Segment(4, 1, 6), padding=1, bands=EDGES, bias=True)
        yield of(grouped.whole(2), **grouped.channels_last(level, 1, lanes - 3), bands=EDGES)
        yield of(grouped.whole(3), planes=2, **steps, bands=EDGES, bias=True)
        yield of(Segment(6, 4, 13), kernel=13, padding=4)


def ends(types: Types, isa: str) -> Iterator[InterleavedRowsSpec]:
    """Every type of dst, with tensors of it and of f32, which move with pixels and with channels."""
    lanes, level = lanes_of(isa), f32_level(isa)
    for dst in RESULTS:
        size = dst.size_bytes
        operands = (Operand(FIRST, size * 2 * lanes, size * lanes, False), Operand(FIRST + 1, 0, 0, True))
        chain = (BinaryOp("add", operands[0]), BinaryOp("mul", operands[1]), SumOp(0.5), ReluOp(0.0))
        last = grouped.channels_last(level, 2, lanes) | {"bands": EDGES[1:2]}
        chained = rows(isa, types, grouped.whole(2, times=2), dst=dst, **last, post_ops=chain)
        yield replace(chained, operand_types=(dst, f32))


FAMILIES = {
    **{f"interleaved-edges-{types}-{isa}": partial(edges, types, isa) for types, isa in LEVELS},
    **{f"interleaved-ends-{types}-{isa}": partial(ends, types, isa) for types, isa in LEVELS},
    **{f"interleaved-cuts-{types}-{isa}": partial(cuts, types, isa) for types, isa in LEVELS if types == BF16},
}
