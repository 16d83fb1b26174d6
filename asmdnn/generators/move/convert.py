"""Reorder blocks that change the element type: rows of elements.

Arguments and formula are those of convert_block.py.
"""

from typing import Any

from asmdnn.generators.move.conversion import PACKED, Argument, Converter
from asmdnn.generators.move.convert_block import ConvertBlock
from asmdnn.generators.move.pieces import StridedPlace
from asmdnn.generators.stores import if_aligned
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.element import SPARE
from asmdnn.isa.elements import element_of
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vectors import lanes_of, vector_of
from asmdnn.records import dataclass

AHEAD_BYTES = 1024  # if planners say nothing else
UNROLLED = 8  # vectors of a row


@dataclass(frozen=True, slots=True)
class ConvertSpec(ConvertBlock):
    """dst[r, c] = src[r, c]; columns are walked a vector at a time, dense or not.

    streaming: vectors go past the caches if dst is aligned to them; it must be dense, of 4-byte elements, and its
    rows whole vectors.  ahead_bytes: how far ahead lines of a long dst are prefetched.
    """

    streaming: bool = False
    ahead_bytes: int = AHEAD_BYTES

    @property
    def name(self) -> str:
        ahead = f"_a{self.ahead_bytes}" * (self.ahead_bytes != AHEAD_BYTES)
        return f"convert{'_streaming' * self.streaming}{ahead}_{self.block_name}"

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        registers = v.registers
        x, spare, kept = registers.take("data", 1)[0], registers.take("spare", SPARE), registers.take("zero points", 2)
        left = asm.gp.take("rows left")
        pointers = self.pointers(asm)
        converter = Converter(v, self.conversion, spare, kept)
        packer = BytePacker(converter, registers) if self.packs else None
        if self.streaming:
            with if_aligned(asm, pointers[Argument.DST], v.bytes, left):
                converter.dense.streaming = True
                self.all_rows(asm, converter, x, pointers, left)
                converter.dense.streaming = False
                asm.ret()
            converter.dense.forget()
        self.all_rows(asm, converter, x, pointers, left, packer)
        asm.ret()

    @property
    def lanes(self) -> int:
        return lanes_of(self.isa)

    @property
    def packs(self) -> bool:
        """Whether there is a register of dense bytes of dst in a row."""
        is_byte = element_of(self.conversion.dst).is_byte_integer
        return is_byte and self.dst_steps[1] == 1 and self.columns >= PACKED * self.lanes

    @property
    def dst_is_long(self) -> bool:
        """Whether lines of dst come fast, one after another: stores would wait for them unless they are prefetched."""
        src, dst = self.conversion.sizes
        row_bytes = self.columns * dst
        run_bytes = row_bytes * (self.rows if self.dst_steps[0] == row_bytes else 1)
        return src < dst == self.dst_steps[1] and run_bytes >= self.ahead_bytes

    def all_rows(
        self,
        asm: Assembler,
        converter: Converter,
        x: Any,
        pointers: dict[Argument, Any],
        left: Any,
        packer: "BytePacker | None" = None,
    ) -> None:
        run = UNROLLED * self.lanes
        looped = self.columns // run if self.columns > 2 * run else 0
        inner = [(pointers[a], self.steps(a)[1]) for a in pointers if self.steps(a)[1]]
        together = max(1, min(self.rows, run // self.columns))  # short rows are unrolled
        asm.MOV(left, self.rows // together)
        with asm.loop(left, "rows"):
            if looped:
                blocks = asm.gp.take("blocks left")
                asm.MOV(blocks, looped)
                with asm.loop(blocks, "blocks"):
                    self.row(converter, x, pointers, 0, run, packer)
                    for pointer, step in inner:
                        asm.ADD(pointer, run * step)
                asm.gp.free(blocks)
            for r in range(together):
                self.row(converter, x, pointers, r, self.columns - looped * run, packer)
            for argument, pointer in pointers.items():
                row, column = self.steps(argument)
                if step := together * row - looped * run * column:
                    asm.ADD(pointer, step)
        for r in range(self.rows % together):
            self.row(converter, x, pointers, r, self.columns, packer)

    def row(
        self,
        converter: Converter,
        x: Any,
        pointers: dict[Argument, Any],
        r: int,
        columns: int,
        packer: "BytePacker | None",
    ) -> None:
        """`columns` elements of the r-th row after the pointers."""
        lanes, at_once = self.lanes, PACKED * self.lanes
        packed = columns // at_once * at_once if packer else 0
        for c in range(0, columns, lanes):
            count = min(lanes, columns - c)
            places = {a: StridedPlace(p, self.at(a, r, c), self.steps(a)[1]) for a, p in pointers.items()}
            converter.asm.role(f"row {r}, columns {c}-{c + count - 1}")
            starts_line = self.at(Argument.DST, r, c) % LINE_BYTES == 0
            if self.dst_is_long and starts_line and not converter.dense.streaming:
                converter.asm.PREFETCHT0(places[Argument.DST].at(self.ahead_bytes, 1))
            y = packer.data[c % at_once // lanes] if packer and c < packed else x
            converter.load(y, places[Argument.SRC], count, self.conversion.src)
            converter.apply(y, places.get(Argument.SCALES), places[Argument.DST], count)
            if c >= packed:
                converter.store(places[Argument.DST], x, count)
            elif packer and y is packer.data[-1]:
                first = c + lanes - at_once
                packer.store(StridedPlace(pointers[Argument.DST], self.at(Argument.DST, r, first), 1))


class BytePacker:
    """Registers for conversions of four vectors to s8 or u8 at a time, which take half the instructions."""

    def __init__(self, converter: Converter, registers: Any) -> None:
        self.converter = converter
        self.data = registers.take("packed data", PACKED)
        self.largest, self.order = registers.take("largest"), registers.take("order")
        v, order = converter.v, converter.packed_order()
        converter.dst.load_largest(converter.v, self.largest)
        v.load(self.order, v.asm.const(order, v.bytes, size=v.bytes))

    def store(self, place: StridedPlace) -> None:
        self.converter.store_bytes(place, self.data, self.largest, self.order)
