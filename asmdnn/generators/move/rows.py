"""Rows of bytes, copied or zeroed: for reorders, shuffles, padding and sums of weights.

| argument | dtype[shape] | what it is |
|---|---|---|
| src | bytes | what the spec's formula reads, no other byte |
| dst | bytes | what the spec's formula writes, no other byte; never overlaps src |

Needs AVX2, which every supported level has.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.move.shuffle_body import VECTOR_BYTES, if_aligned
from asmdnn.isa.assembler import Assembler, mem

SRC, DST = range(2)
ARGUMENTS = ("src", "dst")
UNROLLED_BYTES = 512
SIZES = (1, 2, 4, 8, 16, 32)
IN_FLIGHT = 8  # vectors loaded before the first of them is stored


@dataclass(frozen=True, slots=True)
class RowsSpec:
    """dst[r, 0:row_bytes] = src[r, 0:row_bytes], or 0 when `zero`; row r is r * step bytes from its pointer.

    streaming: stores go past the caches if dst is aligned to 32 bytes, as row_bytes and dst_step then must be.
    """

    isa: str
    rows: int
    row_bytes: int
    src_step: int
    dst_step: int
    zero: bool = False
    streaming: bool = False

    @property
    def name(self) -> str:
        source = "zero" if self.zero else f"s{self.src_step}"
        streaming = "_streaming" * self.streaming
        return f"rows_{self.rows}x{self.row_bytes}_{source}_d{self.dst_step}{streaming}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        """What the frame points to, in order."""
        return ARGUMENTS

    def footprint(self) -> Footprint:
        reads, writes = (
            tuple(Range(argument, r * step, r * step + self.row_bytes) for r in range(self.rows))
            for argument, step in ((SRC, self.src_step), (DST, self.dst_step))
        )
        return Footprint(() if self.zero else reads, writes)

    def generate(self, asm: Assembler) -> None:
        registers = [asm.gp.take(name) for name in ("src", "dst", "rows left", "offset", "blocks left")]
        src, dst, left = registers[:3]
        asm.MOV(src, mem(asm.frame, 8 * SRC))
        asm.MOV(dst, mem(asm.frame, 8 * DST))
        data = asm.vectors(VECTOR_BYTES, 16).take("data", IN_FLIGHT)
        for x in data if self.zero else ():
            asm.VPXOR(x, x, x)
        if self.streaming:
            with if_aligned(asm, dst, VECTOR_BYTES, left):
                self.all_rows(asm, registers, data, asm.VMOVNTDQ)
                asm.SFENCE()
                asm.ret()
        self.all_rows(asm, registers, data, asm.VMOVDQU)
        asm.ret()

    def all_rows(self, asm: Assembler, registers: list[Any], data: list[Any], store_vector: Any) -> None:
        src, dst, left, at, blocks = registers
        asm.MOV(left, self.rows)
        with asm.loop(left, "rows"):
            looped = self.row_bytes // UNROLLED_BYTES if self.row_bytes > UNROLLED_BYTES else 0
            if looped:
                asm.XOR(at, at)
                asm.MOV(blocks, looped)
                with asm.loop(blocks, "blocks"):
                    self.run(asm, (src, at), (dst, at), 0, UNROLLED_BYTES, data, store_vector)
                    asm.ADD(at, UNROLLED_BYTES)
            done = looped * UNROLLED_BYTES
            self.run(asm, (src, None), (dst, None), done, self.row_bytes - done, data, store_vector)
            asm.ADD(src, self.src_step)
            asm.ADD(dst, self.dst_step)

    def run(
        self,
        asm: Assembler,
        src: tuple[Any, Any],
        dst: tuple[Any, Any],
        start: int,
        count: int,
        data: list[Any],
        store_vector: Any,
    ) -> None:
        """`count` bytes from `start` on; a rest that no vector fits may go back into what is done already."""
        pieces = list(cover(start, count))
        for first in range(0, len(pieces), IN_FLIGHT):
            batch = list(zip(data, pieces[first : first + IN_FLIGHT], strict=False))
            for x, (at, size) in () if self.zero else batch:
                load(asm, x, mem(src[0], at, index=src[1], size=size), size)
            for x, (at, size) in batch:
                where = mem(dst[0], at, index=dst[1], size=size)
                if size == VECTOR_BYTES:
                    store_vector(where, x)
                else:
                    store(asm, where, x, size)


def cover(start: int, count: int) -> Iterator[tuple[int, int]]:
    """(offset, size) of moves that cover [start, start + count); some may reach back, as far as 0."""
    at, end = start, start + count
    while at < end:
        covering = next((size for size in SIZES if size >= end - at), VECTOR_BYTES)
        if at + VECTOR_BYTES > end >= covering:
            at = end - covering  # one move; it may overlap the one before it
        size = next(size for size in reversed(SIZES) if size <= end - at)
        yield at, size
        at += size


def load(asm: Assembler, x: Any, where: Any, size: int) -> None:
    """`size` bytes, a power of two up to 32, into the low end of a ymm register."""
    if size <= 2:
        asm.VPXOR(x, x, x)  # or the insertion waits for the register's last user
        (asm.VPINSRW if size == 2 else asm.VPINSRB)(x.xmm, x.xmm, where, 0)
    elif size <= 8:
        (asm.VMOVD if size == 4 else asm.VMOVQ)(x.xmm, where)
    else:
        asm.VMOVDQU(x if size == VECTOR_BYTES else x.xmm, where)


def store(asm: Assembler, where: Any, x: Any, size: int) -> None:
    """The low `size` bytes of a ymm register."""
    if size <= 2:
        (asm.VPEXTRW if size == 2 else asm.VPEXTRB)(where, x.xmm, 0)
    elif size <= 8:
        (asm.VMOVD if size == 4 else asm.VMOVQ)(where, x.xmm)
    else:
        asm.VMOVDQU(where, x if size == VECTOR_BYTES else x.xmm)
