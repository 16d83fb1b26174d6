"""What rows of convolutions in groups, or with few inputs, compute, as loops from the docstrings; data for them."""

from dataclasses import replace
from itertools import product

import numpy as np

from asmdnn.bench.typed import narrowed
from asmdnn.generators.dot.depthwise import DepthwiseRowsSpec
from asmdnn.generators.dot.few_inputs import FewInputsSpec
from asmdnn.generators.dot.grouped import GroupedRowsSpec
from asmdnn.generators.dot.grouped_dots import GroupedDotsSpec
from asmdnn.generators.dot.grouped_shape import ARGUMENTS, GroupedRows
from asmdnn.generators.dot.interleaved_rows import InterleavedRowsSpec
from asmdnn.generators.dot.row_cuts import Segment
from asmdnn.generators.functions.chain import operands_read
from asmdnn.generators.functions.postops import OLD_DST, SumOp
from asmdnn.types import DataType, f32, s8, s16, s32, u8
from tests.generators.case import MOST_SLOPE, UNIT_ROUNDOFF, Case, Reference
from tests.generators.reference import LANES, Memory, keeps_integers, operand
from tests.support import functions
from tests.support.arena import Doubles, buffer_of, constant_buffer, elements, magnitudes

Taps = list[tuple[int, int, bool]]  # where the weights of a kernel position are, and src; whether it is cut


