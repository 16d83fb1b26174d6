"""Sums of the columns of rows of bytes, for compensation.py: 32 neighbours at a time.

VPMADDUBSW by 1 and 0 makes words of the even columns, by 0 and 1 of the odd ones; rows add up in words, which 255 of
them cannot overflow, and VPMADDWD, by 1 and 0 again, makes dwords of these.  So a row costs two multiplies and two
additions, where widening every byte to a dword takes four shuffles and four additions.
"""

from collections.abc import Sequence
from itertools import product
from typing import Final

from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.dense import dense_of
from asmdnn.isa.vector import Vector

COLUMNS: Final = 32
MOST_ROWS: Final = 255  # of bytes of -128, whose sum is a word
SUMS: Final = 4  # registers of dwords: of columns 0, 4, ..; 2, 6, ..; 1, 5, ..; 3, 7, ..
LOW, HIGH = 0x20, 0x31  # halves of two registers


class ColumnSums:
    """Emits such sums; x and spare may be overwritten by others in between."""

    def __init__(self, v: Vector, x: Register, spare: Register) -> None:
        self.asm, self.x, self.spare, self.dense = v.asm, x, spare, dense_of(v, spare)
        self.words = v.registers.take("sums of even and odd columns", 2)
        factors = (b"\1\0", b"\0\1", b"\1\0\0\0", b"\0\0\1\0")
        self.even, self.odd, self.low, self.high = registers = v.registers.take("which columns", len(factors))
        for register, one in zip(registers, factors, strict=True):
            self.asm.VMOVDQU(register, self.asm.const(one * (COLUMNS // len(one)), COLUMNS, size=COLUMNS))

    def add(self, sums: Sequence[Register], rows: Sequence[Pointer]) -> None:
        """sums += 32 bytes of each row, up to MOST_ROWS of them."""
        asm = self.asm
        for i, row in enumerate(rows):
            for words, columns in zip(self.words, (self.even, self.odd), strict=True):
                asm.VPMADDUBSW(self.x if i else words, columns, row)
                if i:
                    asm.VPADDW(words, words, self.x)
        for total, (words, half) in zip(sums, product(self.words, (self.low, self.high)), strict=True):
            asm.VPMADDWD(self.x, words, half)
            asm.VPADDD(total, total, self.x)

    def in_order(self, sums: Sequence[Register]) -> None:
        """8 neighbouring columns in each of the four registers."""
        asm, temporary = self.asm, (*self.words, self.x, self.spare)
        (first, third), (second, fourth) = sums[:2], sums[2:]
        pairs = ((first, second), (third, fourth))
        for (low, high), pair in zip((temporary[:2], temporary[2:]), pairs, strict=True):
            asm.VPUNPCKLDQ(low, *pair)
            asm.VPUNPCKHDQ(high, *pair)
        for i, (low, high) in enumerate(zip(temporary[:2], temporary[2:], strict=True)):
            asm.VPUNPCKLQDQ(sums[2 * i], low, high)
            asm.VPUNPCKHQDQ(sums[2 * i + 1], low, high)
        for i, (half, joined) in enumerate(product((LOW, HIGH), (sums[:2], sums[2:]))):
            asm.VPERM2I128(temporary[i], *joined, half)
        for total, x in zip(sums, temporary, strict=True):
            asm.VMOVDQA(total, x)
