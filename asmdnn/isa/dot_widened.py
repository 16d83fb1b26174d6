"""Dot products of types that a level does not multiply: widened in registers, and no less exact.

Floats of 16 bits and bytes become f32 as weights are loaded; src is f32 in memory, since an element of it would be
widened for every vector of columns.  Pairs of bytes become words, whose products VPMADDWD adds as dwords: exact, where
VPMADDUBSW would saturate.  And sums of integers, which other products have left.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Final

from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.dot_base import GROUP_BYTES, Blocks, Dot, Types
from asmdnn.isa.dot_native import F32Dot
from asmdnn.isa.elements import BYTE_PAIRS, element_of
from asmdnn.isa.vector import Lanes, Row, Vector
from asmdnn.types import s8

BYTE_BITS: Final = 8
LOW_BYTES: Final = 0x00FF00FF
STARTED: Final = 4  # instructions in a cycle, loads too, where multiplies and additions take turns, on a Zen 3


class WidenedDot(F32Dot):
    """f32 times weights of fewer bytes."""

    is_native: ClassVar[bool] = False
    reads_memory: ClassVar[bool] = False

    def load(self, row: Row, part: Lanes, at: Pointer) -> None:
        element_of(self.types.weights).load(self.v, row[0], at, part)


class SteppedDot(Dot):
    """A product in a register of its own, which is added to the sums."""

    is_native: ClassVar[bool] = False
    reads_memory: ClassVar[bool] = False
    spare_registers: ClassVar[int] = 2
    product_registers: ClassVar[int] = 1
    blocks: ClassVar[Mapping[int, Blocks]] = MappingProxyType(
        {16: {1: 11, 2: 5, 4: 2, 8: 1}, 32: {1: 24, 2: 14, 4: 6, 8: 2, 16: 1}}
    )

    def product(self, x: Register, copy: Register, row: Register | Pointer) -> None:
        """x = copy . row."""
        raise NotImplementedError

    def accumulate(self, acc: Register, copy: Row, row: Row | Sequence[Pointer], spare: Register) -> None:
        self.product(spare, copy[0], row[0])
        self.asm.VPADDD(acc, acc, spare)

    def outer_product(
        self, acc: Sequence[Row], row: Row, column: Sequence[Pointer], spare: Row, group_bytes: int = GROUP_BYTES
    ) -> None:
        copy, product = spare[:2]
        for sums, group in zip(acc, column, strict=True):
            self.broadcast(copy, group, group_bytes)
            for x, factor in zip(sums, row, strict=True):
                self.accumulate(x, (copy,), (factor,), product)

    def one_row(
        self, acc: Row, group: tuple[Pointer, int], weights: Sequence[tuple[Lanes, Pointer]], row: Row, spare: Row
    ) -> None:
        copy, product = spare[:2]
        self.broadcast(copy, *group)
        for x, (part, at) in zip(acc, weights, strict=True):
            self.load(row, part, at)
            self.accumulate(x, (copy,), row, product)


class S32Dot(SteppedDot):
    """Products and sums modulo 2^32."""

    def product(self, x: Register, copy: Register, row: Register | Pointer) -> None:
        self.asm.VPMULLD(x, copy, row)


class AddedWordsDot(SteppedDot):
    """Pairs of words, of both factors."""

    def product(self, x: Register, copy: Register, row: Register | Pointer) -> None:
        self.asm.VPMADDWD(x, copy, row)


class PairsDot(AddedWordsDot):
    """Pairs of words, which src is in memory, and of bytes, which become words as they are loaded.

    6 x 2 sums leave no register for the mask of a tail: weights are in panels, whose padding is multiplied.
    """

    blocks: ClassVar[Mapping[int, Blocks]] = MappingProxyType({16: {1: 12, 2: 6, 4: 2, 8: 1}})

    @classmethod
    def busy_cycles(cls, rows: int, vectors: int) -> float:
        return (2 * rows * vectors + rows + 2 * vectors) / STARTED

    def load(self, row: Row, part: Lanes, at: Pointer) -> None:
        BYTE_PAIRS.lanes(self.v, part).load(row[0], at)


class WordsDot(Dot):
    """The even and the odd bytes of a group as words.

    A register of weights becomes two, which all rows share; so does a group of src, which all vectors share.
    """

    is_native: ClassVar[bool] = False
    reads_memory: ClassVar[bool] = False
    row_registers: ClassVar[int] = 2
    copy_registers: ClassVar[int] = 2
    spare_registers: ClassVar[int] = 3
    product_registers: ClassVar[int] = 1
    blocks: ClassVar[Mapping[int, Blocks]] = MappingProxyType(
        {16: {1: 9, 2: 4, 4: 1, 8: 1}, 32: {1: 22, 2: 12, 4: 5, 8: 1, 16: 1}}
    )

    @classmethod
    def busy_cycles(cls, rows: int, vectors: int) -> float:
        return (4 * rows * vectors + 3 * rows + 4 * vectors) / STARTED

    def __init__(self, types: Types, v: Vector) -> None:
        super().__init__(types, v)
        self.of_src = self.signed if types.src == s8 else self.unsigned

    def load(self, row: Row, part: Lanes, at: Pointer) -> None:
        part.load(row[1], at)
        self.arrange(row)

    def arrange_src(self, copy: Row) -> None:
        self.of_src(*copy)

    def arrange(self, row: Row) -> None:
        self.signed(*row)

    def accumulate(self, acc: Register, copy: Row, row: Row | Sequence[Pointer], spare: Register) -> None:
        for words, factor in zip(copy, row, strict=True):
            self.asm.VPMADDWD(spare, words, factor)
            self.asm.VPADDD(acc, acc, spare)

    def signed(self, even: Register, x: Register) -> None:
        """even, x = the even and the odd bytes of x."""
        self.asm.VPSLLW(even, x, BYTE_BITS)
        self.asm.VPSRAW(even, even, BYTE_BITS)
        self.asm.VPSRAW(x, x, BYTE_BITS)

    def unsigned(self, even: Register, x: Register) -> None:
        self.asm.VANDPS(even, x, self.v.splat(LOW_BYTES))
        self.asm.VPSRLW(x, x, BYTE_BITS)

    def outer_product(
        self, acc: Sequence[Row], row: Row, column: Sequence[Pointer], spare: Row, group_bytes: int = GROUP_BYTES
    ) -> None:
        even, odd, product = spare[:3]
        for sums, group in zip(acc, column, strict=True):
            self.broadcast(odd, group, group_bytes)
            self.of_src(even, odd)
            for copy, words in ((even, row[::2]), (odd, row[1::2])):
                for x, factor in zip(sums, words, strict=True):
                    self.asm.VPMADDWD(product, copy, factor)
                    self.asm.VPADDD(x, x, product)

    def one_row(
        self, acc: Row, group: tuple[Pointer, int], weights: Sequence[tuple[Lanes, Pointer]], row: Row, spare: Row
    ) -> None:
        even, odd, product = spare[:3]
        self.broadcast(odd, *group)
        self.of_src(even, odd)
        for x, (part, at) in zip(acc, weights, strict=True):
            self.load(row, part, at)
            self.accumulate(x, (even, odd), row, product)