def grouped_case(spec: GroupedRows, random: np.random.Generator, integers: bool) -> Case:
    """Sums within the bound of Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1."""
    kinds = kinds_of_rows(spec)
    memory = {name: elements(random, integers, kinds.get(name, f32)) for name in spec.frame if name != "shape"}
    clear_padding(spec, memory)
    grouped_rows(spec, memory)
    is_exact = keeps_integers(spec.post_ops)
    tolerance: Doubles | float = 0.0
    of_integers = spec.dst_type == s32 and spec.src_type in (u8, s8, s16) and not spec.post_ops
    if not of_integers and not (integers and is_exact):
        sizes = magnitudes(memory)
        grouped_rows(spec if is_exact else replace(spec, post_ops=(SumOp(1.0),)), sizes)
        terms = (3 * max(1, spec.planes) * spec.kernel * spec.group + 1 + 2 * len(spec.post_ops)) * UNIT_ROUNDOFF
        size = buffer_of(sizes["dst"])
        assert size is not None
        tolerance = size.wanted * terms / (1 - terms)
    buffers = {name: buffer_of(memory[name]) for name in memory}
    if not is_exact:
        dst = buffers["dst"]
        assert dst is not None
        tolerance = MOST_SLOPE * (np.max(tolerance) + UNIT_ROUNDOFF * np.abs(dst.wanted))
    dst = buffers["dst"]
    if dst is not None and dst.kind != f32 and not of_integers:
        wanted, tolerance = narrowed(dst.wanted, np.asarray(tolerance), dst.kind)
        buffers["dst"] = replace(dst, wanted=wanted)
    words = np.array(spec.words(), np.int64)
    end = spec.number_places.stop
    unread = slice(end, -(-end // words.itemsize) * words.itemsize)
    return Case(spec, {**buffers, "shape": constant_buffer(words, unread) if len(words) else None}, {"dst": tolerance})


def kinds_of_rows(spec: GroupedRows) -> dict[str, DataType]:
    """The element types of arguments that need not be f32."""
    operands = {f"operand{len(ARGUMENTS) + i}": kind for i, kind in enumerate(spec.operand_types)}
    bias = s32 if is_shifted(spec) else f32
    return {"src": spec.src_type, "weights": spec.weights_type, "bias": bias, "dst": spec.dst_type, **operands}


def is_shifted(spec: GroupedRows) -> bool:
    """Whether src has a zero point, in the place of a bias."""
    return isinstance(spec, DepthwiseRowsSpec) and spec.has_zero_point


def clear_padding(spec: GroupedRows, memory: Memory) -> None:
    """Zeros in the weights' lanes after the last channel."""
    lanes = LANES[spec.isa]
    kernel_rows = range(max(band.first + band.count for band in spec.bands))
    for d, r in product(range(spec.planes), kernel_rows):
        for i in range(spec.parts):
            for s in range(spec.kernel):
                row = d * spec.weights_plane_bytes + r * spec.weights_row_bytes
                at = row + i * spec.weights_input_bytes + spec.position_bytes * s
                behind = spec.weights_type.size_bytes * at_once(spec) * spec.channels
                memory["weights"].clear(at + behind, at_once(spec) * (lanes - spec.channels))


def grouped_rows(spec: GroupedRows, memory: Memory) -> None:
    """All rows, pixel by pixel and vector by vector."""
    kernel_rows = [(band.first, band.count) for band in spec.bands for _ in range(band.rows)]
    inside = [(number, segment) for number, segment in enumerate(spec.segments) for _ in range(segment.times)]
    for y, (first, count) in enumerate(kernel_rows):
        x, before = 0, 0
        for number, segment in inside:
            x, before = x - spec.overlap * (before < number == 1), number
            column = x * spec.stride - spec.padding
            for p in range(segment.pixels):
                for v in range(spec.vectors):
                    taps = product(range(spec.planes), range(first, first + count), range(spec.kernel))
                    reached = []
                    for d, r, s in taps:
                        c = p * spec.stride + s * spec.dilation
                        if segment.low <= c < segment.high:
                            row = d * spec.src_plane_bytes + y * spec.src_row_bytes + r * spec.src_tap_bytes
                            weights = d * spec.weights_plane_bytes + r * spec.weights_row_bytes
                            at = row + (column + c) * spec.src_pixel_bytes
                            reached.append((weights + s * spec.position_bytes, at, is_cut(spec, r, s)))
                    pixel(spec, memory, (y, x + p, v), reached)
            touch_weights(spec, memory, segment, first, count)
            x += segment.pixels


def pixel(spec: GroupedRows, memory: Memory, place: tuple[int, int, int], reached: Taps) -> None:
    """A vector of channels of an output pixel, from the kernel positions that reach it and where src is there."""
    (y, x, v), lanes = place, LANES[spec.isa]
    loaded, stored = (lanes if room else spec.channels for room in (spec.src_whole, spec.dst_whole))
    sums, lane = np.zeros(lanes), np.arange(lanes)
    if spec.bias:
        sums[: spec.channels] = memory["bias"].load(4 * lanes * v, spec.channels)
    for place_of_weights, at, cut in reached:
        src = np.zeros(lanes)
        zero_point = memory["bias"].load(0, 1)[0] if is_shifted(spec) else 0
        if isinstance(spec, FewInputsSpec):
            inputs = [memory["src"].load(at + place, 1) for place in spec.input_bytes]
        elif isinstance(spec, InterleavedRowsSpec):
            found = np.zeros((lanes, spec.group))
            read = memory["src"].load(at + 4 * lanes * v, loaded * spec.group)
            found[:loaded] = read.reshape(loaded, spec.group)
            inputs = list(found.T[:1] if cut else found.T)
        else:
            results = spec.results if isinstance(spec, GroupedRowsSpec) else 1
            at += spec.src_type.size_bytes * lanes * v // results
            src[:loaded] = memory["src"].load(at, loaded // results).repeat(results) - zero_point
            inputs = [src[lane // spec.group * spec.group + i] for i in range(spec.group)]
        for i, factors in enumerate(inputs):
            part, within = divmod(i, at_once(spec))
            row = v * spec.weights_vector_bytes + part * spec.weights_input_bytes + place_of_weights
            sums += memory["weights"].load(row, at_once(spec) * lanes)[within :: at_once(spec)] * factors
    dst = y * spec.dst_row_bytes + x * spec.dst_pixel_bytes + spec.dst_type.size_bytes * lanes * v
    read = operands_read(spec.post_ops)
    old = memory["dst"].load(dst, stored) if OLD_DST in read else None
    raster = y * spec.width + x
    others = {o: operand(o, raster, v, spec.channels, stored, memory) for o in read if o is not OLD_DST}
    result = functions.apply(spec.post_ops, sums[:stored], old, others)
    result[spec.channels :] = 0  # padding
    memory["dst"].store(dst, result)


def is_cut(spec: GroupedRows, row: int, column: int) -> bool:
    """Whether lanes have the first element alone at a kernel position."""
    if not isinstance(spec, InterleavedRowsSpec):
        return False
    return row == spec.cut_row or (spec.cut_column and column == spec.kernel - 1)


def at_once(spec: GroupedRows) -> int:
    """Inputs of a group that lie side by side in weights."""
    return spec.group // spec.parts


def touch_weights(spec: GroupedRows, memory: Memory, segment: Segment, first: int, count: int) -> None:
    """A kernel row of weights is read whole, though an edge may not use all of its positions."""
    if not spec.uses(segment):
        return
    for v in range(spec.vectors):
        for i in range(spec.parts):
            for d, r, s in product(range(spec.planes), range(first, first + count), range(spec.kernel)):
                row = v * spec.weights_vector_bytes + i * spec.weights_input_bytes + r * spec.weights_row_bytes
                elements_read = at_once(spec) * LANES[spec.isa]
                memory["weights"].load(row + d * spec.weights_plane_bytes + s * spec.position_bytes, elements_read)


KINDS = (GroupedRowsSpec, GroupedDotsSpec, FewInputsSpec, DepthwiseRowsSpec, InterleavedRowsSpec)
REFERENCES = {spec: Reference(grouped_case, rounds=True) for spec in KINDS}
