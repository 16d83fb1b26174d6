"""Cumulative sums and products: along every row, or down the rows for every lane.

    rows:  dst[r, c] = src[r, 0] + .. + src[r, c]           reverse: src[r, c] + .. + src[r, elements - 1]
    lanes: dst[r, c] = src[0, c] + .. + src[r, c]           reverse: src[r, c] + .. + src[rows - 1, c]

| argument | dtype[shape] | what it is |
|---|---|---|
| src | f32[rows, elements] | rows src_row_bytes apart, elements dense; only read |
| dst | f32[rows, elements] | rows dst_row_bytes apart, elements dense; may be src; only written |

Products have * in the place of +.

Down rows numbers are added one after the other.  Along a row the lanes of a vector are summed by doubling distances
within 16 bytes, then across them; what came before the vector is added to all of them.
"""

from struct import pack

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint
from asmdnn.generators.functions.rows import Vectors, Walk, rows_touched
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass

ARGUMENTS = ("src", "dst")
SRC, DST = range(2)
AT_ONCE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CumulativeSumSpec:
    """Everything that the bytes of such a kernel depend on.  along: "rows" or "lanes", see above; alg: "sum", "mul"."""

    isa: str
    along: str
    rows: int
    elements: int
    src_row_bytes: int
    dst_row_bytes: int
    reverse: bool = False
    alg: str = "sum"
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        size = f"{self.along}{self.rows}x{self.elements}{'_reverse' * self.reverse}"
        return f"{'cumsum' if self.alg == 'sum' else 'cumprod'}_f32_{size}_{checksum(self)}__{self.isa}"

    def footprint(self) -> Footprint:
        src = rows_touched(SRC, self.rows, self.src_row_bytes, self.elements)
        return Footprint(src, rows_touched(DST, self.rows, self.dst_row_bytes, self.elements))

    def generate(self, asm: Assembler) -> None:
        code = CumulativeCode(self, vector_of(self.isa, asm))
        if self.along == "rows":
            code.along_rows()
        else:
            code.down_rows()
        asm.ret()


class CumulativeCode:
    """A pointer into src, one into dst, and the sums of what has been passed; one: 1 in all lanes, of products."""

    def __init__(self, spec: CumulativeSumSpec, v: Vector) -> None:
        asm = v.asm
        self.spec, self.v = spec, v
        self.src, self.dst, self.left = (asm.gp.take(name) for name in (*ARGUMENTS, "rows left"))
        self.walk = Walk(v, spec.elements)
        self.combine = v.add if spec.alg == "sum" else v.mul
        self.one: Register | None = None
        if spec.alg != "sum":
            self.one = v.registers.take("1")
            v.broadcast(self.one, asm.const(pack("<f", 1.0), 4, size=4))

    def start(self) -> None:
        for argument, pointer in ((SRC, self.src), (DST, self.dst)):
            self.v.asm.MOV(pointer, mem(self.v.asm.frame, 8 * argument))

    def clear(self, total: Register) -> None:
        """What nothing comes to."""
        if self.one is None:
            self.v.zero(total)
        else:
            self.v.move(total, self.one)

    def advance(self, src_bytes: int, dst_bytes: int) -> None:
        for pointer, step in ((self.src, src_bytes), (self.dst, dst_bytes)):
            if step:
                self.v.asm.ADD(pointer, step)

    def down_rows(self) -> None:
        """Some vectors at a time, down or up all rows."""
        self.walk.each(AT_ONCE, "lanes", self.lanes)

    def lanes(self, vectors: Vectors) -> None:
        v, asm, spec = self.v, self.v.asm, self.spec
        steps = spec.src_row_bytes, spec.dst_row_bytes
        self.start()
        if spec.reverse:
            self.advance(*((spec.rows - 1) * step for step in steps))
            steps = -steps[0], -steps[1]
        sums, x = v.registers.take("sum", vectors.count), v.registers.take("element")
        for total in sums:
            self.clear(total)
        asm.MOV(self.left, spec.rows)
        with asm.loop(self.left, "rows"):
            for j, (part, total) in enumerate(zip(vectors.parts, sums, strict=True)):
                part.load(x, vectors.at(self.src, j))
                self.combine(total, total, x)
                part.store(vectors.at(self.dst, j), total)
            self.advance(*steps)
        v.registers.free(*sums, x)

    def along_rows(self) -> None:
        """A row at a time, from its beginning or from its end."""
        asm, spec, row_bytes = self.v.asm, self.spec, self.walk.full * self.v.bytes
        self.start()
        asm.MOV(self.left, spec.rows)
        with asm.loop(self.left, "rows"):
            passed = self.v.registers.take("sum of what was passed")
            self.clear(passed)
            if spec.reverse:
                self.advance(row_bytes, row_bytes)
                self.tail(passed)
                self.full_vectors(passed, -self.v.bytes)
                self.advance(spec.src_row_bytes, spec.dst_row_bytes)
            else:
                self.full_vectors(passed, self.v.bytes)
                self.tail(passed)
                self.advance(spec.src_row_bytes - row_bytes, spec.dst_row_bytes - row_bytes)
            self.v.registers.free(passed)

    def full_vectors(self, passed: Register, step: int) -> None:
        if self.walk.full:
            self.v.asm.MOV(self.walk.place, self.walk.full)
            with self.v.asm.loop(self.walk.place, "vectors"):
                self.vector(self.v, passed, min(step, 0))
                self.advance(step, step)

    def tail(self, passed: Register) -> None:
        if self.walk.tail:
            self.vector(self.walk.tail, passed, 0)

    def vector(self, part: Lanes, passed: Register, offset: int) -> None:
        """The sums of a vector; `passed` becomes that of all lanes so far."""
        v = self.v
        x, spare = v.registers.take("element", 2)
        part.load(x, mem(self.src, offset, size=v.bytes))
        if self.spec.reverse:
            if self.one is not None:
                part.fill_rest(x, self.one)
            v.flip(x, x, spare)
        v.running(x, spare, self.combine, self.one)
        v.last_of(spare, x)
        self.combine(x, x, passed)
        self.combine(passed, passed, spare)
        if self.spec.reverse:
            v.flip(x, x, spare)
        part.store_last(mem(self.dst, offset, size=v.bytes), x)
        v.registers.free(x, spare)
