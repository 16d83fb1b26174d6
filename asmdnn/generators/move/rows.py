"""Rows of bytes, copied or zeroed: for reorders, shuffles, padding and sums of weights.

| argument | dtype[shape] | what it is |
|---|---|---|
| src | bytes | what the spec's formula reads, no other byte |
| dst | bytes | what the spec's formula writes, no other byte; never overlaps src, but for `in_place` |
"""

from collections.abc import Iterator
from typing import Any

from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.stores import if_aligned
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.vectors import vector_bytes, vector_of
from asmdnn.records import dataclass

SRC, DST = range(2)
ARGUMENTS = ("src", "dst")
UNROLLED_BYTES = 512  # of a row in a turn of its loop, if planners say nothing else
SIZES = (1, 2, 4, 8, 16, 32, 64)
ZMM_BYTES = 64  # VMOVDQU does not move a zmm register
IN_FLIGHT = 8  # vectors loaded before the first of them is stored


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsSpec:
    """dst[r, 0:row_bytes] = src[r, 0:row_bytes], or 0 when `zero`; row r is r * step bytes from its pointer.

    streaming: stores go past the caches if dst is aligned to a vector, as row_bytes and dst_step then must be.
    unrolled_bytes: of a row in a turn of its loop, whole vectors.  in_place: dst may be src, where nothing is done, and
    both steps are equal.
    """

    isa: str
    rows: int
    row_bytes: int
    src_step: int
    dst_step: int
    zero: bool = False
    streaming: bool = False
    unrolled_bytes: int = UNROLLED_BYTES
    in_place: bool = False
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        source = "zero" if self.zero else f"s{self.src_step}"
        more = f"_u{self.unrolled_bytes}" * (self.unrolled_bytes != UNROLLED_BYTES) + "_streaming" * self.streaming
        more += "_in_place" * self.in_place
        return f"rows_{self.rows}x{self.row_bytes}_{source}_d{self.dst_step}{more}__{self.isa}"

    def footprint(self) -> Footprint:
        reads, writes = (
            tuple(Range(argument, r * step, r * step + self.row_bytes) for r in range(self.rows))
            for argument, step in ((SRC, self.src_step), (DST, self.dst_step))
        )
        return Footprint(() if self.zero else reads, writes)

    @property
    def vector_bytes(self) -> int:
        return vector_bytes(self.isa)

    @property
    def operations(self) -> int:
        """Stores, with as many loads."""
        whole, rest = divmod(self.row_bytes, self.unrolled_bytes)
        pieces = len([*cover(0, rest, self.vector_bytes)])
        return self.rows * (whole * self.unrolled_bytes // self.vector_bytes + pieces)

    def generate(self, asm: Assembler) -> None:
        registers = [asm.gp.take(name) for name in ("src", "dst", "rows left", "offset", "blocks left")]
        src, dst, left = registers[:3]
        asm.MOV(src, mem(asm.frame, 8 * SRC))
        asm.MOV(dst, mem(asm.frame, 8 * DST))
        if self.in_place:
            elsewhere = asm.new_label("elsewhere")
            asm.CMP(src, dst)
            asm.JNE(elsewhere)
            asm.ret()
            asm.bind(elsewhere)
        data = vector_of(self.isa, asm).registers.take("data", IN_FLIGHT)
        for x in data if self.zero else ():
            asm.VPXOR(x.ymm, x.ymm, x.ymm)  # all of it
        if self.streaming:
            with if_aligned(asm, dst, self.vector_bytes, left):
                self.all_rows(asm, registers, data, asm.VMOVNTDQ)
                asm.ret()
        self.all_rows(asm, registers, data, None)
        asm.ret()

    def all_rows(self, asm: Assembler, registers: list[Any], data: list[Any], store_vector: Any) -> None:
        src, dst, left, at, blocks = registers
        asm.MOV(left, self.rows)
        with asm.loop(left, "rows"):
            looped = self.row_bytes // self.unrolled_bytes if self.row_bytes > self.unrolled_bytes else 0
            if looped:
                asm.XOR(at, at)
                asm.MOV(blocks, looped)
                with asm.loop(blocks, "blocks"):
                    self.run(asm, (src, at), (dst, at), 0, self.unrolled_bytes, data=data, store_vector=store_vector)
                    asm.ADD(at, self.unrolled_bytes)
            done = looped * self.unrolled_bytes
            self.run(asm, (src, None), (dst, None), done, self.row_bytes - done, data=data, store_vector=store_vector)
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
        pieces = list(cover(start, count, self.vector_bytes))
        for first in range(0, len(pieces), IN_FLIGHT):
            batch = list(zip(data, pieces[first : first + IN_FLIGHT], strict=False))
            for x, (at, size) in () if self.zero else batch:
                load(asm, x, mem(src[0], at, index=src[1], size=size), size)
            for x, (at, size) in batch:
                where = mem(dst[0], at, index=dst[1], size=size)
                if store_vector and size == self.vector_bytes:
                    store_vector(where, x)
                else:
                    store(asm, where, x, size)


def cover(start: int, count: int, vector_bytes: int = 32) -> Iterator[tuple[int, int]]:
    """(offset, size) of moves that cover [start, start + count); some may reach back, as far as 0."""
    sizes = [size for size in SIZES if size <= vector_bytes]
    at, end = start, start + count
    while at < end:
        covering = next((size for size in sizes if size >= end - at), vector_bytes)
        if at + vector_bytes > end >= covering:
            at = end - covering  # one move; it may overlap the one before it
        size = next(size for size in reversed(sizes) if size <= end - at)
        yield at, size
        at += size


def load(asm: Assembler, x: Any, where: Any, size: int) -> None:
    """`size` bytes, a power of two up to a vector, into the low end of a register."""
    if size <= 2:
        asm.VPXOR(x.ymm, x.ymm, x.ymm)  # or the insertion waits for the register's last user
        (asm.VPINSRW if size == 2 else asm.VPINSRB)(x.xmm, x.xmm, where, 0)
    elif size <= 8:
        {4: asm.VMOVD, 8: asm.VMOVQ}[size](x.xmm, where)
    else:
        (asm.VMOVUPS if size == ZMM_BYTES else asm.VMOVDQU)(view_of(x, size), where)


def store(asm: Assembler, where: Any, x: Any, size: int) -> None:
    """The low `size` bytes of a register."""
    if size <= 2:
        (asm.VPEXTRW if size == 2 else asm.VPEXTRB)(where, x.xmm, 0)
    elif size <= 8:
        {4: asm.VMOVD, 8: asm.VMOVQ}[size](where, x.xmm)
    else:
        (asm.VMOVUPS if size == ZMM_BYTES else asm.VMOVDQU)(where, view_of(x, size))


def view_of(x: Any, size: int) -> Any:
    """The part of a register that has `size` bytes, 16 or more."""
    return {16: x.xmm, 32: x.ymm, ZMM_BYTES: x.zmm}[size]
