"""Elements of any type in vectors of any width: as f32 in every lane, and loads and stores of few bytes.

AVX2 masks only 4-byte elements, and its masked stores are microcode on Zen: pieces of 8, 4, 2 and 1 bytes serve all.
Types are named as in asmdnn.types; "b32", "b16" and "b8" are plain bits, which stay as they are.
"""

from collections.abc import Callable, Iterator
from typing import Final

from asmdnn.isa.assembler import Assembler, Pointer, Register
from asmdnn.isa.vector import Vector

HALF_BYTES: Final = 16
BF16_SHIFT: Final = 16  # bf16 is the upper half of an f32


class Elements:
    """Emits into the assembler of a vector, whatever its width."""

    def __init__(self, v: Vector) -> None:
        self.v, self.asm = v, v.asm

    def broadcast_bytes(self, dst: Register, src: Pointer, count: int) -> None:
        """The first `count` <= 4 bytes of src in every 4-byte lane, with zeros behind them; no other byte is read."""
        if count == 4:
            self.v.broadcast(dst, src)
            return
        self.v.zero(dst)
        for offset, size in pieces(count):
            insert(self.asm, dst.xmm, src.shifted(offset).sized(size), size, offset // size)
        self.asm.VPBROADCASTD(dst, dst.xmm)


def widen(asm: Assembler, x: Register, source: Register | Pointer, kind: str) -> None:
    """x = as many elements of type `kind` as it has 4-byte lanes, as f32; `source` may be memory or the low part of x.

    Exact but for s32, which is rounded to nearest even; f32 and plain bits must be in x already and stay as they are.
    """
    if kind in _WIDENINGS:
        _WIDENINGS[kind](asm, x, source)


def low_part(x: Register, size_bytes: int) -> Register:
    """The part of x that holds an element of that size for each of its 4-byte lanes, at least an xmm register."""
    if size_bytes == 4:
        return x
    return x.ymm if x.size_bytes * size_bytes // 4 > HALF_BYTES else x.xmm


def _bf16(asm: Assembler, x: Register, source: Register | Pointer) -> None:
    asm.VPMOVZXWD(x, source)
    asm.VPSLLD(x, x, BF16_SHIFT)


def _s8(asm: Assembler, x: Register, source: Register | Pointer) -> None:
    asm.VPMOVSXBD(x, source)
    asm.VCVTDQ2PS(x, x)


def _u8(asm: Assembler, x: Register, source: Register | Pointer) -> None:
    asm.VPMOVZXBD(x, source)
    asm.VCVTDQ2PS(x, x)


_WIDENINGS: Final[dict[str, Callable[[Assembler, Register, Register | Pointer], None]]] = {
    "s32": lambda asm, x, source: asm.VCVTDQ2PS(x, source),
    "f16": lambda asm, x, source: asm.VCVTPH2PS(x, source),
    "bf16": _bf16,
    "s8": _s8,
    "u8": _u8,
}
WIDENED: Final = tuple(_WIDENINGS)  # the types that are not f32 or plain bits


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
    """`count` <= 16 bytes into an xmm register, zeros behind them."""
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
