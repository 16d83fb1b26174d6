"""Convolution tiles: a few output pixels by a few vectors of output channels, accumulated in registers.

    dst[p, o] = post_ops(bias[o] + sum over taps t, channels c of src[p, t.src + c] * weights[t.weights + c, o])

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | src[...]                | pixel p's source starts src_pixel_bytes[p] behind the pointer; never written |
| weights | weights[.., vectors] | a panel: a row for each tap and group of channels, zero padded; 4-byte aligned |
| bias    | sums[channels]          | the panel's channels; nothing past them is read |
| dst     | dst[...]                | pixel p at p * dst_pixel_bytes, channel vector j at j * dst_vector_bytes |
| taps    | int64[...]              | for each group a count, then (src, weights) byte offsets, one pair a tap |
| ahead   | bytes                   | weights that will be needed soon; only prefetched |
| 6, 7 .. | f32[...]                | operands of post-ops, laid out as each Operand says; of the real channels |

The types of src, weights and sums are the spec's `types`; input channels go in groups (isa/dot.py), single ones in f32.
Of a last group that is not whole src is read as far as the channels, weights are zero there.  dst has the type of the
sums, but f32 if there are post-ops; a start from dst takes sums.

A tap is one kernel position and a run of input channels.  Taps are grouped by the pixels that they reach: a pixel for
which a tap lies in the padding is not in that tap's group, so padding costs no instruction and is never read.
The register block is the outer product of Goto and van de Geijn's GEBP kernel ("Anatomy of high-performance matrix
multiplication", 2008); the batch of taps is the batch-reduce of Georganas et al. (2019).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asmdnn.generators.dot.conv_shape import AHEAD, BIAS, DST, SRC, TAPS, WEIGHTS, ConvTile, TapGroup
from asmdnn.generators.dot.ending import TileEnding
from asmdnn.isa.assembler import Assembler, Pointer, mem
from asmdnn.isa.dot import GROUP_BYTES, Dot, dot_of
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import vector_of

LINE_BYTES = 64
BROADCASTS = 4  # registers that take turns holding a broadcast source element


@dataclass(frozen=True, slots=True, repr=False)
class ConvTileSpec(ConvTile):
    """The code of a tile."""

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 *frame), of 6 arguments and one for each operand of post-ops."""
        v = vector_of(self.isa, asm)
        acc = v.registers.take("acc", len(self.src_pixel_bytes), self.vectors)
        start_accumulators(self, asm, v, acc)
        dot = dot_of(self.types, self.isa, v)
        multiply_taps(self, dot, acc)
        finish_tile(self, dot, acc)
        asm.ret()


def start_accumulators(spec: ConvTile, asm: Assembler, v: Vector, acc: list[list[Any]]) -> None:
    """acc[p][j] = dst[p, j], bias vector j, or zero."""
    asm.role("start")
    if spec.accumulate:
        walk_dst(spec, asm, v, lambda p, j, at, stored, real: stored.load(acc[p][j], at))
    elif spec.bias:
        load_bias(spec, asm, v, acc)
    else:
        for x in (x for pixel in acc for x in pixel):
            v.zero(x)


def load_bias(spec: ConvTile, asm: Assembler, v: Vector, acc: list[list[Any]]) -> None:
    bias = asm.gp.take("bias")
    asm.MOV(bias, mem(asm.frame, 8 * BIAS))
    with v.parts(spec.vectors, spec.channels) as parts:
        for j, part in enumerate(parts):
            at = mem(bias, j * v.bytes, size=v.bytes)
            asm.call_it(at, f"bias[{j}]")
            part.load(acc[0][j], at)
    for pixel in acc[1:]:
        for j in range(spec.vectors):
            v.move(pixel[j], acc[0][j])
    asm.gp.free(bias)


Visit = Callable[[int, int, Pointer, Lanes, Lanes], None]


def walk_dst(spec: ConvTile, asm: Assembler, v: Vector, visit: Visit) -> None:
    """visit(pixel, vector, memory, stored lanes, real lanes) for the whole tile, vector of channels by vector."""
    dst = asm.gp.take("dst")
    asm.MOV(dst, mem(asm.frame, 8 * DST))
    # Real lanes are output channels; `part` has those of a vector: all lanes (v itself), the first few (a Tail), or, in
    # vectors that are padding alone, none (Nothing: a load is zeros, a store is none).  Stored lanes are those
    # that dst has room for: with whole vectors all of them, so that zeros of the padding are written too.
    with v.parts(spec.vectors, spec.channels) as parts:
        for j, part in enumerate(parts):
            for p in range(len(spec.src_pixel_bytes)):
                at = mem(dst, p * spec.dst_pixel_bytes, size=v.bytes)
                asm.call_it(at, f"dst[{p}, {j}]")
                visit(p, j, at, v if spec.whole_vectors else part, part)
            if j + 1 < spec.vectors:
                asm.ADD(dst, spec.dst_vector_bytes)
    asm.gp.free(dst)


