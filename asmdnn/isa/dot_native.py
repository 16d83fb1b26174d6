"""Dot products that are one instruction."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import ClassVar, Final

from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.dot_base import GROUP_BYTES, WHOLE, Blocks, Dot, GroupPart
from asmdnn.isa.dot_runs import END_CYCLES, RUN_GROUPS, HalfRuns, OneRun
from asmdnn.isa.pieces import as_wide, broadcast_bytes
from asmdnn.isa.vector import Row

SHIFT: Final = 128  # from s8 to u8


class F32Dot(Dot):
    """A group is one element, so no group is ever cut.  AVX-512 can broadcast it within the multiply."""

    def multiply(self, acc: Register, copy: Register, row: Register | Pointer) -> None:
        self.v.fma(acc, copy, row)

    def accumulate_first(self, acc: Register, copy: Row, row: Row | Sequence[Pointer], spare: Register) -> None:
        self.v.mul(acc, copy[0], row[0])

    def outer_product(
        self, acc: Sequence[Row], row: Row, column: Sequence[Pointer], spare: Row, group_bytes: int = GROUP_BYTES
    ) -> None:
        self.v.outer_product(acc, row, column, spare)


class HalvesDot(Dot):
    """Of pairs of floats of 16 bits, of which one may not be there."""

    def outer_product_of_parts(
        self, acc: Sequence[Row], row: Row, column: Sequence[Pointer], spare: Row, part: GroupPart = WHOLE
    ) -> None:
        if part == WHOLE:
            self.outer_product(acc, row, column, spare)
            return
        for i, group in enumerate(column):
            copy = spare[i % len(spare)]
            self.broadcast_part(copy, group, part)
            for j, factor in enumerate(row):
                self.multiply(acc[i][j], copy, factor)

    def broadcast_part(self, copy: Register, group: Pointer, part: GroupPart) -> None:
        """A shift brings zeros in one instruction, where the bytes before may be read."""
        if part.follows:
            missing = GROUP_BYTES - part.end
            at = group.shifted(-missing).sized(GROUP_BYTES)
            self.asm.VPSRLD(copy, at.broadcast_to(self.v.lanes), 8 * missing)
        else:
            broadcast_bytes(self.v, copy, group.shifted(part.first), part.end - part.first, part.first)


class Bf16Dot(HalvesDot):
    """Two products, the one of odd k first, each added with one rounding; denormals count as zero."""

    tile_product: ClassVar[str] = "TDPBF16PS"
    has_halves: ClassVar[bool] = True

    def multiply(self, acc: Register, copy: Register, row: Register | Pointer) -> None:
        self.asm.VDPBF16PS(acc, as_wide(copy, acc), row)


class F16Dot(HalvesDot):
    """Two products, of even and of odd k, in a half of a lane each, whose sums are f16; runs of k are added in f32.

    Denormals are numbers, whatever MXCSR says.
    """

    def multiply(self, acc: Register, copy: Register, row: Register | Pointer) -> None:
        self.asm.VFMADD231PH(acc, copy, row)

    @classmethod
    def end_cycles(cls, rows: int, vectors: int, steps: int) -> float:
        return END_CYCLES * rows * vectors * -(-steps // RUN_GROUPS)

    def runs(self, acc: Sequence[Row]) -> OneRun:
        return HalfRuns(self.v, acc)


class VnniDot(Dot):
    """Exact products of four bytes, sums modulo 2^32."""

    tile_product: ClassVar[str] = "TDPBUSD"
    has_halves: ClassVar[bool] = True

    def multiply(self, acc: Register, copy: Register, row: Register | Pointer) -> None:
        self.asm.VPDPBUSD(acc, as_wide(copy, acc), row)


class AvxVnniDot(VnniDot):
    """The same under its VEX encoding, which other CPUs have."""

    has_halves: ClassVar[bool] = False

    def multiply(self, acc: Register, copy: Register, row: Register | Pointer) -> None:
        self.asm.VPDPBUSD_VEX(acc, copy, row)


class VnniWordsDot(Dot):
    """Exact products of two words, sums modulo 2^32."""

    def multiply(self, acc: Register, copy: Register, row: Register | Pointer) -> None:
        self.asm.VPDPWSSD(acc, copy, row)


class AvxVnniWordsDot(Dot):
    """The same under its VEX encoding."""

    def multiply(self, acc: Register, copy: Register, row: Register | Pointer) -> None:
        self.asm.VPDPWSSD_VEX(acc, copy, row)


class Shifted(Dot):
    """s8 become u8 by 128 more, as they are broadcast.

    The 128s stay in a register: from memory they would be a load for each group of src, and loads are what a block
    lacks.
    """

    shift: ClassVar[int] = SHIFT
    spare_registers: ClassVar[int] = 2

    @contextmanager
    def ready(self) -> Iterator[None]:
        v = self.v
        self.shifts: Register = v.registers.take("128 in every byte")
        v.load(self.shifts, self.asm.const(bytes((SHIFT,)) * v.bytes, v.bytes, size=v.bytes))
        yield
        v.registers.free(self.shifts)

    def keep(self, copy: Row, group: Pointer, group_bytes: int = GROUP_BYTES) -> None:
        self.broadcast(copy[0], group, group_bytes)

    def arrange_src(self, copy: Row) -> None:
        self.v.asm.VXORPS(copy[0], copy[0], self.shifts)

    def accumulate_shift(self, acc: Register, row: Row | Sequence[Pointer], spare: Register) -> None:
        self.accumulate(acc, [self.shifts], row, spare)


class ShiftedVnniDot(Shifted, VnniDot):
    """One instruction broadcasts and shifts."""

    tile_product: ClassVar[str] = "TDPBSSD"  # tiles take s8 as they are

    def broadcast(self, copy: Register, group: Pointer, group_bytes: int = GROUP_BYTES) -> None:
        if group_bytes < GROUP_BYTES:
            super().broadcast(copy, group, group_bytes)
            self.asm.VPXORD(copy, copy, self.shifts)
        else:
            copies = group.sized(GROUP_BYTES).broadcast_to(self.v.lanes)
            self.asm.VPXORD(copy, self.shifts, copies)


class ShiftedAvxVnniDot(Shifted, AvxVnniDot):
    """With the 128s, 16 registers are too few for 6 x 2 sums."""

    blocks: ClassVar[Mapping[int, Blocks]] = MappingProxyType({16: {1: 11, 2: 5, 4: 2, 8: 1}})

    def broadcast(self, copy: Register, group: Pointer, group_bytes: int = GROUP_BYTES) -> None:
        super().broadcast(copy, group, group_bytes)
        self.asm.VPXOR(copy, copy, self.shifts)
