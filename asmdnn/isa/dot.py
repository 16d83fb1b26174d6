"""The dot products of the instruction set: what one multiply-accumulate computes, a class for each.

    acc[n] += sum over the k of one group of src[k] * weights[k, n]

A group is the GROUP_BYTES of consecutive k that an instruction multiplies at once: 1 element of f32, 2 of bf16, 4 of
u8.  It fills one lane, so src is broadcast a group at a time, and a vector of weights holds the same group of k for
each of its columns ("VNNI order").  Sums have 32 bits whatever is multiplied, so that bodies written for f32 hold for
all: an element of k there is a group here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from asmdnn.errors import Unimplemented
from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.elements import element_of
from asmdnn.isa.levels import AVX2, AVX2_VNNI, AVX512_CORE, AVX512_CORE_BF16, AVX512_CORE_VNNI, Isa, isa_of
from asmdnn.isa.pieces import broadcast_bytes
from asmdnn.isa.vector import Vector
from asmdnn.types import DataType, IsaName, bf16, f32, s8, s32, u8

GROUP_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Types:
    """Of the elements that are multiplied, and of their sums."""

    src: DataType
    weights: DataType
    sums: DataType

    @property
    def group(self) -> int:
        """Elements of k in a group."""
        return GROUP_BYTES // self.src.size_bytes

    def groups_of(self, depth: int) -> list[int]:
        """The groups of `depth` elements of src, by their sizes in bytes: the last one may be cut."""
        whole, rest = divmod(depth, self.group)
        return [GROUP_BYTES] * whole + [rest * self.src.size_bytes] * bool(rest)

    def __str__(self) -> str:
        """As in the name of a kernel."""
        return "f32" if self == F32 else f"{self.src}{self.weights}{self.sums}"


F32: Final = Types(f32, f32, f32)
BF16: Final = Types(bf16, bf16, f32)
U8S8: Final = Types(u8, s8, s32)


class Dot:
    """The dot product of one triple of types, emitted with the registers of `v`."""

    def __init__(self, types: Types, v: Vector) -> None:
        self.types, self.v, self.asm = types, v, v.asm

    def multiply(self, acc: Register, copy: Register, row: Register | Pointer) -> None:
        """acc += copy . row in every lane: a group of src, broadcast, and a group of weights for each column."""
        raise NotImplementedError

    def broadcast(self, copy: Register, group: Pointer, group_bytes: int = GROUP_BYTES) -> None:
        """A group of src in every lane; of the last group of a row maybe `group_bytes` only, with zeros behind."""
        broadcast_bytes(self.v, copy, group, group_bytes)

    def to_f32(self, sums: Register) -> None:
        """The sums as f32, each rounded to nearest even."""
        element_of(self.types.sums).widen(self.v, sums, sums)

    def outer_product(
        self,
        acc: Sequence[Sequence[Register]],
        row: Sequence[Register],
        column: Sequence[Pointer],
        spare: Sequence[Register],
        group_bytes: int = GROUP_BYTES,
    ) -> None:
        """acc[i][j] += column[i] . row[j], column[i] being a group in memory of which `group_bytes` exist.

        Spare registers take turns, so that a broadcast does not wait for the multiplies of the one before.
        """
        for i, group in enumerate(column):
            copy = spare[i % len(spare)]
            self.broadcast(copy, group, group_bytes)
            for j, factor in enumerate(row):
                self.multiply(acc[i][j], copy, factor)


class F32Dot(Dot):
    """A group is one element, so no group is ever cut.  AVX-512 can broadcast it within the multiply."""

    def multiply(self, acc: Register, copy: Register, row: Register | Pointer) -> None:
        self.v.fma(acc, copy, row)

    def outer_product(
        self,
        acc: Sequence[Sequence[Register]],
        row: Sequence[Register],
        column: Sequence[Pointer],
        spare: Sequence[Register],
        group_bytes: int = GROUP_BYTES,
    ) -> None:
        self.v.outer_product(acc, row, column, spare)


class Bf16Dot(Dot):
    """Two products, the one of odd k first, each added with one rounding; denormals count as zero."""

    def multiply(self, acc: Register, copy: Register, row: Register | Pointer) -> None:
        self.asm.VDPBF16PS(acc, copy, row)


class VnniDot(Dot):
    """Exact products of four bytes, sums modulo 2^32."""

    def multiply(self, acc: Register, copy: Register, row: Register | Pointer) -> None:
        self.asm.VPDPBUSD(acc, copy, row)


class AvxVnniDot(VnniDot):
    """The same under its VEX encoding, which other CPUs have."""

    def multiply(self, acc: Register, copy: Register, row: Register | Pointer) -> None:
        self.asm.VPDPBUSD_VEX(acc, copy, row)


DOTS: Final[dict[tuple[Types, Isa], type[Dot]]] = {
    (F32, AVX2): F32Dot,
    (F32, AVX512_CORE): F32Dot,
    (U8S8, AVX2_VNNI): AvxVnniDot,
    (U8S8, AVX512_CORE_VNNI): VnniDot,
    (BF16, AVX512_CORE_BF16): Bf16Dot,
}


@cache
def dot_level(types: Types, isa: str) -> IsaName:
    """The level whose dot product of these types is the best for a CPU of level `isa`.

    Raises Unimplemented with the reason if there is none.
    """
    levels = [level for of, level in DOTS if of == types]
    known = [level for level in levels if level.features <= isa_of(isa).features]
    if known:
        return max(known, key=lambda level: level.rank).name
    reason = f"isa {isa} has no dot product of {types}" if levels else f"no isa has a dot product of {types} here"
    words = map(str, levels or dict.fromkeys(of for of, _ in DOTS))
    raise Unimplemented(f"{reason}: take {' or '.join(words)}")


def dot_of(types: Types, isa: str, v: Vector) -> Dot:
    """The dot product of these types that code of level `isa` uses, emitted with the registers of `v`.

    Raises Unimplemented as `dot_level` does.
    """
    return DOTS[types, isa_of(dot_level(types, isa))](types, v)
