"""The specs of rows of groups by dot products: every size of a group, edges, tails, strides, ends of every type."""

from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from typing import Any

from asmdnn.corpus import grouped
from asmdnn.corpus.depthwise import EDGES, retyped
from asmdnn.generators.dot.grouped_dots import GroupedDotsSpec
from asmdnn.generators.dot.grouped_shape import ARGUMENTS, GroupedRows
from asmdnn.generators.dot.matmul_shape import RESULTS
from asmdnn.generators.dot.row_cuts import Band, Segment
from asmdnn.generators.functions.postops import BinaryOp, Operand, ReluOp, SumOp
from asmdnn.isa.dot import BF16, DOTS, U8S8, Types, dot_class
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.records import replace
from asmdnn.types import DataType, f32

FIRST = len(ARGUMENTS)  # of the operands of post-ops
LEVELS = tuple(
    (types, level.name) for types, level in DOTS if types in (BF16, U8S8) and dot_class(types, level.name).is_native
)


def rows(
    isa: str, types: Types, group: int, *segments: Segment, dst: DataType | None = None, **more: Any
) -> GroupedDotsSpec:
    """The rows of f32 with elements of these types, and weights of whole vectors of 4 bytes."""
    plain = grouped.rows(f32_level(isa), *segments, group=group, **more)
    spec = retyped(plain, isa, types.src, types.weights, dst or types.sums)
    common = {field.name: getattr(spec, field.name) for field in fields(GroupedRows)}
    names = ("weights_row_bytes", "weights_input_bytes", "weights_vector_bytes", "weights_plane_bytes",
             "weights_position_bytes")  # fmt: skip
    distances = {name: getattr(plain, name) for name in names}
    return GroupedDotsSpec(**{**common, **distances, "bias": plain.bias and types.sums == f32})


def groups(types: Types, isa: str) -> Iterator[GroupedDotsSpec]:
    """Every size of a group: inside and at edges, with a tail, of several vectors, abreast, with strides, in planes."""
    lanes, level = lanes_of(isa), f32_level(isa)
    for group in (2, 4, 8, 16):
        if group % types.group or group > lanes:
            continue
        of_group = partial(rows, isa, types, group)
        yield of_group(Segment(4, 1, 6), padding=1, bands=EDGES, bias=True)
        yield of_group(grouped.whole(2), grouped.whole(3), **grouped.channels_last(level, 3, lanes), bands=EDGES[:2])
        yield of_group(grouped.whole(3, 3, 2, 2), stride=2, dilation=2, post_ops=(ReluOp(0.0),))
        if group < lanes:
            yield of_group(grouped.whole(2), **grouped.channels_last(level, 1, lanes - group), bias=True)
            padded = grouped.channels_last(level, 1, group) | {"src_whole": True, "dst_whole": True}
            yield of_group(grouped.whole(2), **padded, post_ops=(ReluOp(0.0),))
    abreast = grouped.channels_last(level, 4, lanes) | {"abreast": 2}
    yield rows(isa, types, types.group, grouped.whole(2), Segment(3, 0, 4), **abreast, bands=EDGES[:2], bias=True)
    steps: dict[str, Any] = {"src_plane_bytes": 400 * 4 * lanes, "weights_plane_bytes": 12 * 4 * lanes}
    yield rows(isa, types, types.group, grouped.whole(3), planes=2, **steps, bands=EDGES, bias=True)
    yield rows(isa, types, types.group, Segment(6, 4, 13), kernel=13, padding=4)


def ends(types: Types, isa: str) -> Iterator[GroupedDotsSpec]:
    """Every type of dst, alone and with tensors of it and of f32, which move with pixels and with channels."""
    lanes, level = lanes_of(isa), f32_level(isa)
    for dst in RESULTS:
        size = dst.size_bytes
        operands = (Operand(FIRST, size * 2 * lanes, size * lanes, False), Operand(FIRST + 1, 0, 0, True))
        chain = (BinaryOp("add", operands[0]), BinaryOp("mul", operands[1]), SumOp(0.5), ReluOp(0.0))
        last = grouped.channels_last(level, 2, lanes) | {"bands": (Band(2, 0, 3),)}
        yield rows(isa, types, 4, grouped.whole(2), grouped.whole(1), dst=dst, **last)
        chained = rows(isa, types, 4, grouped.whole(2, times=2), dst=dst, **last, post_ops=chain)
        yield replace(chained, operand_types=(dst, f32))


FAMILIES = {
    f"grouped-dots-{name}-{types}-{isa}": partial(family, types, isa)
    for types, isa in LEVELS
    for name, family in {"groups": groups, "ends": ends}.items()
}
