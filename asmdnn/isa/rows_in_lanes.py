"""Dot products whose terms lie in rows apart: a lane gets what several rows have in one column.

A dot product (dot.py) finds the terms of a lane side by side in memory.  Those of a depthwise convolution are a channel
of several pixels; loads and shuffles bring `rows` of them into each lane, of src and of weights alike, and a row that
is left out counts as zeros.  Four bytes a lane are multiplied at once by VPDPBUSD, two bf16 by VDPBF16PS; where a level
has no VPDPBUSD, bytes become two words for VPMADDWD, which is as exact, modulo 2^32.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Final

from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.dot import DOTS
from asmdnn.isa.dot_base import Dot, Types
from asmdnn.isa.dot_native import (
    SHIFT,
    AvxVnniDot,
    Bf16Dot,
    ShiftedAvxVnniDot,
    ShiftedVnniDot,
    VnniDot,
)
from asmdnn.isa.dot_widened import WordsDot
from asmdnn.isa.elements import element_of
from asmdnn.isa.levels import isa_of
from asmdnn.isa.packing import packing_of
from asmdnn.isa.pieces import low_part
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.types import DataType, s8

Rows = Sequence[Pointer | None]  # where the elements of each row of a lane begin; None: zeros

BYTES_OF_QUADS: Final = bytes(16 // 4 * byte + lane for lane in range(4) for byte in range(4))  # 4 x 4, transposed
LOW_WORDS: Final = 0xFFFF
WORD_BITS: Final = 16
SPARE: Final = 3  # registers that methods may overwrite


class RowsInLanes:
    """Emits with the registers of `v`.

    rows: that a lane takes.  own_registers: that `__init__` takes for good.  one: 1 in every term of a lane.
    position_cycles: expected of a kernel position of a vector, by and large: some of them are multiplied at once.
    """

    position_cycles: ClassVar[float] = 0.2
    rows: ClassVar[int]
    own_registers: ClassVar[int] = 0
    one: ClassVar[int] = 0

    def __init__(self, types: Types, v: Vector) -> None:
        self.types, self.v, self.asm = types, v, v.asm

    @classmethod
    def shift(cls, src: DataType) -> int:
        """What is added to every element of src that is there."""
        return 0

    def weights(self, x: Register, rows: Rows, spare: Sequence[Register]) -> None:
        """x = weights of whole vectors."""
        raise NotImplementedError

    def source(self, x: Register, rows: Rows, part: Lanes, spare: Sequence[Register]) -> None:
        """x = elements of src, of the part's lanes."""
        raise NotImplementedError

    def a_row_down(self, x: Register, weights: Register) -> None:
        """x = weights of a lane whose last row has none, each a row further down."""
        self.asm.VPSLLD(x, weights, 32 // self.rows)

    def multiply(self, acc: Register, source: Register, weights: Register, spare: Sequence[Register]) -> None:
        """acc += the products of a lane."""
        raise NotImplementedError

    def row(self, x: Register, row: Pointer | None, part: Lanes) -> None:
        """The low end of x = elements of a row, zeros after them."""
        size = self.types.weights.size_bytes
        low = low_part(x, size)
        if row is None:
            self.v.zero(x)
        elif part is not self.v:
            packing_of(self.v).load(x, row, part, size)
        else:
            width = self.v.lanes * size
            (self.asm.VMOVUPS if width == low.size_bytes else self.asm.VMOVQ)(low, row.sized(width))

    def ordered(self, order: Sequence[int], element_bytes: int) -> Register:
        """A register of its own with these numbers, of as many bytes."""
        found: Register = self.v.registers.take("order")
        data = b"".join(number.to_bytes(element_bytes, "little") for number in order)
        self.v.load(found, self.asm.const(data, self.v.bytes, size=self.v.bytes))
        return found


class BytesAsWords(RowsInLanes):
    """Bytes of two rows as words, for VPMADDWD."""

    rows, one, position_cycles = 2, 0x00010001, 0.67  # 1.35 times what bytes that are read into f32 take, on a Zen 3

    def weights(self, x: Register, rows: Rows, spare: Sequence[Register]) -> None:
        self.words(x, rows, self.v, self.types.weights, spare[0])

    def source(self, x: Register, rows: Rows, part: Lanes, spare: Sequence[Register]) -> None:
        self.words(x, rows, part, self.types.src, spare[0])

    def words(self, x: Register, rows: Rows, part: Lanes, dtype: DataType, spare: Register) -> None:
        """The first row in the lower halves of lanes, with its sign; the second one in the upper halves."""
        asm, lanes, (low, high) = self.asm, element_of(dtype).lanes(self.v, part), rows
        if low is None:
            self.v.zero(x)
        else:
            lanes.load(x, low)
            if dtype == s8:
                asm.VANDPS(x, x, self.v.splat(LOW_WORDS))
        if high is not None:
            lanes.load(spare, high)
            asm.VPSLLD(spare, spare, WORD_BITS)
            asm.VORPS(x, x, spare)

    def multiply(self, acc: Register, source: Register, weights: Register, spare: Sequence[Register]) -> None:
        self.asm.VPMADDWD(spare[0], source, weights)
        self.asm.VPADDD(acc, acc, spare[0])


class Bf16Pairs(RowsInLanes):
    """Two rows of bf16, 32 bytes each, whose elements take turns: one permutation of two registers joins them."""

    rows, own_registers = 2, 1

    def __init__(self, types: Types, v: Vector) -> None:
        super().__init__(types, v)
        self.order = self.ordered([lane + 2 * v.lanes * row for lane in range(v.lanes) for row in range(self.rows)], 2)

    def weights(self, x: Register, rows: Rows, spare: Sequence[Register]) -> None:
        self.source(x, rows, self.v, spare)

    def source(self, x: Register, rows: Rows, part: Lanes, spare: Sequence[Register]) -> None:
        for register, row in zip((x, spare[0]), rows, strict=True):
            self.row(register, row, part)
        self.asm.VPERMT2W(x, self.order, spare[0])

    def multiply(self, acc: Register, source: Register, weights: Register, spare: Sequence[Register]) -> None:
        self.asm.VDPBF16PS(acc, source, weights)


class Quads(RowsInLanes):
    """Four rows of bytes, for VPDPBUSD: each becomes a piece of a register, which is transposed.

    VPDPBUSD takes unsigned src: s8 become u8 by 128 more.
    """

    rows, own_registers, one = 4, 1, 0x01010101

    def __init__(self, types: Types, v: Vector) -> None:
        super().__init__(types, v)
        dwords = v.lanes // self.rows  # of a row
        self.order = self.ordered([q + place for q in range(dwords) for place in self.places(dwords)], 4)

    def places(self, dwords: int) -> Sequence[int]:
        """The dwords where rows begin that `join` has put together."""
        return range(0, dwords * self.rows, dwords)

    @classmethod
    def shift(cls, src: DataType) -> int:
        return SHIFT if src == s8 else 0

    def weights(self, x: Register, rows: Rows, spare: Sequence[Register]) -> None:
        self.quads(x, rows, self.v, spare)

    def source(self, x: Register, rows: Rows, part: Lanes, spare: Sequence[Register]) -> None:
        self.quads(x, rows, part, spare)
        shift = self.shift(self.types.src)
        if shift:
            there = sum(shift << 8 * i for i, row in enumerate(rows) if row is not None)
            self.asm.VXORPS(x, x, self.v.splat(there))

    def quads(self, x: Register, rows: Rows, part: Lanes, spare: Sequence[Register]) -> None:
        """Dwords of the rows, transposed; then the bytes of these."""
        self.join(x, rows, part, spare)
        order = BYTES_OF_QUADS * (self.v.bytes // len(BYTES_OF_QUADS))
        self.asm.VPSHUFB(x, x, self.asm.const(order, self.v.bytes, size=self.v.bytes))

    def join(self, x: Register, rows: Rows, part: Lanes, spare: Sequence[Register]) -> None:
        """x = a byte for each lane of row 0, then those of row 1, 2 and 3, and so on by dwords, in `order`."""
        raise NotImplementedError


class VnniQuads(Quads):
    """Rows of 16 bytes by pairs, for to insert into half a register takes half the time; a permutation joins two."""

    def places(self, dwords: int) -> Sequence[int]:
        return [second + row for second in (0, self.v.lanes) for row in (0, dwords)]

    def join(self, x: Register, rows: Rows, part: Lanes, spare: Sequence[Register]) -> None:
        self.pair(x, rows[:2], part, spare[0])
        self.pair(spare[1], rows[2:], part, spare[0])
        self.asm.VPERMT2D(x, self.order, spare[1])

    def pair(self, x: Register, rows: Rows, part: Lanes, spare: Register) -> None:
        first, second = rows
        self.row(x, first, part)
        if second is not None and part is self.v:
            self.asm.VINSERTI32X4(x.ymm, x.ymm, second.sized(self.v.lanes), 1)
        elif second is not None:
            self.row(spare, second, part)
            self.asm.VINSERTI32X4(x.ymm, x.ymm, spare.xmm, 1)

    def multiply(self, acc: Register, source: Register, weights: Register, spare: Sequence[Register]) -> None:
        self.asm.VPDPBUSD(acc, source, weights)


class AvxVnniQuads(Quads):
    """Rows of 8 bytes."""

    def join(self, x: Register, rows: Rows, part: Lanes, spare: Sequence[Register]) -> None:
        self.pair(x, rows[:2], part, spare[0])
        if rows[2] is not None or rows[3] is not None:
            self.pair(spare[1], rows[2:], part, spare[0])
            self.asm.VINSERTI128(x, x, spare[1].xmm, 1)
        self.asm.VPERMD(x, self.order, x)

    def pair(self, x: Register, rows: Rows, part: Lanes, spare: Register) -> None:
        first, second = rows
        self.row(x, first, part)
        if second is not None and part is self.v:
            self.asm.VPINSRQ(x.xmm, x.xmm, second.sized(self.v.lanes), 1)
        elif second is not None:
            self.row(spare, second, part)
            self.asm.VPUNPCKLQDQ(x.xmm, x.xmm, spare.xmm)

    def multiply(self, acc: Register, source: Register, weights: Register, spare: Sequence[Register]) -> None:
        self.asm.VPDPBUSD_VEX(acc, source, weights)


ROWS: Final[Mapping[type[Dot], type[RowsInLanes]]] = MappingProxyType(
    {
        Bf16Dot: Bf16Pairs,
        WordsDot: BytesAsWords,
        AvxVnniDot: AvxVnniQuads,
        ShiftedAvxVnniDot: AvxVnniQuads,
        VnniDot: VnniQuads,
        ShiftedVnniDot: VnniQuads,
    }
)


def rows_in_lanes(types: Types, isa: str) -> type[RowsInLanes] | None:
    """How a level that `dot_level` names for these types brings rows into lanes; None where each term has its own."""
    dot = DOTS.get((types, isa_of(isa)))
    return None if dot is None else ROWS.get(dot)
