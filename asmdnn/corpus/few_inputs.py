"""Rows of convolutions with few input channels: where inputs lie, kernels, edges, tails, planes, the end."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from asmdnn.corpus.conv import LANES, RELU, SUM_HALF, of_levels
from asmdnn.corpus.grouped import EDGES, NUMBERS, channels_last, rows, whole
from asmdnn.generators.dot.few_inputs import MOST_HELD, FewInputsSpec
from asmdnn.generators.dot.grouped_shape import OTHER_REGISTERS, GroupedRows
from asmdnn.generators.dot.row_cuts import Segment
from asmdnn.generators.functions.postops import BinaryOp, Operand
from asmdnn.isa.vectors import vector_class
from asmdnn.records import replace


def inputs_of(isa: str, inputs: int, *segments: Segment, **more: Any) -> FewInputsSpec:
    """src planar, in rows of 50 pixels, if `more` says nothing else; one vector of channels of a blocked dst."""
    planar = {"src_pixel_bytes": 4, "src_row_bytes": 200, "src_tap_bytes": 200}
    places = more.pop("input_bytes", tuple(4000 * i for i in range(inputs)))
    spec = rows(isa, *segments, group=inputs, **planar | more)
    return FewInputsSpec(**{each.name: getattr(spec, each.name) for each in fields(GroupedRows)}, input_bytes=places)


def kernels(isa: str) -> Iterator[FewInputsSpec]:
    """Kernels as wide as registers allow, strides, dilations; planar and channels last."""
    for kernel in range(1, MOST_HELD + 1):
        most = vector_class(isa).count - max(OTHER_REGISTERS, kernel + 1)
        yield inputs_of(isa, 3, whole(most, kernel), kernel=kernel, bias=True)
    last = {"src_pixel_bytes": 12, "src_row_bytes": 600, "src_tap_bytes": 600, "input_bytes": (0, 4, 8)}
    yield inputs_of(isa, 3, whole(3, 3, 2), stride=2, bias=True, **last)
    yield inputs_of(isa, 1, whole(3, 3, 1, 2), dilation=2)


def edges(isa: str) -> Iterator[FewInputsSpec]:
    """Columns and rows in the padding; segments in a loop; planes of a kernel of three axes."""
    segments = (Segment(3, 2, 5), whole(2, times=3), Segment(2, 0, 3))
    yield inputs_of(isa, 2, *segments, padding=2, bands=EDGES, bias=True)
    again = (Segment(3, 2, 5), replace(whole(3, times=2), is_counted=True), Segment(3, 0, 4))
    yield inputs_of(isa, 2, *again, padding=2, overlap=2, bands=EDGES[:2])
    steps = {"src_plane_bytes": 20000, "weights_plane_bytes": 48 * LANES[isa]}
    yield inputs_of(isa, 2, *segments, padding=2, bands=EDGES, planes=2, **steps, post_ops=(RELU,))


def ends(isa: str) -> Iterator[FewInputsSpec]:
    """Fewer channels than lanes, with and without room for padding; sums and operands of every broadcast."""
    planar = {"src_pixel_bytes": 4, "src_row_bytes": 200, "src_tap_bytes": 200}
    for room in (True, False):
        tail = channels_last(isa, 1, 3) | planar | {"dst_whole": room}
        yield inputs_of(isa, 1, whole(2), **tail, bias=True, post_ops=(SUM_HALF,))
    full, channel = Operand(5, 4 * LANES[isa], 0, False), Operand(6, 0, 0, False)
    chain = (SUM_HALF, BinaryOp("add", full), BinaryOp("mul", channel))
    yield inputs_of(isa, 3, whole(2, times=2), whole(1), bias=True, post_ops=chain)
    yield inputs_of(isa, 3, whole(4), whole(1), bias=True, post_ops=(RELU,), streaming=True)
    yield inputs_of(isa, 3, whole(4), whole(1), bias=True, post_ops=NUMBERS)


FAMILIES = of_levels("few_inputs", kernels=kernels, edges=edges, ends=ends)
