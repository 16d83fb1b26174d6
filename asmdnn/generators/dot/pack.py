"""A block of row-major weights copied into panels, which the tiles after it read from L2.

    weights[p, k, c] = prefetched[k, p * panel + c], and 0 after the columns of the last vector, and after the depth
    bias[c] = -shift * sum over k of prefetched[k, c], if the dot product adds a shift to src and `sums` says so

| argument | dtype[shape] | what it is |
|---|---|---|
| prefetched | types.weights[depth, columns] | plain weights, rows row_bytes apart; nothing past the columns is read |
| weights    | types.weights[panels, depth, panel] | panel p at p * panel_bytes, dense; a group of rows lies side by
                                               side in each column; only written, in whole vectors |
| bias | s32[columns] | only written |

Row after row is read, each as one run of lines, and the same columns `prefetch_rows` further down are prefetched: rows
are too short for the hardware to see a stream.  The frame is that of matmul tiles, which follow in the same group of
records; what they prefetch is this kernel's source.  Panels should not be a multiple of 4 KiB apart, or the stores of a
row fall into one set of L1."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.dot.matmul_shape import ARGUMENTS, BIAS, PREFETCHED, WEIGHTS
from asmdnn.generators.dot.operands import sums_at
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.dense import QUARTER_BYTES
from asmdnn.isa.dot import F32, Types, dot_class, dot_of
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vector import Lanes
from asmdnn.isa.vectors import lanes_of, vector_class, vector_of
from asmdnn.isa.weight_rows import JoinedRows
from asmdnn.records import dataclass
from asmdnn.types import s32

REGISTERS = 8  # vectors of a row that are copied at a time
JOINING = 8  # registers that rows of bytes take while they are joined, and the factor of sums


def most_summed(isa: str, types: Types) -> int:
    """Of how many columns registers hold sums, which the dot product needs as it shifts src; 0 where it does not."""
    return (vector_class(isa).count - JOINING) * lanes_of(isa) if dot_class(types, isa).shift else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PackSpec:
    """Everything that the code of the kernel depends on; depth > 0, columns > 0; floats are not widened."""

    isa: str
    depth: int
    columns: int
    row_bytes: int
    panel_vectors: int
    panel_bytes: int
    prefetch_rows: int = 0
    types: Types = F32
    sums: bool = False  # of columns, too; of at most `most_summed`
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        return f"pack_{self.types.weights}_{self.columns}x{self.depth}_{checksum(self)}__{self.isa}"

    @property
    def vectors(self) -> int:
        """Of a row of groups."""
        return -(-self.columns // lanes_of(self.isa))

    @property
    def vector_bytes(self) -> int:
        return self.types.weights_bytes * lanes_of(self.isa)

    def footprint(self) -> Footprint:
        rows = (k * self.row_bytes for k in range(self.depth))
        vector_bytes, groups = self.vector_bytes, len(self.types.groups_of(self.depth))
        writes = []
        for first in range(0, self.vectors, self.panel_vectors):
            begin, width = first // self.panel_vectors * self.panel_bytes, min(self.panel_vectors, self.vectors - first)
            row = self.panel_vectors * vector_bytes
            if width == self.panel_vectors:
                writes.append(Range(WEIGHTS, begin, begin + groups * row))
            else:
                starts = (begin + k * row for k in range(groups))
                writes += [Range(WEIGHTS, at, at + width * vector_bytes) for at in starts]
        writes += [Range(BIAS, 0, s32.size_bytes * self.columns)] * self.sums
        read = self.types.weights.size_bytes * self.columns
        return Footprint(tuple(Range(PREFETCHED, at, at + read) for at in rows), tuple(writes))

    def generate(self, asm: Assembler) -> None:
        code = PackCode(self, asm)
        whole, cut = divmod(self.depth, self.types.group)
        left = asm.gp.take("rows left")
        code.load_pointers()
        asm.MOV(left, whole)
        with code.ready():
            if whole:
                with asm.loop(left, "rows"):
                    code.rows(self.types.group)
                    asm.ADD(code.source, self.types.group * self.row_bytes)
                    asm.ADD(code.panels, self.panel_vectors * self.vector_bytes)
            if cut:
                code.rows(cut)
            if self.sums:
                code.store_sums()
        asm.ret()


class PackCode:
    """The code of a group of rows."""

    def __init__(self, spec: PackSpec, asm: Assembler) -> None:
        self.spec, self.asm, self.v = spec, asm, vector_of(spec.isa, asm)
        self.source, self.panels = (asm.gp.take(name) for name in ("rows", "panels"))

    def load_pointers(self) -> None:
        self.asm.MOV(self.source, mem(self.asm.frame, 8 * PREFETCHED))
        self.asm.MOV(self.panels, mem(self.asm.frame, 8 * WEIGHTS))

    @contextmanager
    def ready(self) -> Iterator[None]:
        """A context that holds the registers of the copies."""
        spec, v = self.spec, self.v
        if spec.types.group > 1:
            self.joined = JoinedRows(dot_of(spec.types, spec.isa, v))
            self.parts: Sequence[Lanes] = [v] * spec.vectors
            if spec.sums:
                self.start_sums(self.joined.dot.shift)
            yield
            return
        self.data = v.registers.take("row", min(REGISTERS, spec.vectors))
        with v.parts(spec.vectors, spec.columns) as self.parts:
            yield

    def rows(self, count: int) -> None:
        """Copy the rows of a group, fewer than a whole one at the end."""
        spec, v = self.spec, self.v
        for row in range(count):
            self.prefetch(row)
        if spec.types.group > 1:
            places = [mem(self.source, row * spec.row_bytes) for row in range(count)]
            each = self.joined.vectors_of_register
            for first, registers in self.joined.unarranged(places, spec.vectors, spec.columns):
                for i, x in enumerate(registers):
                    self.store(first + i * each, min(each, spec.vectors - first - i * each), x)
                    if spec.sums:
                        self.joined.dot.multiply(self.sums[first + i], self.shifts, x)
            return
        for first in range(0, spec.vectors, len(self.data)):
            some = range(first, min(first + len(self.data), spec.vectors))
            for x, j in zip(self.data, some, strict=False):
                self.parts[j].load(x, mem(self.source, j * v.bytes, size=v.bytes))
            for x, j in zip(self.data, some, strict=False):
                v.store(self.place(j), x)

    def start_sums(self, shift: int) -> None:
        """Zeros, and the shift in every byte, which VPDPBUSD multiplies by."""
        v = self.v
        self.sums: list[Register] = v.registers.take("shift times the sums", self.spec.vectors)
        self.shifts: Register = v.registers.take("shift in every byte")
        v.load(self.shifts, self.asm.const(bytes((shift,)) * v.bytes, v.bytes, size=v.bytes))
        v.zeros(self.sums)

    def store_sums(self) -> None:
        """What the shift adds to a product, negative."""
        asm, v, zero = self.asm, self.v, self.shifts
        asm.MOV(self.source, mem(asm.frame, 8 * BIAS))
        v.zero(zero)
        with v.parts(self.spec.vectors, self.spec.columns) as parts:
            for total, place, part in sums_at(mem(self.source, size=v.bytes), [self.sums], parts):
                asm.VPSUBD(total, zero, total)
                part.store_last(place, total)

    def place(self, j: int) -> Pointer:
        """The destination of vector j of a row of groups."""
        panel, within = divmod(j, self.spec.panel_vectors)
        size = self.spec.vector_bytes
        return mem(self.panels, panel * self.spec.panel_bytes + within * size, size=size)

    def store(self, first: int, vectors: int, x: Register) -> None:
        """A register of vectors: together, where a panel has all of them, else one after the other."""
        spec, size = self.spec, self.spec.vector_bytes
        if vectors * size == self.v.bytes and spec.panel_vectors % vectors == 0:
            self.v.store(self.place(first).sized(self.v.bytes), x)
            return
        for i in range(vectors):
            self.joined.dense.store(self.place(first + i), x, size, i * size // QUARTER_BYTES)

    def prefetch(self, row: int) -> None:
        """Prefetch the lines of a row further down; where rows are not aligned to lines, also the line of its last
        byte."""
        spec = self.spec
        if spec.prefetch_rows:
            size = spec.types.weights.size_bytes * spec.columns
            starts = [*range(0, size, LINE_BYTES)]
            if spec.row_bytes % LINE_BYTES:
                starts.append(size - 1)
            for at in starts:
                self.asm.PREFETCHT0(mem(self.source, (row + spec.prefetch_rows) * spec.row_bytes + at))
