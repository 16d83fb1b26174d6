"""Sums over decision trees: eight walks at a time, of eight rows down one tree or of one row down eight trees.

    at = root;  steps times:  at = left(at) + (code(at) < codes[feature(at)]);  dst = dst + value(at)

| argument | dtype[shape] | what it is |
|---|---|---|
| codes  | u32[rows, words]   | of rows' features, in an order that integers have; see codes.py |
| nodes  | u32[2 units]       | pairs of nodes: code, feature in bytes, the same of the second; left, value, the same |
| order  | u32[trees]         | the number of trees, a multiple of 8, times -1; at its end the places of their roots |
| values | f32[blocks, leaves, 8] | rows of values in bytes that nodes name, for every 8 columns; not read if in_nodes |
| base   | f32[columns]       | what is added |
| dst    | f32[rows, columns] | rows dst_row_bytes apart, only written |

A node's place counts units of 8 bytes: 4 p or 4 p + 1 for the two of pair p.  At its place are its code and its
feature, two units further the place of its left child and its value.  A root is alone in its pair, whose second code
and feature are numbers of steps: of its tree, and the most of the eight trees that begin with it.

Whatever the tables hold, no byte outside of them is read: all that is read by is cut to the bits of a table's size,
which is a power of two, and steps are at most 8191.
"""

from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.trees.codes import WORD_BYTES
from asmdnn.isa.assembler import Assembler, Pointer, Register, low32, mem
from asmdnn.isa.vector import Lanes
from asmdnn.isa.vectors import vector_class, vector_of
from asmdnn.records import dataclass

ARGUMENTS = ("codes", "nodes", "order", "values", "base", "dst")
CODES, NODES, ORDER, VALUES, BASE, DST = range(6)
WALKS = 8  # interleaved, which hides the latency of loads, for as many as there are registers
UNIT_BYTES = 8
CHILD_BYTES = 16  # from a node's code to its left child
TOGETHER = {"rows": 1, "trees": WALKS}  # trees of a round
STEPS_BYTES = {"rows": 8, "trees": 12}  # from a root to its steps
MOST_STEPS = (1 << 13) - 1
MOST_UNITS = 1 << 28  # of a table, whose places are imm32
COLUMNS = 8  # of a vector of values, of all levels
OTHERS = 2  # registers beside the sums


def most_blocks(isa: str, along: str) -> int:
    """Of 8 columns each, which registers hold the sums of."""
    return (vector_class(isa).count - OTHERS) // rows_of(along)


