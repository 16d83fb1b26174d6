"""The multiplies of convolution tiles: the code that walks their tap lists; see conv.py."""

from typing import Any

from asmdnn.generators.dot.conv_shape import PREFETCHED, SRC, TAPS, WEIGHTS, TapGroup
from asmdnn.generators.dot.conv_tile import ConvTile
from asmdnn.generators.dot.operands import BROADCASTS
from asmdnn.generators.stepping import unless_zero
from asmdnn.isa.assembler import mem
from asmdnn.isa.dot import GROUP_BYTES, Dot
from asmdnn.isa.lines import LINE_BYTES


class TapCode:
    """The code that walks the tap lists, a loop for each group of pixels.

    Copies of source elements take turns in registers that the block leaves free, so that a broadcast does not overwrite
    what the multiplies just before it still read.
    """

    def __init__(self, spec: ConvTile, dot: Dot, acc: list[list[Any]], row_sums: list[Any]) -> None:
        self.spec, self.dot, self.of_taps, self.row_sums = spec, dot, spec.of_taps(), row_sums
        self.acc = [spec.multiplied(row) for row in acc]
        registers, gp = dot.v.registers, dot.asm.gp
        self.held = registers.take("row", spec.vectors * dot.row_registers)
        self.row = spec.multiplied(self.held)
        self.spare = registers.take("broadcast source", min(BROADCASTS, registers.available))
        names = ("src", "weights", "taps", "prefetched")
        self.src, self.weights, self.taps, self.prefetched = (gp.take(name) for name in names)
        self.left, self.tap_src, self.tap_weights = (gp.take(x) for x in ("taps left", "tap's src", "tap's weights"))
        self.runs = dot.runs(acc)

    def multiply(self) -> None:
        """All groups."""
        asm = self.dot.asm
        for pointer, argument in ((self.src, SRC), (self.weights, WEIGHTS), (self.taps, TAPS)):
            asm.MOV(pointer, mem(asm.frame, 8 * argument))
        if self.spec.prefetch_lines:
            asm.MOV(self.prefetched, mem(asm.frame, 8 * PREFETCHED))
        with self.runs.walk():
            for index, group in enumerate(self.spec.groups):
                self.group(index, group)
        self.runs.end([*self.row, *self.spare])
        asm.gp.free(self.src, self.weights, self.taps, self.prefetched, self.left, self.tap_src, self.tap_weights)
        self.dot.v.registers.free(*self.held, *self.spare)

    def group(self, index: int, group: TapGroup) -> None:
        """The taps of a group of pixels, of which the list has a number."""
        asm, steps = self.dot.asm, len(group.parts(self.spec.types, is_dense=False))
        name, registers = f"group{index}", [*self.row, *self.spare]
        asm.role(f"group {index}: next tap")
        asm.MOV(self.left, mem(self.taps))
        asm.ADD(self.taps, 8)
        with unless_zero(asm, self.left, f"{name}_done"), self.runs.taps(self.left, name, steps, registers):
            asm.MOV(self.tap_src, mem(self.taps))
            asm.MOV(self.tap_weights, mem(self.taps, 8))
            asm.ADD(self.taps, 16)
            asm.ADD(self.tap_src, self.src)
            asm.ADD(self.tap_weights, self.weights)
            asm.stretch((self.of_taps, group), lambda: self.multiply_tap(group))

    def prefetched_places(self, group: TapGroup) -> list[int]:
        """The offsets, from a tap's source, of the lines that the same tap of the next tile reads."""
        spec = self.spec
        if not spec.src_prefetch_bytes:
            return []
        first = spec.src_pixel_bytes[group.pixels[0]]
        lines = {(spec.src_pixel_bytes[pixel] - first) // LINE_BYTES for pixel in group.pixels}
        return [first + spec.src_prefetch_bytes + LINE_BYTES * line for line in sorted(lines)]

    def multiply_tap(self, group: TapGroup) -> None:
        """acc[p][j] += src[p, c] * weights[c, j] for the channels of one tap, a group of them a step, unrolled."""
        spec, asm, dot = self.spec, self.dot.asm, self.dot
        parts = group.parts(spec.types, spec.src_channel_bytes == GROUP_BYTES)
        acc = [self.acc[p] for p in group.pixels]
        for c, part in enumerate(parts):
            asm.role(f"channel {c}")
            # The row first: all pixels of the group use it, so its loads are under way before the first multiply needs
            # them; a step has vectors + pixels loads for vectors x pixels multiplies.
            for j in range(spec.vectors):
                apart = spec.weights_vector_bytes or dot.row_bytes
                is_half = spec.half_last and j == spec.vectors - 1
                size = dot.row_bytes // 2 if is_half else dot.row_bytes
                at = mem(self.tap_weights, c * spec.weights_row_bytes + j * apart, size=size)
                asm.call_it(at, f"weights[{c}, {j}]")
                dot.load(self.row[j * dot.row_registers : (j + 1) * dot.row_registers], dot.v, at)
            for line in range(c, spec.prefetch_lines, len(parts)):
                asm.PREFETCHT1(mem(self.prefetched, line * LINE_BYTES))
            for place in self.prefetched_places(group)[c :: len(parts)]:
                asm.PREFETCHT0(mem(self.tap_src, place))
            places = [spec.src_pixel_bytes[p] + c * spec.src_channel_bytes for p in group.pixels]
            column = [mem(self.tap_src, place, size=GROUP_BYTES) for place in places]
            for p, element in zip(group.pixels, column, strict=True):
                asm.call_it(element, f"src[{p}, {c}]")
            dot.outer_product_of_parts(acc, self.row, column, self.spare, part)
            for total, x in zip(self.row_sums, self.row[: len(self.row_sums)], strict=True):
                dot.v.add(total, total, x)
        if spec.prefetch_lines:
            asm.ADD(self.prefetched, spec.prefetch_lines * LINE_BYTES)
