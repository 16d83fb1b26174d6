"""Matrix tiles that know neither the depth of a product nor how far rows lie apart: they read these numbers.

    dst[r, c] = sum over k of src[r, k] * weights[k, c]

| argument | dtype[shape] | what it is |
|---|---|---|
| 0 .. 6 | as in matmul.py | without bias, start, scale, post-ops, copies and prefetches |
| words  | int64[2 or 4] | see `numbers`; of one row no distances |

So one kernel serves products of attention for any number of keys, which is the depth of one of them, and the distance
of rows of scores.  Sums are in the order of matmul.py, so are their bits.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, KernelWords, Range, TouchedArguments
from asmdnn.generators.dot.matmul import UNROLL, TileCode
from asmdnn.generators.dot.matmul_shape import ARGUMENTS, DST, ONE_ITEM, SRC, WEIGHTS, MatmulTile, TileKernel
from asmdnn.generators.stepping import unless_zero
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.dot import GROUP_BYTES
from asmdnn.isa.vector import Lanes
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass, replace

WORD_BYTES = 8
WORDS = len(ARGUMENTS)  # the argument
LOOPS, REST, ROW_OF_SRC, ROW_OF_DST = range(4)  # rounds of UNROLL steps, further whole steps, bytes from row to row
APART = 3  # rows from one that has a pointer to the next one that has; those between are 1 and 2 distances further


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedTileSpec(TileKernel):
    """The kernel of a tile; see `is_countable`.  Its bytes depend on `code_spec`."""

    tile: MatmulTile

    @property
    def name(self) -> str:
        tile = self.tile
        return f"counted_{tile.types}_{tile.rows}x{tile.columns}_{checksum(self.code_spec)}__{tile.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        return (*ARGUMENTS, "words")

    @property
    def code_spec(self) -> "CountedTileSpec":
        """What the bytes depend on: the same without the numbers."""
        tile = self.tile
        return replace(self, tile=replace(tile, depth=tile.depth % tile.types.group, src_row_bytes=0, dst_row_bytes=0))

    @property
    def numbers(self) -> tuple[int, ...]:
        """What the code reads.  A last group of k that is not whole is no part of them."""
        whole = self.tile.depth // self.tile.types.group
        rows = (self.tile.src_row_bytes, self.tile.dst_row_bytes) if self.tile.rows > 1 else ()
        return (*divmod(whole, UNROLL), *rows)

    def footprint(self) -> Footprint:
        """The bytes that a call touches."""
        found = self.tile.footprint()
        words = Range(WORDS, 0, WORD_BYTES * len(self.numbers))
        return replace(found, reads=(*found.reads, words), words=KernelWords(WORDS, self.numbers))

    def touched_arguments(self) -> TouchedArguments:
        found = self.tile.touched_arguments()
        return found._replace(read=found.read | {WORDS})

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 *frame), of 8 arguments."""
        CountedTileCode(self.tile, asm, vector_of(self.isa, asm)).compute()
        asm.ret()


def is_countable(tile: MatmulTile) -> bool:
    """Whether the tile does nothing but sum, from 0, and one call computes it alone."""
    computes = tile.bias or tile.accumulate or tile.scaled or tile.post_ops or tile.operand_types
    prefetches = tile.prefetch_step_bytes or tile.stream_bytes or tile.prefetches_dst or tile.streams
    copies = tile.packs or tile.near_row_bytes or tile.pieces
    return not (computes or prefetches or copies) and tile.items == ONE_ITEM and tile.depth > 0


class CountedTileCode(TileCode):
    """The code of one tile, whose rows have a pointer for every APART of them."""

    def __init__(self, tile: MatmulTile, asm: Assembler, v: Any) -> None:
        assert tile.items == ONE_ITEM and tile.sums == 1
        super().__init__(replace(tile, prefetch_lines=0), asm, v)
        self.distance = asm.gp.take("from row to row")
        self.bases: list[Register] = []

    def compute(self) -> None:
        self.start()
        with self.rows_from(SRC, ROW_OF_SRC), self.dot.ready():
            self.multiply()
        with self.rows_from(DST, ROW_OF_DST):
            self.finish()

    @contextmanager
    def rows_from(self, argument: int, distance: int) -> Iterator[None]:
        """Pointers to rows of src or dst."""
        asm, first = self.asm, self.pointers[argument]
        if self.tile.rows > 1:
            self.load_number(self.distance, distance)
        self.bases = [first]
        for row in range(APART, self.tile.rows, APART):
            base = asm.gp.take(f"row {row}")
            asm.LEA(base, mem(self.bases[-1], 0, index=self.distance, scale=2))
            asm.ADD(base, self.distance)
            self.bases.append(base)
        yield
        asm.gp.free(*self.bases[1:])

    def load_number(self, register: Register, number: int) -> None:
        self.asm.MOV(register, mem(self.asm.frame, WORD_BYTES * WORDS))
        self.asm.MOV(register, mem(register, WORD_BYTES * number))

    def row_at(self, row: int, begin_bytes: int, size_bytes: int) -> Pointer:
        base, further = self.bases[row // APART], row % APART
        if not further:
            return mem(base, begin_bytes, size=size_bytes)
        return mem(base, begin_bytes, index=self.distance, scale=further, size=size_bytes)

    def src_at(self, row: int, step: int) -> Pointer:
        return self.row_at(row, step * self.tile.src_depth_bytes, GROUP_BYTES)

    def dst_at(self, row: int, begin_bytes: int, size_bytes: int) -> Pointer:
        return self.row_at(row, begin_bytes, size_bytes)

    def all_steps(self, parts: list[Lanes], row: list[Any], spare: list[Any]) -> None:
        """As many rounds as a word says, then as many steps; then a group that is not whole."""
        asm, tile = self.asm, self.tile
        for number, steps in ((LOOPS, UNROLL), (REST, 1)):
            with asm.gp.taken("steps left") as left:
                self.load_number(left, number)
                with unless_zero(asm, left, "no more steps"), asm.loop(left, f"{steps} steps"):
                    self.steps(steps, GROUP_BYTES, parts, row, spare)
                    for base in self.bases:
                        asm.ADD(base, steps * tile.src_depth_bytes)
                    asm.ADD(self.pointers[WEIGHTS], steps * tile.weights_row_bytes)
        if tile.depth % tile.types.group:
            self.steps(1, tile.last_group_bytes, parts, row, spare)
