"""The transform of a tile of the source: V = B^T d B for every channel, to every frequency's matrix.

    source[f, c] = sum over i, j of B[i, f // n] * B[j, f % n] * src[i, j, c]        n = m + 2, 0 <= f < n^2

| argument | dtype[shape] | what it is |
|---|---|---|
| source | f32[n^2, vectors] | frequencies frequency_bytes apart; vectors of channels, zero after the last channel |
| src    | f32[n, n, channels] | pixel (i, j) at i * row_bytes + j * pixel_bytes, vectors vector_bytes apart |

Only pixels of `rows` and `cols` exist: others lie in the padding, are not read, and are no operands at all.  Nothing is
read past the channels.  src points to pixel (0, 0), which need not exist.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.winograd.arguments import ARGUMENTS, SOURCE, SRC
from asmdnn.generators.winograd.forms import FORMS, ResultGroup, Transforms
from asmdnn.generators.winograd.linear import Linear, take_constants
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import lanes_of, vector_bytes, vector_of
from asmdnn.types import f32


@dataclass(frozen=True, slots=True)
class SourceTransformSpec:
    """Everything that the bytes of the kernel depend on; rows and cols are [begin, end) of the tile's n."""

    isa: str
    m: int
    rows: tuple[int, int]
    cols: tuple[int, int]
    row_bytes: int
    pixel_bytes: int
    channels: int
    vector_bytes: int
    frequency_bytes: int

    @property
    def form(self) -> Transforms:
        return FORMS[self.m]

    @property
    def name(self) -> str:
        (top, bottom), (left, right) = self.rows, self.cols
        words = f"{bottom - top}x{right - left}x{self.channels}_{checksum(self)}"
        return f"winograd_source_f32_f{self.m}_{words}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        return ARGUMENTS

    def pixel(self, i: int, j: int) -> int | None:
        """Where a pixel lies; None in the padding."""
        exists = self.rows[0] <= i < self.rows[1] and self.cols[0] <= j < self.cols[1]
        return i * self.row_bytes + j * self.pixel_bytes if exists else None

    def footprint(self) -> Footprint:
        n, lanes = self.form.size, lanes_of(self.isa)
        vectors, size, whole = -(-self.channels // lanes), f32.size_bytes, vector_bytes(self.isa)
        pixels = [at for i in range(n) for j in range(n) if (at := self.pixel(i, j)) is not None]
        pieces = [(k * self.vector_bytes, size * min(lanes, self.channels - k * lanes)) for k in range(vectors)]
        if self.vector_bytes == whole:  # a pixel's channels are one range
            pieces = [(0, size * self.channels)]
        reads = (Range(SRC, at + begin, at + begin + size) for at in pixels for begin, size in pieces)
        starts = (f * self.frequency_bytes for f in range(self.form.frequencies))
        return Footprint(tuple(reads), tuple(Range(SOURCE, at, at + vectors * whole) for at in starts))

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel."""
        v = vector_of(self.isa, asm)
        code = SourceCode(self, asm, v)
        full, rest = divmod(self.channels, v.lanes)
        if full:
            asm.role("whole vectors")
            left = asm.gp.take("vectors left")
            asm.MOV(left, full)
            with asm.loop(left, "vectors"):
                code.transform(v)
                asm.ADD(code.src, self.vector_bytes)
                asm.ADD(code.dst, v.bytes)
            asm.gp.free(left)
        if rest:
            asm.role("tail")
            tail = v.tail(rest)
            code.transform(tail)
            tail.release()
        asm.ret()


class SourceCode:
    """The code for one vector of channels."""

    def __init__(self, spec: SourceTransformSpec, asm: Assembler, v: Vector) -> None:
        self.spec, self.v = spec, v
        self.src, self.dst = asm.gp.take("src"), asm.gp.take("source")
        asm.MOV(self.src, mem(asm.frame, 8 * SRC))
        asm.MOV(self.dst, mem(asm.frame, 8 * SOURCE))

    def transform(self, part: Lanes) -> None:
        """Group by group of rows: first down the columns, then along the rows."""
        self.prefetch()
        for group in self.spec.form.source:
            spare = self.v.registers.take("spare")
            rows = self.down(group, part, spare)
            for i, row in zip(group.results, rows, strict=True):
                self.along(i, row, spare)
                self.v.registers.free(*row)
            self.v.registers.free(spare)

    def prefetch(self) -> None:
        """The columns that the tile to the right adds to these rows: memory takes as long as a transform."""
        spec = self.spec
        first, end = spec.form.size * spec.pixel_bytes, (spec.form.size + spec.m) * spec.pixel_bytes
        step = max(spec.pixel_bytes, LINE_BYTES)
        for i in range(*spec.rows):
            for at in (*range(first, end, step), end - 1):
                self.v.asm.PREFETCHT1(mem(self.src, i * spec.row_bytes + at))

    def down(self, group: ResultGroup, part: Lanes, spare: Register) -> list[list[Register]]:
        """The group's rows of B^T d, a register for each of n columns."""
        v, n = self.v, self.spec.form.size
        rows: list[list[Register]] = v.registers.take("B^T d", len(group.results), n)
        # A whole vector is an operand of arithmetic where it lies, a tail has to be loaded first; so either the
        # coefficient is in a register, or the pixel.
        constants = take_constants(v, group) if part is v else {}
        copy = None if part is v else v.registers.take("tail")
        linear = Linear(v, part, constants, copy)
        for j in range(n):
            column = [self.cell(i, j) for i in range(n)]
            linear.group(group, column, [row[j] for row in rows], spare)
        v.registers.free(*constants.values(), *(() if copy is None else (copy,)))
        return rows

    def along(self, i: int, row: Sequence[Register], spare: Register) -> None:
        """Row i of B^T d B, from row i of B^T d, and its stores."""
        v, spec = self.v, self.spec
        linear, results = Linear(v, v, {}, None), v.registers.take("B^T d B", 2)
        for group in spec.form.source:
            linear.group(group, row, results, spare)
            for j, result in zip(group.results, results, strict=False):
                frequency = i * spec.form.size + j
                v.store(mem(self.dst, frequency * spec.frequency_bytes, size=v.bytes), result)
        v.registers.free(*results)

    def cell(self, i: int, j: int) -> Pointer | None:
        at = self.spec.pixel(i, j)
        return None if at is None else mem(self.src, at, size=self.v.bytes)
