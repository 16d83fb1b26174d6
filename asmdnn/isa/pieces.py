"""Few bytes between memory and the low end of registers; no other byte is read or written.

AVX2 masks only 4-byte elements, and its masked stores are microcode on Zen: pieces of 8, 4, 2 and 1 bytes serve all.
"""

from collections.abc import Iterator
from typing import Final

from asmdnn.isa.assembler import Assembler, Pointer, Register
from asmdnn.isa.vector import Vector

HALF_BYTES: Final = 16


def broadcast_bytes(v: Vector, dst: Register, src: Pointer, count: int, first: int = 0) -> None:
    """`count` <= 4 bytes from src on in every 4-byte lane, from its byte `first` on, with zeros around them.

    first: a multiple of every power of two that makes up `count`.
    """
    if count == 4:
        v.broadcast(dst, src)
        return
    v.zero(dst)
    for offset, size in pieces(count):
        insert(v.asm, dst.xmm, src.shifted(offset).sized(size), size, (first + offset) // size)
    v.asm.VPBROADCASTD(dst, dst.xmm)


def low_part(x: Register, size_bytes: int) -> Register:
    """The part of x that holds an element of that size for each of its 4-byte lanes, at least an xmm register."""
    if size_bytes == 4:
        return x
    return x.ymm if x.size_bytes * size_bytes // 4 > HALF_BYTES else x.xmm


def as_wide(x: Register, other: Register) -> Register:
    """x, or its low half beside half a register."""
    return x.ymm if other.size_bytes < x.size_bytes else x


def pieces(count: int) -> Iterator[tuple[int, int]]:
    """(offset, size) of the powers of two, falling, that make up `count` <= 16 bytes."""
    offset = 0
    for size in (16, 8, 4, 2, 1):
        if count - offset >= size:
            yield offset, size
            offset += size


def insert(asm: Assembler, x: Register, source: Pointer, size: int, lane: int) -> None:
    """Element `lane` of an xmm register from memory, the others stay."""
    {1: asm.VPINSRB, 2: asm.VPINSRW, 4: asm.VPINSRD, 8: asm.VPINSRQ}[size](x, x, source, lane)


def extract(asm: Assembler, target: Pointer, x: Register, size: int, lane: int) -> None:
    """Element `lane` of an xmm register to memory."""
    if lane == 0 and size >= 4:
        (asm.VMOVD if size == 4 else asm.VMOVQ)(target, x)
    else:
        {1: asm.VPEXTRB, 2: asm.VPEXTRW, 4: asm.VPEXTRD, 8: asm.VPEXTRQ}[size](target, x, lane)


def load_bytes(asm: Assembler, x: Register, source: Pointer, count: int) -> None:
    """`count` <= 16 bytes into an xmm register, zeros after them."""
    for offset, size in pieces(count):
        piece = source.shifted(offset).sized(size)
        if size == HALF_BYTES:
            asm.VMOVDQU(x, piece)
        elif offset == 0 and size >= 4:
            (asm.VMOVD if size == 4 else asm.VMOVQ)(x, piece)
        else:
            if offset == 0:
                asm.VPXOR(x, x, x)
            insert(asm, x, piece, size, offset // size)


def store_bytes(asm: Assembler, target: Pointer, x: Register, count: int) -> None:
    """The first `count` <= 16 bytes of an xmm register."""
    for offset, size in pieces(count):
        piece = target.shifted(offset).sized(size)
        if size == HALF_BYTES:
            asm.VMOVDQU(piece, x)
        else:
            extract(asm, piece, x, size, offset // size)
