"""Reorder blocks that change the element type: rows of elements.

Arguments and formula are those of convert_block.py.  They use AVX2 with F16C, which every supported level has.
"""

from dataclasses import dataclass
from struct import pack
from typing import Any

from asmdnn.generators.move.conversion import BYTES_AT_ONCE, LANES, PACKED_ORDER, Argument, Converter
from asmdnn.generators.move.convert_block import Block
from asmdnn.generators.move.pieces import Place
from asmdnn.generators.move.shuffle_body import if_aligned
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.vectors import vector_of

VECTOR_BYTES, LINE_BYTES = 32, 64
AHEAD_BYTES = 1024
UNROLLED = 8  # vectors of a row


@dataclass(frozen=True, slots=True)
class ConvertSpec(Block):
    """dst[r, c] = src[r, c]; columns are walked 8 at a time, dense or not.

    streaming: vectors go past the caches if dst is aligned to 32 bytes; it must be dense, of 4-byte elements, and its
    rows whole vectors.
    """

    streaming: bool = False

    @property
    def name(self) -> str:
        return f"convert{'_streaming' * self.streaming}_{self.block_name}"

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        registers = v.registers
        x, spare, kept = registers.take("data", 1)[0], registers.take("spare", 3), registers.take("zero points", 2)
        left = asm.gp.take("rows left")
        pointers = self.pointers(asm)
        converter = Converter(v, self.conversion, spare, kept)
        packer = Packer(converter, registers) if self.packs else None
        if self.streaming:
            with if_aligned(asm, pointers[Argument.DST], VECTOR_BYTES, left):
                converter.streaming = True
                self.all_rows(asm, converter, x, pointers, left)
                converter.streaming = False
                asm.SFENCE()
                asm.ret()
        self.all_rows(asm, converter, x, pointers, left, packer)
        asm.ret()

    @property
    def packs(self) -> bool:
        """Whether there are 32 dense bytes of dst in a row."""
        return self.conversion.dst in ("s8", "u8") and self.dst_steps[1] == 1 and self.columns >= BYTES_AT_ONCE

    @property
    def dst_is_long(self) -> bool:
        """Whether lines of dst come fast, one behind another: stores would wait for them unless they are prefetched."""
        src, dst = self.conversion.sizes
        return src < dst == self.dst_steps[1] and self.columns * dst >= AHEAD_BYTES

    def all_rows(
        self,
        asm: Assembler,
        converter: Converter,
        x: Any,
        pointers: dict[Argument, Any],
        left: Any,
        packer: "Packer | None" = None,
    ) -> None:
        run = UNROLLED * LANES
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
        packer: "Packer | None",
    ) -> None:
        """`columns` elements of the r-th row behind the pointers."""
        packed = columns // BYTES_AT_ONCE * BYTES_AT_ONCE if packer else 0
        for c in range(0, columns, LANES):
            count = min(LANES, columns - c)
            places = {a: Place(p, self.at(a, r, c), self.steps(a)[1]) for a, p in pointers.items()}
            converter.asm.role(f"row {r}, columns {c}-{c + count - 1}")
            if self.dst_is_long and c * self.conversion.sizes[1] % LINE_BYTES == 0 and not converter.streaming:
                converter.asm.PREFETCHT0(places[Argument.DST].at(AHEAD_BYTES, 1))
            y = packer.data[c % BYTES_AT_ONCE // LANES] if packer and c < packed else x
            converter.load(y, places[Argument.SRC], count, self.conversion.src)
            converter.apply(y, places.get(Argument.SCALES), places[Argument.DST], count)
            if c >= packed:
                converter.store(places[Argument.DST], x, count)
            elif packer and y is packer.data[-1]:
                first = c + LANES - BYTES_AT_ONCE
                packer.store(Place(pointers[Argument.DST], self.at(Argument.DST, r, first), 1))


class Packer:
    """Registers for conversions of 32 elements to s8 or u8 at a time, which take half the instructions."""

    def __init__(self, converter: Converter, registers: Any) -> None:
        asm, self.converter = converter.asm, converter
        self.data = registers.take("packed data", BYTES_AT_ONCE // LANES)
        self.largest, self.order = registers.take("largest"), registers.take("order")
        asm.VMOVAPS(self.largest, converter.largest(converter.conversion.dst))
        asm.VMOVDQA(self.order, asm.const(pack("<8I", *PACKED_ORDER), VECTOR_BYTES, size=VECTOR_BYTES))

    def store(self, place: Place) -> None:
        self.converter.store_bytes(place, self.data, self.largest, self.order)
