"""Elements of short rows by their numbers, which are data: dst[r, i] = src[r, k(indices[i])], in registers.

    k(n) = n, or n + limit where n is negative;  limit - 1 where that is no element

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | 4 bytes[rows, limit] | dense rows src_step bytes apart, read as a whole |
| dst     | 4 bytes[rows, count] | dense rows dst_step bytes apart, only written; never overlaps src |
| indices | s32[count] | index_step bytes apart, 4 or 8; of s64 the low halves |

A row of src lies in up to four registers, in which its elements are looked up: no address depends on an index.  Where
indices are few, they stay in registers while rows pass; several rows that touch are taken as one, whose indices are
those of each row, further on.  Else rows stay in registers while indices pass.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from struct import pack

from asmdnn.generators.contract import Footprint, rows_of
from asmdnn.generators.move.by_index import INDEX_BYTES, INDICES
from asmdnn.generators.move.gather import ARGUMENTS, DST, SRC
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.lane_tables import MOST_REGISTERS, SPARE, LaneTables, lane_tables
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import lanes_of, vector_class, vector_of
from asmdnn.records import dataclass

UNIT_BYTES = 4  # of an element
MOST_HELD = 8  # vectors of indices
RESULT, TAILS = 1, 2  # registers beside tables and indices: that of a result, and of the lanes of tails
Selectors = Sequence[Register]
Held = list[tuple[Register, Selectors]]  # vectors of indices
TURNS = 4  # of rows that fill one register each, in a turn of their loop


def most_elements(isa: str) -> int:
    """Of a row."""
    return MOST_REGISTERS * lanes_of(isa)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatherLanesSpec:
    """See above; limit is 1 to most_elements(isa), all distances fit 32 bits."""

    isa: str
    rows: int
    limit: int
    count: int
    src_step: int
    dst_step: int
    index_step: int
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        steps = f"s{self.src_step}_d{self.dst_step}_i{self.index_step}"
        return f"gather_lanes_{self.rows}x{self.count}of{self.limit}_{steps}__{self.isa}"

    @property
    def together(self) -> int:
        """Rows that are taken as one: they touch on both sides, and a register holds them."""
        touch = self.src_step == UNIT_BYTES * self.limit and self.dst_step == UNIT_BYTES * self.count
        return max(1, lanes_of(self.isa) // max(self.limit, self.count)) if touch else 1

    @property
    def tables(self) -> int:
        """Registers of a row of src, or of those that are taken as one."""
        return -(-self.together * self.limit // lanes_of(self.isa))

    @property
    def vectors(self) -> int:
        """The same of dst."""
        return -(-self.together * self.count // lanes_of(self.isa))

    @property
    def holds_indices(self) -> bool:
        level = vector_class(self.isa)
        free = level.count - self.tables - SPARE - RESULT - TAILS
        selectors = lane_tables(level.bytes).selectors_of(self.tables)
        return self.rows > 1 and self.vectors <= min(MOST_HELD // (1 + selectors), free // (1 + selectors))

    def footprint(self) -> Footprint:
        src = rows_of(SRC, self.rows, self.src_step, UNIT_BYTES * self.limit)
        indices = rows_of(INDICES, self.count, self.index_step, INDEX_BYTES)
        return Footprint((*src, *indices), rows_of(DST, self.rows, self.dst_step, UNIT_BYTES * self.count))

    def generate(self, asm: Assembler) -> None:
        code = GatherLanesCode(self, vector_of(self.isa, asm))
        if self.holds_indices:
            code.along_rows()
        else:
            code.along_indices()
        asm.ret()


class GatherLanesCode:
    """Pointers, a table, and what looks up in it."""

    def __init__(self, spec: GatherLanesSpec, v: Vector) -> None:
        self.spec, self.v, self.asm = spec, v, v.asm
        self.src, self.dst, self.indices = (self.asm.gp.take(name) for name in ARGUMENTS)
        for argument, pointer in ((SRC, self.src), (DST, self.dst), (INDICES, self.indices)):
            self.asm.MOV(pointer, mem(self.asm.frame, 8 * argument, size=8))
        self.table = v.registers.take("table", spec.tables)
        self.x, self.spare = v.registers.take("result"), v.registers.take("spare", SPARE)
        self.look: LaneTables = lane_tables(v.bytes)(v, spec.tables, self.spare)

    def along_rows(self) -> None:
        """All indices in registers, row after row."""
        spec, asm = self.spec, self.asm
        held: Held = [(self.v.registers.take("index"), self.look.selectors()) for _ in range(spec.vectors)]
        self.hold([index for index, _ in held])
        for index, selectors in held:
            self.look.select(selectors, index)
        turns, rest = divmod(spec.rows, spec.together)
        at_once = TURNS if spec.tables == spec.vectors == 1 else 1
        with self.sides(spec.together) as sides:
            if loops := turns // at_once:
                with asm.repeated(loops, "turns left", "rows"):
                    for turn in range(at_once):
                        self.row(sides, held, turn * spec.together)
                    asm.ADD(self.src, at_once * spec.together * spec.src_step)
                    asm.ADD(self.dst, at_once * spec.together * spec.dst_step)
            for turn in range(turns % at_once):
                self.row(sides, held, turn * spec.together)
        if rest:
            with self.sides(rest) as sides:
                self.row(sides, held, turns % at_once * spec.together)

    def hold(self, indices: Sequence[Register]) -> None:
        """All of them; of rows that are taken as one those of each row, counted through all rows."""
        spec, v = self.spec, self.v
        if spec.together == 1:
            for j, index in enumerate(indices):
                at = j * v.lanes
                self.fetch(index, self.indices, at, min(v.lanes, spec.count - at))
            return
        (index,) = indices
        self.fetch(self.x, self.indices, 0, spec.count)
        places = [divmod(lane, spec.count) for lane in range(v.lanes)]
        v.load(index, self.lanes_of([i for _, i in places]))
        self.asm.VPERMD(index, index, self.x)
        self.asm.VPADDD(index, index, self.lanes_of([row % spec.together * spec.limit for row, _ in places]))

    def lanes_of(self, numbers: Sequence[int]) -> Pointer:
        return self.asm.const(pack(f"<{len(numbers)}i", *numbers), self.v.bytes, size=self.v.bytes)

    def fetch(self, index: Register, place: Register, at: int, count: int) -> None:
        """index = so many elements' places in a row, from the indices from `at` on."""
        spec, asm, v, (upper, spare) = self.spec, self.asm, self.v, self.spare
        if spec.index_step == INDEX_BYTES:
            with v.parts(1, count) as (part,):
                part.load(index, mem(place, at * spec.index_step, size=v.bytes))
        else:
            half, more = v.lanes // 2, count > v.lanes // 2
            for x, first in ((index, 0), (upper, half))[: 1 + more]:
                self.load_evens(x, mem(place, (at + first) * spec.index_step, size=v.bytes), min(half, count - first))
            v.evens(index, upper if more else index, spare)
        asm.VPADDD(upper, index, v.splat(spec.limit))  # below all others if the index was negative
        asm.VPMINUD(index, index, upper)
        asm.VPMINUD(index, index, v.splat(spec.limit - 1))

    def load_evens(self, x: Register, place: Pointer, count: int) -> None:
        """The first `count` of every other lane: only these bytes are indices."""
        chosen = self.v.chosen(sum(1 << 2 * i for i in range(count)))
        chosen.load(x, place)
        chosen.release()

    @contextmanager
    def sides(self, rows: int) -> Iterator[tuple[list[Lanes], list[Lanes]]]:
        """How to read so many rows of src, and to write those of dst."""
        spec = self.spec
        with self.v.parts(spec.tables, rows * spec.limit) as src, self.v.parts(spec.vectors, rows * spec.count) as dst:
            yield src, dst

    def row(self, sides: tuple[list[Lanes], list[Lanes]], held: Held, number: int) -> None:
        """Those that are taken as one, so many rows further on."""
        spec, v, (reads, writes) = self.spec, self.v, sides
        self.read(reads, number * spec.src_step)
        for j, (part, (index, selectors)) in enumerate(zip(writes, held, strict=True)):
            self.look.look_up(self.x, index, selectors, self.table)
            part.store(mem(self.dst, number * spec.dst_step + j * v.bytes, size=v.bytes), self.x)

    def read(self, parts: Sequence[Lanes], at: int) -> None:
        """The table, from `at` on."""
        for j, (part, x) in enumerate(zip(parts, self.table, strict=True)):
            part.load(x, mem(self.src, at + j * self.v.bytes, size=self.v.bytes))

    def along_indices(self) -> None:
        """A row in registers, vector after vector of indices; then the next row."""
        spec, asm, v = self.spec, self.asm, self.v
        index, selectors = v.registers.take("index"), self.look.selectors()
        listed, to = asm.gp.take("indices from here on"), asm.gp.take("dst from here on")
        full, rest = divmod(spec.count, v.lanes)
        with v.parts(spec.tables, spec.limit) as reads, asm.repeated(spec.rows, "rows left", "rows"):
            self.read(reads, 0)
            asm.MOV(listed, self.indices)
            asm.MOV(to, self.dst)
            if full:
                with asm.repeated(full, "vectors left", "indices"):
                    self.vector(index, selectors, v.lanes, listed, to)
                    asm.ADD(listed, v.lanes * spec.index_step)
                    asm.ADD(to, v.bytes)
            if rest:
                self.vector(index, selectors, rest, listed, to)
            asm.ADD(self.src, spec.src_step)
            asm.ADD(self.dst, spec.dst_step)

    def vector(self, index: Register, selectors: Selectors, count: int, listed: Register, to: Register) -> None:
        """So many indices, and what they name."""
        v = self.v
        self.fetch(index, listed, 0, count)
        self.look.select(selectors, index)
        self.look.look_up(self.x, index, selectors, self.table)
        with v.parts(1, count) as (part,):
            part.store(mem(to, 0, size=v.bytes), self.x)
