"""A block of row-major weights copied into panels, which the tiles behind it read from L2.

    weights[p, k, c] = ahead[k, p * panel + c], and 0 behind the columns of the last vector

| argument | dtype[shape] | what it is |
|---|---|---|
| ahead   | f32[depth, columns] | the weights as they lie, rows row_bytes apart; nothing past the columns is read |
| weights | f32[panels, depth, panel] | panel p at p * panel_bytes, its rows dense; only written, in whole vectors |

Row after row is read, each as one run of lines, and the same columns `ahead_rows` further down are prefetched: rows are
too short for the hardware to see a stream.  The frame is that of matmul tiles, which follow in the same group of
records; what is `ahead` of them is what this kernel brings.  Panels should not be a multiple of 4 KiB apart, as the
stores of a row would fall into one set of L1.
"""

from dataclasses import dataclass

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.dot.matmul_shape import AHEAD, ARGUMENTS, WEIGHTS
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import lanes_of, vector_of

REGISTERS = 8  # vectors of a row on their way at a time


@dataclass(frozen=True, slots=True)
class PackSpec:
    """Everything that the bytes of the kernel depend on; depth > 0, columns > 0."""

    isa: str
    depth: int
    columns: int
    row_bytes: int
    panel_vectors: int
    panel_bytes: int
    ahead_rows: int = 0

    @property
    def name(self) -> str:
        return f"pack_f32_{self.columns}x{self.depth}_{checksum(self)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        """What the frame points to, in order."""
        return ARGUMENTS

    @property
    def vectors(self) -> int:
        """Of a row."""
        return -(-self.columns // lanes_of(self.isa))

    def footprint(self) -> Footprint:
        rows = (k * self.row_bytes for k in range(self.depth))
        vector_bytes = 4 * lanes_of(self.isa)
        writes = []
        for first in range(0, self.vectors, self.panel_vectors):
            begin, width = first // self.panel_vectors * self.panel_bytes, min(self.panel_vectors, self.vectors - first)
            row = self.panel_vectors * vector_bytes
            if width == self.panel_vectors:
                writes.append(Range(WEIGHTS, begin, begin + self.depth * row))
            else:
                starts = (begin + k * row for k in range(self.depth))
                writes += [Range(WEIGHTS, at, at + width * vector_bytes) for at in starts]
        return Footprint(tuple(Range(AHEAD, at, at + 4 * self.columns) for at in rows), tuple(writes))

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 *frame), whose words `frame` names."""
        v = vector_of(self.isa, asm)
        source, panels, left = (asm.gp.take(name) for name in ("rows", "panels", "rows left"))
        asm.MOV(source, mem(asm.frame, 8 * AHEAD))
        asm.MOV(panels, mem(asm.frame, 8 * WEIGHTS))
        data = v.registers.take("row", min(REGISTERS, self.vectors))
        asm.MOV(left, self.depth)
        with v.parts(self.vectors, self.columns) as parts, asm.loop(left, "rows"):
            self.prefetch(asm, source)
            for first in range(0, self.vectors, len(data)):
                some = range(first, min(first + len(data), self.vectors))
                for x, j in zip(data, some, strict=False):
                    parts[j].load(x, mem(source, j * v.bytes, size=v.bytes))
                for x, j in zip(data, some, strict=False):
                    v.store(self.place(v, panels, j), x)
            asm.ADD(source, self.row_bytes)
            asm.ADD(panels, self.panel_vectors * v.bytes)
        asm.ret()

    def place(self, v: Vector, panels: Register, j: int) -> Pointer:
        """Where vector j of a row goes."""
        panel, within = divmod(j, self.panel_vectors)
        return mem(panels, panel * self.panel_bytes + within * v.bytes, size=v.bytes)

    def prefetch(self, asm: Assembler, source: Register) -> None:
        """The lines of a row further down; where rows are no multiple of lines apart, the one of its last byte, too."""
        if self.ahead_rows:
            row = self.ahead_rows * self.row_bytes
            starts = [*range(0, 4 * self.columns, LINE_BYTES)]
            if self.row_bytes % LINE_BYTES:
                starts.append(4 * self.columns - 1)
            for at in starts:
                asm.PREFETCHT0(mem(source, row + at))
