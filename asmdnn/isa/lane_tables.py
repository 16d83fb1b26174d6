"""Look-ups of lanes of four bytes by numbers, which are data, in a table of up to four registers: of 32 elements with
AVX2, 64 with AVX-512."""

from collections.abc import Sequence
from typing import Final

from asmdnn.isa.assembler import Register
from asmdnn.isa.avx2 import Avx2
from asmdnn.isa.avx512 import Avx512
from asmdnn.isa.vector import Vector

MOST_REGISTERS: Final = 4  # of a table
SPARE: Final = 2  # registers that a look-up overwrites


class LaneTables:
    """Emits look-ups in a table of so many registers.

    What says which of them an index means is found once for many look-ups: the selectors beside it.
    """

    def __init__(self, v: Vector, registers: int, spare: Sequence[Register]) -> None:
        self.v, self.asm, self.registers, self.spare = v, v.asm, registers, spare

    @staticmethod
    def selectors_of(registers: int) -> int:
        """How many an index has."""
        raise NotImplementedError

    def selectors(self) -> list[Register]:
        """Those of an index."""
        raise NotImplementedError

    def select(self, selectors: Sequence[Register], index: Register) -> None:
        """Find them."""
        raise NotImplementedError

    def look_up(self, x: Register, index: Register, selectors: Sequence[Register], table: Sequence[Register]) -> None:
        """Each lane of x = the element of the table that its lane of `index` says."""
        raise NotImplementedError


class Avx2Tables(LaneTables):
    """VPERMD of each register, and blends by the bits of the index above its lane."""

    @staticmethod
    def selectors_of(registers: int) -> int:
        return (registers - 1).bit_length()

    def selectors(self) -> list[Register]:
        found: list[Register] = self.v.registers.take("selector", self.selectors_of(self.registers))
        return found

    def select(self, selectors: Sequence[Register], index: Register) -> None:
        for number, selector in enumerate(selectors):  # bit 3, then bit 4, as the sign
            self.asm.VPSLLD(selector, index, 28 - number)

    def look_up(self, x: Register, index: Register, selectors: Sequence[Register], table: Sequence[Register]) -> None:
        self._of_two(x, index, selectors, table[:2])
        if len(table) > 2:
            self._of_two(self.spare[1], index, selectors, table[2:])
            self.asm.VBLENDVPS(x, x, self.spare[1], selectors[1])

    def _of_two(self, x: Register, index: Register, selectors: Sequence[Register], table: Sequence[Register]) -> None:
        self.asm.VPERMD(x, index, table[0])
        if len(table) > 1:
            self.asm.VPERMD(self.spare[0], index, table[1])
            self.asm.VBLENDVPS(x, x, self.spare[0], selectors[0])


class Avx512Tables(LaneTables):
    """VPERMD of one register, VPERMI2D of two, and those of the upper half under a mask."""

    @staticmethod
    def selectors_of(registers: int) -> int:
        return int(registers > 2)

    def selectors(self) -> list[Register]:
        return [self.asm.masks.take("upper half") for _ in range(self.selectors_of(self.registers))]

    def select(self, selectors: Sequence[Register], index: Register) -> None:
        for mask in selectors:
            self.asm.VPTESTMD(mask, index, self.v.splat(2 * self.v.lanes))

    def look_up(self, x: Register, index: Register, selectors: Sequence[Register], table: Sequence[Register]) -> None:
        self._of_two(x, index, table[:2])
        if len(table) > 2:
            self._of_two(self.spare[0], index, table[2:])
            self.v.select(x, selectors[0], self.spare[0], x)

    def _of_two(self, x: Register, index: Register, table: Sequence[Register]) -> None:
        if len(table) == 1:
            self.asm.VPERMD(x, index, table[0])
        else:
            self.v.move(x, index)
            self.asm.VPERMI2D(x, *table)


_BY_WIDTH: Final[dict[int, type[LaneTables]]] = {Avx2.bytes: Avx2Tables, Avx512.bytes: Avx512Tables}


def lane_tables(vector_bytes: int) -> type[LaneTables]:
    """Those of vectors of so many bytes."""
    return _BY_WIDTH[vector_bytes]