def rows_of(along: str) -> int:
    return WALKS if along == "rows" else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeWalkSpec:
    """along: "rows" is eight rows in each tree, "trees" one row in eight trees.  joins: sum, min or max.

    columns: 8 in a vector, and up to most_blocks vectors; in_nodes: a single one, whose values nodes have.  words,
    units, trees, leaves: of the tables, powers of two.
    """

    isa: str
    along: str
    joins: str
    columns: int
    in_nodes: bool
    words: int
    units: int
    trees: int
    leaves: int
    dst_row_bytes: int
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        tables = f"w{self.words}_u{self.units}_t{self.trees}_l{self.leaves}"
        columns = "in_nodes" if self.in_nodes else self.columns
        return f"trees_{self.along}_{self.joins}_{columns}_{tables}_d{self.dst_row_bytes}__{self.isa}"

    @property
    def rows(self) -> int:
        return rows_of(self.along)

    @property
    def blocks(self) -> int:
        return -(-self.columns // COLUMNS)

    @property
    def block_bytes(self) -> int:
        return WORD_BYTES * COLUMNS * self.leaves

    def footprint(self) -> Footprint:
        reads = [
            Range(CODES, 0, WORD_BYTES * self.words * self.rows),
            Range(NODES, 0, UNIT_BYTES * self.units),
            Range(ORDER, 0, WORD_BYTES * self.trees),
            Range(BASE, 0, WORD_BYTES * self.columns),
        ]
        if not self.in_nodes:
            reads.append(Range(VALUES, 0, self.blocks * self.block_bytes))
        starts = [row * self.dst_row_bytes for row in range(self.rows)]
        return Footprint(tuple(reads), tuple(Range(DST, at, at + WORD_BYTES * self.columns) for at in starts))

    def generate(self, asm: Assembler) -> None:
        code = WalkCode(self, asm)
        asm.role("start")
        code.start()
        label = asm.new_label("trees")
        asm.bind(label)
        asm.role("roots")
        code.enter()
        asm.role("walks")
        with asm.loop(code.steps, "steps"):
            for walk in range(WALKS):
                code.step(walk)
        asm.role("leaves")
        code.leave()
        asm.ADD(code.left, TOGETHER[self.along])
        asm.JNZ(label)
        asm.role("results")
        code.finish()
        asm.ret()


class WalkCode:
    """The emission of a kernel: places of eight walks, and what is known of them."""

    def __init__(self, spec: TreeWalkSpec, asm: Assembler) -> None:
        self.spec, self.asm, self.by_rows = spec, asm, spec.along == "rows"
        self.vector = vector_of(spec.isa, asm)
        rest = 0 if spec.in_nodes else spec.columns % COLUMNS
        self.tail = self.vector.tail(rest) if rest else None  # first: it is made in a register that walks take
        self.codes, self.nodes, self.order = (asm.gp.take(name) for name in ("codes", "nodes", "order"))
        self.left, self.steps, self.word = (asm.gp.take(name) for name in ("trees left", "steps left", "word"))
        self.places = [asm.gp.take(f"place of walk {i}") for i in range(WALKS)]
        take = self.vector.registers.take
        self.sums = [[take(f"sum of row {i}, block {b}").ymm for b in range(spec.blocks)] for i in range(spec.rows)]

    def start(self) -> None:
        asm, spec = self.asm, self.spec
        for argument, pointer in ((CODES, self.codes), (NODES, self.nodes), (ORDER, self.order), (BASE, self.word)):
            asm.MOV(pointer, mem(asm.frame, 8 * argument))
        first = self.sums[0]
        for block, x in enumerate(first):
            if spec.joins != "sum":
                self.fill(x, spec.joins)
            else:
                self.load(x, block)
        for others in self.sums[1:]:
            for other, x in zip(others, first, strict=True):
                asm.VMOVAPS(other, x)
        asm.MOVSXD(self.left, mem(self.order, 0, size=4))
        asm.AND(self.left, -WALKS)
        asm.OR(self.left, -spec.trees)  # from there up to 0

    def fill(self, x: Register, joins: str) -> None:
        """What changes no minimum, or no maximum."""
        octets = {"min": b"\x00\x00\x80\x7f", "max": b"\x00\x00\x80\xff"}[joins]
        self.vector.broadcast(x, self.asm.const(octets, 4, size=4))

    def load(self, x: Register, block: int) -> None:
        """What is added to so many columns."""
        place = mem(self.word, WORD_BYTES * COLUMNS * block)
        if self.spec.in_nodes:
            self.asm.VMOVSS(x.xmm, place.sized(4))
        elif lanes := self.lanes(block):
            lanes.load(x, place.sized(WORD_BYTES * COLUMNS))
        else:
            self.asm.VMOVUPS(x, place.sized(WORD_BYTES * COLUMNS))

    def lanes(self, block: int) -> Lanes | None:
        """Those of a block that is not whole."""
        return self.tail if block == self.spec.blocks - 1 else None

    def enter(self) -> None:
        """Places are the roots of the next trees."""
        asm, spec = self.asm, self.spec
        asm.MOV(self.word, self.left)
        asm.AND(self.word, spec.trees - TOGETHER[spec.along])
        for walk, place in enumerate(self.places):
            if walk and self.by_rows:
                asm.MOV(place, self.places[0])
                continue
            asm.MOV(low32(place), mem(self.order, WORD_BYTES * walk, index=self.word, scale=4, size=4))
            asm.AND(place, self.most_place)
        asm.MOV(low32(self.steps), self.field(0, STEPS_BYTES[spec.along]))
        asm.AND(self.steps, MOST_STEPS)
        asm.OR(self.steps, 1)

    @property
    def most_place(self) -> int:
        """Which has all bits that places have."""
        return self.spec.units - 3

    def field(self, walk: int, at: int) -> Pointer:
        return mem(self.nodes, at, index=self.places[walk], scale=8, size=4)

    def step(self, walk: int) -> None:
        asm, spec, place, word = self.asm, self.spec, self.places[walk], self.word
        row = WORD_BYTES * spec.words * walk if self.by_rows else 0
        asm.MOV(low32(word), self.field(walk, 4))
        asm.AND(word, WORD_BYTES * (spec.words - 1))
        asm.MOV(low32(word), mem(self.codes, row, index=word, size=4))
        asm.CMP(self.field(walk, 0), low32(word))
        asm.MOV(low32(place), self.field(walk, CHILD_BYTES))
        asm.ADC(place, 0)
        asm.AND(place, self.most_place)

    def leave(self) -> None:
        """The values of leaves are added, those of a row in the order of trees."""
        asm, spec = self.asm, self.spec
        join = {"sum": "ADD", "min": "MIN", "max": "MAX"}[spec.joins]
        if not spec.in_nodes:
            asm.MOV(self.steps, mem(asm.frame, 8 * VALUES))
        for walk in range(WALKS):
            sums = self.sums[walk if self.by_rows else 0]
            if spec.in_nodes:
                (x,) = sums
                getattr(asm, f"V{join}SS")(x.xmm, x.xmm, self.field(walk, CHILD_BYTES + 4))
                continue
            asm.MOV(low32(self.word), self.field(walk, CHILD_BYTES + 4))
            asm.AND(self.word, WORD_BYTES * COLUMNS * (spec.leaves - 1))
            for block, x in enumerate(sums):
                row = mem(self.steps, block * spec.block_bytes, index=self.word, size=WORD_BYTES * COLUMNS)
                getattr(asm, f"V{join}PS")(x, x, row)

    def finish(self) -> None:
        asm, spec = self.asm, self.spec
        if spec.joins != "sum":
            asm.MOV(self.word, mem(asm.frame, 8 * BASE))
            base = self.vector.registers.take("base").ymm
            for block in range(spec.blocks):
                self.load(base, block)
                for sums in self.sums:
                    asm.VADDPS(sums[block], sums[block], base)
        asm.MOV(self.word, mem(asm.frame, 8 * DST))
        for row, sums in enumerate(self.sums):
            for block, x in enumerate(sums):
                self.store(mem(self.word, row * spec.dst_row_bytes + WORD_BYTES * COLUMNS * block), x, block)

    def store(self, place: Pointer, x: Register, block: int) -> None:
        if self.spec.in_nodes:
            self.asm.VMOVSS(place.sized(4), x.xmm)
        elif lanes := self.lanes(block):
            lanes.store(place.sized(WORD_BYTES * COLUMNS), x)
        else:
            self.asm.VMOVUPS(place.sized(WORD_BYTES * COLUMNS), x)
