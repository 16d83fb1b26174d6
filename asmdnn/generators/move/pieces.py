"""Loads and stores of few bytes, and of elements that lie apart, that touch no other byte.

AVX2 masks only 4-byte elements, and its masked stores are microcode on Zen: pieces of 8, 4, 2 and 1 bytes serve all.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from asmdnn.isa.assembler import Assembler, Register, mem

HALF_BYTES = 16


@dataclass(frozen=True, slots=True)
class Place:
    """Elements in memory: from base + index + offset bytes on, `step` bytes apart."""

    base: Register
    offset: int
    step: int
    index: Register | None = None

    def at(self, offset_bytes: int, size: int) -> Any:
        """Memory operand of `size` bytes, that far behind the first element."""
        return mem(self.base, self.offset + offset_bytes, index=self.index, size=size)

    def from_element(self, number: int) -> "Place":
        return Place(self.base, self.offset + number * self.step, self.step, self.index)


def pieces(count: int) -> Iterator[tuple[int, int]]:
    """(offset, size) of the powers of two, falling, that make up `count` <= 16 bytes."""
    offset = 0
    for size in (16, 8, 4, 2, 1):
        if count - offset >= size:
            yield offset, size
            offset += size


def insert(asm: Assembler, x: Register, source: Any, size: int, lane: int) -> None:
    """Element `lane` of an xmm register from memory, the others stay."""
    {1: asm.VPINSRB, 2: asm.VPINSRW, 4: asm.VPINSRD, 8: asm.VPINSRQ}[size](x, x, source, lane)


def extract(asm: Assembler, target: Any, x: Register, size: int, lane: int) -> None:
    """Element `lane` of an xmm register to memory."""
    if lane == 0 and size >= 4:
        (asm.VMOVD if size == 4 else asm.VMOVQ)(target, x)
    else:
        {1: asm.VPEXTRB, 2: asm.VPEXTRW, 4: asm.VPEXTRD, 8: asm.VPEXTRQ}[size](target, x, lane)


def load_half(asm: Assembler, x: Register, place: Place, count: int) -> None:
    """`count` <= 16 dense bytes into an xmm register, zeros behind them."""
    for offset, size in pieces(count):
        source = place.at(offset, size)
        if size == HALF_BYTES:
            asm.VMOVDQU(x, source)
        elif offset == 0 and size >= 4:
            (asm.VMOVD if size == 4 else asm.VMOVQ)(x, source)
        else:
            if offset == 0:
                asm.VPXOR(x, x, x)
            insert(asm, x, source, size, offset // size)


def store_half(asm: Assembler, place: Place, x: Register, count: int) -> None:
    """The first `count` <= 16 bytes of an xmm register."""
    for offset, size in pieces(count):
        if size == HALF_BYTES:
            asm.VMOVDQU(place.at(offset, size), x)
        else:
            extract(asm, place.at(offset, size), x, size, offset // size)


def load_elements(asm: Assembler, x: Register, place: Place, count: int, size: int, spare: Register) -> None:
    """`count` elements of `size` bytes into the low end of a ymm register; what is behind them is undefined."""
    if count * size == 2 * HALF_BYTES and place.step == size:
        asm.VMOVDQU(x, place.at(0, 2 * HALF_BYTES))
        return
    low = min(count, HALF_BYTES // size)
    load_part(asm, x.xmm, place, low, size)
    if count > low:
        load_part(asm, spare.xmm, place.from_element(low), count - low, size)
        asm.VINSERTI128(x, x, spare.xmm, 1)


def load_part(asm: Assembler, x: Register, place: Place, count: int, size: int) -> None:
    if place.step == size:
        load_half(asm, x, place, count * size)
        return
    asm.VPXOR(x, x, x)
    for lane in range(count):
        insert(asm, x, place.at(lane * place.step, size), size, lane)


def store_elements(asm: Assembler, place: Place, x: Register, count: int, size: int, spare: Register) -> None:
    """The first `count` elements of a ymm register; `spare` is overwritten."""
    if count * size == 2 * HALF_BYTES and place.step == size:
        asm.VMOVDQU(place.at(0, 2 * HALF_BYTES), x)
        return
    low = min(count, HALF_BYTES // size)
    store_part(asm, place, x.xmm, low, size)
    if count > low:
        asm.VEXTRACTI128(spare.xmm, x, 1)
        store_part(asm, place.from_element(low), spare.xmm, count - low, size)


def store_part(asm: Assembler, place: Place, x: Register, count: int, size: int) -> None:
    if place.step == size:
        store_half(asm, place, x, count * size)
        return
    for lane in range(count):
        extract(asm, place.at(lane * place.step, size), x, size, lane)
