"""Rows that are interleaved, two or four of them at a time: dst[s, c, r] = src[s, r, c].

| argument | dtype[shape] | what it is |
|---|---|---|
| src | bytes[steps, rows, columns, unit] | steps src_step_bytes apart, rows src_row_bytes, columns dense |
| dst | bytes[steps, columns, rows, unit] | steps dst_step_bytes apart, all else dense; zeros after rows and columns |

This is a transpose whose columns of dst touch, such as pairs of rows of weights.  A quarter of a register, 16 bytes,
holds as many pieces of a row as there are rows.  Each row is loaded with its pieces in the order that lets unpacks,
which stay within quarters, leave the results in order: piece i of quarter q is piece i * Q + q of the row, where a
register has Q quarters.
"""

from struct import pack

from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.move.transpose_tiles import unpacks
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.dense import QUARTER_BYTES, Dense, dense_of
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_bytes, vector_of
from asmdnn.records import dataclass

SRC, DST = range(2)
ROWS = (2, 4)  # zeros among them
DWORD_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class InterleaveSpec:
    """See above; each vector of a row is code of its own.  zero_rows, zero_columns: after those of src."""

    isa: str
    unit_bytes: int
    rows: int
    columns: int
    src_row_bytes: int
    steps: int = 1
    src_step_bytes: int = 0
    dst_step_bytes: int = 0
    zero_rows: int = 0
    zero_columns: int = 0

    @property
    def name(self) -> str:
        rows, columns = (f"{n}z{zeros}" if zeros else f"{n}" for n, zeros in self.sides)
        block = f"{self.steps}x{rows}x{columns}_s{self.src_step_bytes}_{self.src_row_bytes}"
        return f"interleave_b{8 * self.unit_bytes}_{block}_d{self.dst_step_bytes}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        return ("src", "dst")

    @property
    def sides(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Rows and columns, each with zeros after them."""
        return (self.rows, self.zero_rows), (self.columns, self.zero_columns)

    @property
    def vector_bytes(self) -> int:
        return vector_bytes(self.isa)

    @property
    def operations(self) -> int:
        """Vector instructions of all steps: loads, unpacks, stores."""
        return self.steps * self.stored_rows * -(-self.stored_bytes // self.vector_bytes) * (1 + self.rounds)

    @property
    def stored_rows(self) -> int:
        return self.rows + self.zero_rows

    @property
    def rounds(self) -> int:
        """Of unpacks."""
        return self.stored_rows.bit_length() - 1

    @property
    def row_bytes(self) -> int:
        """Of what is read of a row."""
        return self.unit_bytes * self.columns

    @property
    def stored_bytes(self) -> int:
        """Of a row in dst."""
        return self.unit_bytes * (self.columns + self.zero_columns)

    def footprint(self) -> Footprint:
        starts = [s * self.src_step_bytes + r * self.src_row_bytes for s in range(self.steps) for r in range(self.rows)]
        written = (s * self.dst_step_bytes for s in range(self.steps))
        return Footprint(
            tuple(Range(SRC, at, at + self.row_bytes) for at in starts),
            tuple(Range(DST, at, at + self.stored_rows * self.stored_bytes) for at in written),
        )

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        src, dst = (asm.gp.take(name) for name in self.frame)
        asm.MOV(src, mem(asm.frame, 8 * SRC))
        asm.MOV(dst, mem(asm.frame, 8 * DST))
        order, spare = v.registers.take("order of pieces"), v.registers.take("spare")
        words = order_of(v.bytes // QUARTER_BYTES, self.stored_rows)
        v.load(order, asm.const(pack(f"<{len(words)}i", *words), v.bytes, size=v.bytes))
        dense = dense_of(v, spare)
        with asm.repeated(self.steps, "steps left", "steps"):
            for at in range(0, self.stored_bytes, v.bytes):
                xs = self.interleaved(v, self.loaded(v, dense, order, src, at))
                for i, x in enumerate(xs):
                    target = self.stored_rows * at + i * v.bytes
                    count = min(v.bytes, self.stored_rows * self.stored_bytes - target)
                    if count > 0:
                        dense.store_run(mem(dst, target, size=1), x, count)
                v.registers.free(*xs)
            asm.ADD(src, self.src_step_bytes)
            asm.ADD(dst, self.dst_step_bytes)
        asm.ret()

    def loaded(self, v: Vector, dense: Dense, order: Register, src: Register, at: int) -> list[Register]:
        """A vector of each row from that byte on, in pieces, and zeros."""
        count = min(v.bytes, self.row_bytes - at)
        xs: list[Register] = v.registers.take("rows", self.stored_rows)
        for r, x in enumerate(xs):
            source = mem(src, r * self.src_row_bytes + at, size=1)
            if r >= self.rows or count <= 0:
                dense.zero(x)
            elif count == v.bytes:
                v.asm.VPERMD(x, order, source.sized(v.bytes))
            else:
                dense.load_run(x, source, count)
                v.asm.VPERMD(x, order, x)
        return xs

    def interleaved(self, v: Vector, xs: list[Register]) -> list[Register]:
        """Of rows in pieces: what follows one another in dst; registers are exchanged for others."""
        low, high = unpacks(v.asm, self.unit_bytes)
        for _ in range(self.rounds):
            half, found = len(xs) // 2, []
            for a, b in zip(xs[:half], xs[half:], strict=True):
                x = v.registers.take("low halves")
                low(x, a, b)
                high(a, a, b)
                v.registers.free(b)
                found += [x, a]
            xs = found
        return xs


def order_of(quarters: int, rows: int) -> list[int]:
    """Which dword of a row each of a register is."""
    width = QUARTER_BYTES // rows // DWORD_BYTES
    pieces = (i * quarters + q for q in range(quarters) for i in range(rows))
    return [piece * width + word for piece in pieces for word in range(width)]