def multiply_taps(spec: ConvTile, dot: Dot, acc: list[list[Any]]) -> None:
    """Walk the tap lists, a loop for each group of pixels."""
    asm, v = dot.asm, dot.v
    # Copies of source elements take turns in registers that the block leaves free, so that a broadcast does not
    # overwrite what the multiplies just before it still read.
    row = v.registers.take("row", spec.vectors)
    spare = v.registers.take("broadcast source", min(BROADCASTS, v.registers.available))
    src, weights, taps, ahead, left, tap_src, tap_weights = pointers = [
        asm.gp.take(name) for name in ("src", "weights", "taps", "ahead", "taps left", "tap's src", "tap's weights")
    ]
    for pointer, argument in ((src, SRC), (weights, WEIGHTS), (taps, TAPS)):
        asm.MOV(pointer, mem(asm.frame, 8 * argument))
    if spec.ahead_lines:
        asm.MOV(ahead, mem(asm.frame, 8 * AHEAD))
    for index, group in enumerate(spec.groups):
        nothing = asm.new_label(f"group{index}_done")
        asm.role(f"group {index}: next tap")
        asm.MOV(left, mem(taps))
        asm.ADD(taps, 8)
        asm.TEST(left, left)
        asm.JZ(nothing)
        with asm.loop(left, f"group{index}"):
            asm.MOV(tap_src, mem(taps))
            asm.MOV(tap_weights, mem(taps, 8))
            asm.ADD(taps, 16)
            asm.ADD(tap_src, src)
            asm.ADD(tap_weights, weights)
            multiply_tap(spec, group, dot, [acc[p] for p in group.pixels], row, spare, tap_src, tap_weights, ahead)
        asm.bind(nothing)
    asm.gp.free(*pointers)
    v.registers.free(*row, *spare)


def multiply_tap(
    spec: ConvTile,
    group: TapGroup,
    dot: Dot,
    acc: list[list[Any]],
    row: list[Any],
    spare: list[Any],
    src: Any,
    weights: Any,
    ahead: Any,
) -> None:
    """acc[p][j] += src[p, c] * weights[c, j] for the channels of one tap, a group of them a step, unrolled."""
    asm, v = dot.asm, dot.v
    sizes = spec.types.groups_of(group.channels)
    for c, group_bytes in enumerate(sizes):
        asm.role(f"channel {c}")
        # The row first: all pixels of the group use it, so its loads are under way before the first multiply needs
        # them; a step has vectors + pixels loads for vectors x pixels multiplies.
        for j, factor in enumerate(row):
            at = mem(weights, c * spec.weights_row_bytes + j * v.bytes, size=v.bytes)
            asm.call_it(at, f"weights[{c}, {j}]")
            v.load(factor, at)
        for line in range(c, spec.ahead_lines, len(sizes)):
            asm.PREFETCHT1(mem(ahead, line * LINE_BYTES))
        places = [spec.src_pixel_bytes[p] + c * spec.src_channel_bytes for p in group.pixels]
        column = [mem(src, place, size=GROUP_BYTES) for place in places]
        for p, element in zip(group.pixels, column, strict=True):
            asm.call_it(element, f"src[{p}, {c}]")
        dot.outer_product(acc, row, column, spare, group_bytes)
    if spec.ahead_lines:
        asm.ADD(ahead, spec.ahead_lines * LINE_BYTES)


def finish_tile(spec: ConvTile, dot: Dot, acc: list[list[Any]]) -> None:
    """Post-ops and stores."""
    dot.asm.role("finish")
    ending = TileEnding(dot.v, spec.post_ops)

    def finish(p: int, j: int, at: Pointer, stored: Lanes, real: Lanes) -> None:
        if spec.post_ops:
            dot.to_f32(acc[p][j])
        ending.finish(acc[p][j], p, j, at, stored, real)

    walk_dst(spec, dot.asm, dot.v, finish)
